#!/usr/bin/env bash
# `bench` over an imported problem set on a large machine, in as many commands as it takes. Each
# command stops after LIMIT seconds and leaves bench-NAME.tgz in $OUT; the next one goes on with that
# file in .data. NAME is the set or group with dashes: kernelbench-level3.
#   bash benchmarks/device_bench.sh SET SOURCE PROBLEMS [options of bench]
#   LIMIT=540 bash benchmarks/device_bench.sh tritonbench .data/tritonbench.tgz tritonbench/g --workers 4
# DEVICE names the GPU (default: all of them). CANDIDATES is `reference` unless it is set. `-` as SET
# imports nothing. The candidates and the source may be tar files.
set -u
. benchmarks/device_setup.sh
set=$1 source=$2 problems=$3 name=${NAME:-${3//\//-}}
shift 3
runs=/tmp/bench-$name
export TILEWRIGHT_HOME=/tmp/home-$name
mkdir -p "$runs"
[ ! -f ".data/bench-$name.tgz" ] || tar xzf ".data/bench-$name.tgz" -C "$runs"
run=$(find "$runs" -name events.jsonl -printf '%h\n' | head -1)
case $source in
*.tgz) mkdir -p "/tmp/source-$name" && tar xzf "$source" -C "/tmp/source-$name" && source=/tmp/source-$name ;;
esac
[ "$set" = - ] || python3 -m tilewright problems import "$set" --from "$source"
devices=${DEVICE:-$(nvidia-smi -L | awk 'NR > 1 { printf "," } { printf "cuda:%d", NR - 1 }')}
began=$SECONDS
if [ -n "$run" ]; then
    timeout -s INT "${LIMIT:-540}" python3 -m tilewright bench --resume "$run" "$@"
else
    timeout -s INT "${LIMIT:-540}" python3 -m tilewright bench "$problems" \
        --candidates "${CANDIDATES:-reference}" --device "$devices" --out "$runs" "$@"
fi > "$OUT/bench-$name.txt" 2>&1
status=$?
tail -c 6000 "$OUT/bench-$name.txt"
echo "bench $name: exit status $status after $((SECONDS - began)) s on $devices"
tar czf "$OUT/bench-$name.tgz" -C "$runs" .
exit $status
