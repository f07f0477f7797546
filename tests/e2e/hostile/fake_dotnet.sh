#!/usr/bin/env bash
# Processes that look like .NET: each maps a file named libcoreclr.so, and its diagnostic port does not answer. A real
# service beside them gets its names, and the recording ends in time.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_sampling
need_dotnet web-api
FAKES=60

cat >fakes.py <<'PY'
import ctypes, mmap, os, signal, socket, sys
open("libcoreclr.so", "wb").write(os.urandom(65536))
file = open("libcoreclr.so", "rb")
for i in range(int(sys.argv[1])):
    if os.fork():
        continue
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    code = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    port = socket.socket(socket.AF_UNIX)
    port.bind("/tmp/dotnet-diagnostic-%d-%s-socket" % (os.getpid(), start))
    port.listen(16)
    os.write(1, b"%s %d\n" % (os.fsencode(port.getsockname()), os.getpid()))  # lines stay whole
    signal.pause()
signal.pause()
PY
start fakes python3 fakes.py $FAKES
all_listen() { [ "$(wc -l <fakes.log)" -ge $FAKES ]; }
wait_for 30 all_listen || fail "only $(wc -l <fakes.log) fakes: $(cat fakes.log)"
mapfile -t T_FILES < <(cut -d ' ' -f 1 fakes.log)
start_web_api
start_load 60 /cpu

# timed ARG...: sets $TOOK, the milliseconds that collect takes beside the duration.
timed() {
	local begin=${EPOCHREALTIME/./}
	timeout -s KILL 60 "$PROFCPU" collect --no-download -F 199 -d 4 "$@" >log 2>&1 || fail "collect: exit $?: $(tail -n 5 log)"
	TOOK=$(((${EPOCHREALTIME/./} - begin) / 1000 - 4000))
	echo "$TOOK ms beside the duration"
}
timed -o alone -p "$API_PID"
alone=$TOOK
timed -o beside -p "$(cut -d ' ' -f 2 fakes.log | paste -sd ,),$API_PID"
is_release || exit 0 # with sanitizers, only crashes and hangs count
[ "$TOOK" -le $((alone + 6000)) ] || fail "it ends too late: $(cat log)"
named() { python3 -c 'import json, sys
jit = next(row for row in json.load(open(sys.argv[1] + "/report.json"))["code"] if row["kind"] == "jit")
print(jit)
sys.exit(jit["frames"] < 200 or jit["sources"].get("runtime-memory", 0) < 0.95 * jit["frames"])' "$1"; }
named alone && named beside || fail "names are missing: $(cat log)"
[ "$(grep -c 'no names of JIT-compiled code' log)" -ge 3 ] || fail "the fakes were not noticed: $(cat log)"
exit 0
