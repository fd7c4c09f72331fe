#!/usr/bin/env bash
# Commands at the same time on a large machine without an installed tilewright: wheels in .whl, output
# in $OUT. Each has two cores of its own:
#   bash benchmarks/device_bars.sh "python3 -m benchmarks.attacks.corpus '' 0 2" "python3 -m benchmarks --only fuzz"
# With GPUS each has a GPU, its share of the cores, and a folder in $OUT; a semicolon is another
# command on the same GPU (liger-kernel's wheel lies in .whl/liger, KernelBench's problems in .data).
# LIMIT seconds after the start no command begins, and those that run are stopped within 25 s.
# A command that begins with `bash`, `python3` or `env` runs as it is, any other is a part of benchmarks.gpu:
#   GPUS=2 bash benchmarks/device_bars.sh "faults" "liger; memory; aa --seconds 60"
#   GPUS=2 SHARDS=2 bash benchmarks/device_bars.sh "aa --seconds 500" "aa --seconds 500"
set -u
. benchmarks/device_setup.sh

parts() {  # GPU, parts of `python3 -m benchmarks.gpu` with a semicolon between
    local each command name share=$(($(nproc) / GPUS)) began left number=0
    while read -r -d ';' each; do
        each=${each# } began=$SECONDS
        case $each in
        bash\ * | python3\ * | env\ *) command=$each ;;
        *) command="python3 -m benchmarks.gpu $each" ;;
        esac
        number=$((number + 1)) left=$((${LIMIT:-540} - SECONDS))
        name=$number-$1-$(tr -c 'a-z0-9\n' '-' <<< "$command" | cut -c1-60)
        [ "$left" -gt 20 ] || { echo "$name: no time left" >> "$OUT/$1.txt" && continue; }
        mkdir -p "$OUT/$name"
        LIMIT=$left OUT=$OUT/$name DEVICE=cuda:$1 SHARD=$(($1 % ${SHARDS:-1}))/${SHARDS:-1} \
            taskset -c $(($1 * share))-$(($1 * share + share - 1)) \
            timeout -s INT -k 10 $((left + 15)) ${command} \
            < /dev/null > "$OUT/$name/log.txt" 2>&1
        echo "$name: exit status $? after $((SECONDS - began)) s" >> "$OUT/$1.txt"
        grep -a "| yes$\|| NO$\|exit status\| passed\| failed" "$OUT/$name/log.txt" >> "$OUT/$1.txt"
    done <<< "$2;"
}

number=0
for command in "$@"; do
    if [ -n "${GPUS:-}" ]; then
        parts "$number" "$command" &
    else
        taskset -c $((2 * number)),$((2 * number + 1)) \
            timeout "${LIMIT:-540}" $command > "$OUT/$number.txt" 2>&1 &
    fi
    number=$((number + 1))
done
wait
for place in $(seq 0 $((number - 1))); do
    grep -a "MISS\|failed\|passed\|| yes$\|| NO$\|named\|exit status" "$OUT/$place.txt" | cut -c1-300
done
# Few files come back, so folders go into one.
[ -z "${GPUS:-}" ] || { tar czf /tmp/parts.tgz -C "$OUT" . && rm -rf "${OUT:?}"/* && mv /tmp/parts.tgz "$OUT/"; }
