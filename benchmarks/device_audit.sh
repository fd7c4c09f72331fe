#!/usr/bin/env bash
# One slice of the audit of libraries on a machine without an index. Wheels of tilewright's needs lie
# in .whl, those of the libraries in .whl/audit. The slice goes on with .data/audit.jsonl, if there is
# one, and leaves audit.jsonl in $OUT. LIMIT seconds after the start nothing new begins.
#   COMMIT=$(git rev-parse --short=8 HEAD) LIMIT=520 bash benchmarks/device_audit.sh run --workers 5
#   COMMIT=... LIMIT=100 bash benchmarks/device_audit.sh again --seed 41
set -u
began=$SECONDS
mkdir -p .data
. benchmarks/device_setup.sh
# Of what libraries import, the packages that use no GPU on import; torch._inductor uses one.
export AUDIT_LIBRARIES=/tmp/audit-libraries TILEWRIGHT_PRELOAD=torch._dynamo,networkx,scipy.optimize
# Slices on several GPUs begin at the same time: device_bars.sh sets DEVICE and SHARD for each.
exec 9> /tmp/audit-libraries.lock
flock 9
if [ ! -d "$AUDIT_LIBRARIES" ]; then
    python3 -m pip install -q --no-index --no-deps --no-compile --no-cache-dir --upgrade \
        --target "$AUDIT_LIBRARIES" .whl/audit/*.whl
    # Candidates are other users, and import the libraries without writing next to them.
    python3 -m compileall -q -j 0 "$AUDIT_LIBRARIES" > /dev/null 2>&1
    chmod -R a+rX "$AUDIT_LIBRARIES"
fi
exec 9>&-
[ ! -f "${OUT}/audit.jsonl" ] || mv "$OUT/audit.jsonl" .data/audit.jsonl
command=$1
shift
timeout -s INT -k 15 $((${LIMIT:-520} + 30 - SECONDS + began)) python3 -m benchmarks.audit "$command" \
    --out "$OUT" --resume .data/audit.jsonl --seconds $((${LIMIT:-520} - SECONDS + began)) "$@" \
    > "$OUT/audit-$command.txt" 2>&1
status=$?
tail -n 60 "$OUT/audit-$command.txt"
exit $status
