"""`python -m tilewright`: the command without an installed script."""

from tilewright.cli.main import main

if __name__ == "__main__":
    main()
