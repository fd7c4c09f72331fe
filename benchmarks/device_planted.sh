#!/usr/bin/env bash
# Planted golds of TritonBench-G and KernelBench-X on a machine with a GPU: make them, judge them,
# print the bars. Two commands, since one lasts ten minutes at most:
#   bash benchmarks/device_planted.sh make    # then copy planted*.jsonl from $OUT to .data
#   bash benchmarks/device_planted.sh bench
# `make` reads the runs of golds against themselves, .data/bench-tritonbench-g.tgz and
# .data/bench-kernelbenchx.tgz.
set -u
. benchmarks/device_setup.sh
sets="tritonbench kernelbenchx"
if [ "$1" = make ]; then
    export TILEWRIGHT_HOME=/tmp/home-planted
    runs=()
    for name in tritonbench-g kernelbenchx; do
        mkdir -p "/tmp/golds/$name" && tar xzf ".data/bench-$name.tgz" -C "/tmp/golds/$name"
        runs+=("$(find "/tmp/golds/$name" -name events.jsonl -printf '%h\n' | head -1)")
    done
    for set in $sets; do
        mkdir -p "/tmp/source-$set" && tar xzf ".data/$set.tgz" -C "/tmp/source-$set"
        python3 -m tilewright problems import "$set" --from "/tmp/source-$set" | tail -1
    done
    python3 -m benchmarks.accuracy.planted_golds make "$OUT/planted.jsonl" "${runs[@]}" \
        --problems tritonbench/g kernelbenchx
    exit
fi
runs=()
for set in $sets; do
    LIMIT=${LIMIT:-280} NAME=planted-$set CANDIDATES=.data/planted-$set.jsonl \
        bash benchmarks/device_bench.sh "$set" ".data/$set.tgz" "$set" \
        --workers 10 --set eval.timing.timed_cases=1 | tail -c 2000
    runs+=("$(find "/tmp/bench-planted-$set" -name events.jsonl -printf '%h\n' | head -1)")
done
python3 -m benchmarks.accuracy.planted_golds bars .data/planted.jsonl "${runs[@]}"
