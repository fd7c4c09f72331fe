#!/usr/bin/env bash
# Commands side by side on a large machine without an installed tilewright, each on two cores of
# its own: wheels in .whl, output in $OUT. For example
#   bash benchmarks/device_bars.sh "python3 -m benchmarks.corpus '' 0 2" "python3 -m benchmarks --only fuzz"
set -u
python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade --target /tmp/site .whl/*.whl
export PYTHONPATH=/tmp/site:$PWD/src:$PWD
python3 - <<'P'
import pathlib, tomllib
folder = pathlib.Path("/tmp/site/tilewright-0.1.0.dist-info")
folder.mkdir(exist_ok=True)
(folder / "METADATA").write_text("Metadata-Version: 2.1\nName: tilewright\nVersion: 0.1.0\n")
groups = tomllib.load(open("pyproject.toml", "rb"))["project"]["entry-points"]
text = "".join(f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in e.items()) for g, e in groups.items())
(folder / "entry_points.txt").write_text(text)
P
number=0
for command in "$@"; do
    taskset -c $((2 * number)),$((2 * number + 1)) \
        timeout "${LIMIT:-540}" $command > "$OUT/$number.txt" 2>&1 &
    number=$((number + 1))
done
wait
for place in $(seq 0 $((number - 1))); do
    grep -a "MISS\|| yes$\|| NO$\|named" "$OUT/$place.txt" | cut -c1-300
done
