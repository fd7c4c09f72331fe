#!/usr/bin/env bash
# Integrations on a machine with a GPU and without a network: the times of kernelbench-eval, and GPU
# MODE's examples and cheats. Wheels lie in .whl, KernelBench's problems in .data, and the clones in
# .data/gpumode.tgz, which this makes where the clones are:
#   bash benchmarks/device_integrations.sh pack REFERENCE_KERNELS KERNELBOT
# On the GPU machine it takes at most LIMIT (450) seconds, and prints its table last:
#   bash benchmarks/device_integrations.sh
set -eu
if [ "${1:-}" = pack ]; then
    mkdir -p .data
    tar czf .data/gpumode.tgz --exclude=.git \
        --transform "s,^${2#/},reference-kernels," --transform "s,^${3#/},kernelbot," \
        "$2/problems" "$2/LICENSE" "$3/examples" "$3/LICENSE" 2> /dev/null
    tar tzf .data/gpumode.tgz | wc -l
    exit
fi
. benchmarks/device_setup.sh
clones=/tmp/gpumode
mkdir -p "$clones"
tar xzf .data/gpumode.tgz -C "$clones"
# An empty folder marks the root of a clone.
mkdir -p "$clones/reference-kernels/.git" "$clones/kernelbot/.git"
export GPUMODE=$clones/reference-kernels KERNELBOT=$clones/kernelbot
export TILEWRIGHT_HOME=/tmp/integrations-home
python3 -m tilewright problems import gpumode --from "$GPUMODE" 2>&1 | tail -3
limit=${LIMIT:-450}
timeout -s INT -k 10 "$limit" python3 -m benchmarks.gpu integrations --seconds $((limit - 130)) \
    > "$OUT/integrations.txt" 2>&1 || true
grep -v '^bar \|^--- \||' "$OUT/integrations.txt" | cut -c1-400 | tail -60
# Few files come back.
tar czf "$OUT/integrations-runs.tgz" -C "$OUT" runs kernelbench && rm -rf "$OUT/runs" "$OUT/kernelbench"
sed -n '/^bar | wanted/,$p' "$OUT/integrations.txt"
