#!/usr/bin/env bash
# All threads of profcpu run at once: capture of names, code reader, reader of blocked stacks, the kernel's names. The
# recording is complete. Under TSan this finds races between them.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet web-api
need_sampling

mkdir apart && cd apart || exit 1 # the service watches its directory
start_web_api
cd "$T" || exit 1
start load "$BUILD/examples/load" -c 1 -d 20 "$API_PORT" /cpu /wait
threads_of() { find "/proc/$1/task" -mindepth 1 -maxdepth 1 2>/dev/null | wc -l; }
start collect "$PROFCPU" collect --off-cpu --max-overhead 100 -F 499 -o rec -p "$API_PID" -d 4
recorder=$STARTED most=0
while [ -d "/proc/$recorder/task" ] && [ "$(cut -d ' ' -f 3 "/proc/$recorder/stat" 2>/dev/null)" != Z ]; do
	now=$(threads_of "$recorder")
	[ "$now" -gt "$most" ] && most=$now
	sleep 0.05
done
wait "$recorder" || fail "collect gave $?: $(cat collect.log)"
cat collect.log
# The sanitizer has a thread of its own.
expected=4
case $BUILD in *tsan) expected=5 ;; esac
[ "$most" -ge "$expected" ] || fail "the recorder had $most threads at most, $expected are expected"
# A sanitizer slows the recorder, not the target: its stacks wait longer.
least=0.95 most=0.02
is_release || least=0.6 most=0.16
python3 - rec/report.json "$least" "$most" <<'PY' || fail "the recording is incomplete"
import json, sys
report = json.load(open(sys.argv[1], encoding="utf-8"))
least, most = float(sys.argv[2]), float(sys.argv[3])
jit = next(row for row in report["code"] if row["kind"] == "jit")
stacks = report["stacks"]
total = sum(stacks[grade] for grade in ("complete", "spliced", "guessed", "truncated", "none"))
print(jit, stacks)
assert jit["frames"] > 500 and jit["sources"].get("runtime-memory", 0) >= 0.99 * jit["frames"], "capture"
assert stacks["complete"] >= least * total, "code reader"
assert stacks["none"] <= most * total, "blocked stacks"
PY
