# To be sourced on a machine without an installed tilewright: wheels in .whl (liger-kernel's in
# .whl/liger), KernelBench's problems in .data; this checkout then runs as `python3 -m tilewright`.
if [ ! -f /tmp/site/ready ]; then  # commands that run at the same time share the folder
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
        --target /tmp/site .whl/*.whl
    [ ! -d .whl/liger ] || python3 -m pip install -q --no-index --no-deps --no-compile \
        --no-cache-dir --upgrade --target /tmp/liger .whl/liger/*.whl
fi
export PYTHONPATH=/tmp/site:$PWD/src:$PWD PYTHONUNBUFFERED=1
export KERNELBENCH=$PWD/.data/kernelbench_v0.jsonl LIGER=/tmp/liger
python3 - <<'P'
import pathlib, tomllib
folder = pathlib.Path("/tmp/site/tilewright-0.1.0.dist-info")
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tilewright\nVersion: 0.1.0\n")
groups = tomllib.load(open("pyproject.toml", "rb"))["project"]["entry-points"]
text = "".join(f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items()) for g, e in groups.items())
(folder / "entry_points.txt").write_text(text)
P
touch /tmp/site/ready
