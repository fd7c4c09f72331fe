"""Build the documentation site from docs and the pages of the repository.

python docs/_site.py                build into out/site
python docs/_site.py --out DIR      build into another folder
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from _site_pages import API_PAGE, NESTED, ROOT, api_page, side_bar, sources, staged

SETTINGS = ROOT / "docs" / "_sphinx"


def main() -> int:
    """Build the site; return Sphinx's exit status, which is not 0 after any warning."""
    parser = argparse.ArgumentParser(description="Build the documentation site.")
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "site", help="folder")
    out = parser.parse_args().out
    try:
        from sphinx.cmd.build import main as build
    except ImportError:
        print("the site needs Sphinx: make docs-site installs it", file=sys.stderr)
        return 2
    # A page that was removed or renamed must not stay on the site.
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="tilewright-site-") as name:
        folder = Path(name)
        stage(folder / "pages")
        options = ["-b", "html", "-q", "-W", "--keep-going", "-j", "auto"]
        options += ["-c", str(SETTINGS), "-d", str(folder / "doctrees")]
        status = int(build([*options, str(folder / "pages"), str(out)]))
    if status == 0:
        print(f"open {out.resolve() / 'index.html'}")
    return status


def stage(folder: Path) -> None:
    """Write all pages and files of the site into a folder, as Sphinx reads them."""
    places = sources()
    lists = side_bar(places)
    for path, place in places.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(staged(path, places) + lists.get(place, ""), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    (folder / API_PAGE).write_text(api_page(), encoding="utf-8")
    for place in NESTED.keys() - set(places.values()):
        (folder / place).write_text(f"# Decisions\n{lists[place]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
