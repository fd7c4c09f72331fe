#!/usr/bin/env bash
# Planted golds of TritonBench-G and KernelBench-X on a machine with a GPU: judge the golds, make
# faults in the correct ones, judge those, print the bars. Each step is a command or all are one:
#   bash benchmarks/device_planted.sh golds   # without times; then copy bench-*.tgz to .data
#   bash benchmarks/device_planted.sh make    # then copy planted*.jsonl from $OUT to .data
#   bash benchmarks/device_planted.sh bench
# With two GPUs each set has its own. LIMIT is the seconds of each run of `bench`.
set -u
. benchmarks/device_setup.sh
declare -A groups=([tritonbench]=tritonbench/g [kernelbenchx]=kernelbenchx)
sets="tritonbench kernelbenchx"
second=cuda:$(($(nvidia-smi -L | wc -l) > 1))
declare -A gpus=([tritonbench]=cuda:0 [kernelbenchx]=$second)

run_of() { find "/tmp/bench-$1" -name events.jsonl -printf '%h\n' | head -1; }

judge() {  # NAME, SET, CANDIDATES, PROBLEMS, options of bench
    local name=$1 set=$2 candidates=$3 problems=$4
    shift 4
    NAME=$name CANDIDATES=$candidates DEVICE=${gpus[$set]} \
        bash benchmarks/device_bench.sh "$set" ".data/$set.tgz" "$problems" "$@" | tail -c 2000
}

case $1 in
golds)
    for set in $sets; do
        judge "golds-$set" "$set" reference "${groups[$set]}" \
            --workers "${WORKERS:-10}" --set eval.timing.enabled=false &
        [ "$second" != cuda:0 ] || wait
    done
    wait
    ;;
make)
    export TILEWRIGHT_HOME=/tmp/home-planted
    runs=()
    for set in $sets; do
        if [ ! -d "/tmp/bench-golds-$set" ]; then
            mkdir -p "/tmp/bench-golds-$set"
            tar xzf ".data/bench-golds-$set.tgz" -C "/tmp/bench-golds-$set"
        fi
        runs+=("$(run_of "golds-$set")")
        mkdir -p "/tmp/source-$set" && tar xzf ".data/$set.tgz" -C "/tmp/source-$set"
        python3 -m tilewright problems import "$set" --from "/tmp/source-$set" | tail -1
    done
    python3 -m benchmarks.accuracy.planted_golds make "$OUT/planted.jsonl" "${runs[@]}" \
        --problems "${groups[@]}"
    ;;
bench)
    made=.data
    [ ! -f "$OUT/planted.jsonl" ] || made=$OUT
    runs=()
    for set in $sets; do
        judge "planted-$set" "$set" "$made/planted-$set.jsonl" "$set" \
            --workers "${WORKERS:-10}" --set eval.timing.timed_cases=1 &
        [ "$second" != cuda:0 ] || wait
    done
    wait
    for set in $sets; do runs+=("$(run_of "planted-$set")"); done
    python3 -m benchmarks.accuracy.planted_golds bars "$made/planted.jsonl" "${runs[@]}"
    ;;
esac
