#!/usr/bin/env bash
# TritonBench's recorded predictions on a large machine: its own scripts, both protocols, and the
# comparison, in as many commands as it takes. Each command stops after LIMIT seconds and leaves
# published-GROUP.tgz in $OUT; the next one goes on with that file in .data.
#   bash benchmarks/device_published.sh GROUP CLONE.tgz MODEL ...
#   LIMIT=540 bash benchmarks/device_published.sh t .data/tritonbench-predictions.tgz output_gpt-4o
# MODEL is a pattern of files in LLM_generated, without `.jsonl`. CLONE.tgz holds a clone's README.md,
# EVAL, LLM_generated and data. DEVICE names GPUs by number, or `cpu` (default: all GPUs); each has
# WORKERS (3) files at a time.
set -u
. benchmarks/device_setup.sh
group=$1 archive=$2
shift 2
clone=/tmp/published-clone work=/tmp/published-$group began=$SECONDS
export TILEWRIGHT_HOME=/tmp/published-home
step="python3 -m benchmarks.accuracy.published_predictions"
left() { echo $((${LIMIT:-540} - SECONDS + began)); }

mkdir -p "$clone" "$work"
[ -d "$clone/EVAL" ] || tar xzf "$archive" -C "$clone"
[ ! -f ".data/published-$group.tgz" ] || tar xzf ".data/published-$group.tgz" -C "$work"
python3 -m tilewright problems import tritonbench --from "$clone" | tail -2
[ -f "$work/candidates-$group.jsonl" ] || $step prepare "$clone" "$work" --groups "$group" --models "$@"
gpus=${DEVICE:-$(nvidia-smi -L | awk 'NR > 1 { printf "," } { printf "%d", NR - 1 }')}
devices=$([ "$gpus" = cpu ] && echo cpu || echo "cuda:${gpus//,/,cuda:}")
workers=$(($(tr -cd , <<< "$gpus" | wc -c) * ${WORKERS:-3} + ${WORKERS:-3}))

# The last file that begins may take three times its limit of 60 s.
$step scripts "$clone" "$work" --groups "$group" --device "$gpus" --workers "$workers" \
    --seconds $(($(left) - 180))
run=$(find "$work/runs" -name events.jsonl -printf '%h\n' 2> /dev/null | head -1)
if [ "$(left)" -gt 60 ]; then
    given=(--resume "$run")
    [ -n "$run" ] || given=("tritonbench/$group" --candidates "$work/candidates-$group.jsonl"
        --protocol "official,strict" --set eval.timing.enabled=false --device "$devices"
        --out "$work/runs")
    timeout -s INT $(($(left) - 20)) python3 -m tilewright bench "${given[@]}" --workers "$workers" \
        > "$OUT/published-$group-bench.txt" 2>&1
    tail -c 1500 "$OUT/published-$group-bench.txt"
fi
run=$(find "$work/runs" -name events.jsonl -printf '%h\n' 2> /dev/null | head -1)
status=3
if [ -n "$run" ]; then
    $step compare "$clone" "$work" "$run" --groups "$group" > "$OUT/published-$group.txt"
    status=$?
    grep -v '\.py |' "$OUT/published-$group.txt"
fi
tar czf "$OUT/published-$group.tgz" --exclude=./files -C "$work" .
exit $status
