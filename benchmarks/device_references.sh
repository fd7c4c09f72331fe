#!/usr/bin/env bash
# KernelBench's references as their own candidates on every GPU, in as many commands as it takes:
# each stops after LIMIT seconds, brings runs.tgz back in $OUT, and goes on with the one in .data.
#   LIMIT=540 bash benchmarks/device_references.sh --workers 4 --set eval.timing.extra_replicates=4
set -u
. benchmarks/device_setup.sh
export TILEWRIGHT_HOME=/tmp/home
runs=/tmp/references
mkdir -p "$runs"
[ ! -f .data/runs.tgz ] || tar xzf .data/runs.tgz -C "$runs"
run=$(find "$runs" -name events.jsonl -printf '%h\n' | head -1)
python3 -m tilewright problems import kernelbench --from .data/kernelbench_v0.jsonl
devices=${DEVICES:-$(nvidia-smi -L | awk 'NR > 1 { printf "," } { printf "cuda:%d", NR - 1 }')}
began=$SECONDS
if [ -n "$run" ]; then
    timeout -s INT "${LIMIT:-540}" python3 -m tilewright bench --resume "$run" "$@"
else
    timeout -s INT "${LIMIT:-540}" python3 -m tilewright bench "${PROBLEMS:-kernelbench}" \
        --candidates reference --device "$devices" --out "$runs" "$@"
fi > "$OUT/bench.txt" 2>&1
echo "exit status $? after $((SECONDS - began)) s on $devices"
tail -c 1500 "$OUT/bench.txt"
tar czf "$OUT/runs.tgz" -C "$runs" .
