#!/usr/bin/env bash
# collect --max-size ends a recording when perf.data has this size, also while a target maps memory as fast as it can.
# Mappings from before the recording count too. Without the option, those of one process take at most 16 MiB.
# The recording is saved and its outputs are made.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need python3
need_sampling
W=$BUILD/helpers/workload
LINE='warning: recording: ended after [0-9.]* s: perf.data has [0-9.]* MiB, the limit of --max-size is'

# The kernel's buffers, which are added, have 4 MiB, and more on machines with many CPUs.
RINGS=$((4 << 20 | $(nproc) << 20))

# limited DIR LIMIT ARG...: a recording of at most 60 s ends at LIMIT bytes, with one line, and is whole.
limited() {
	local dir=$1 limit=$2 status=0 bytes seconds
	shift 2
	timeout -k 5 100 "$PROFCPU" collect -d 60 -o "$dir" "$@" >out 2>err || status=$?
	[ "$status" = 0 ] || fail "$*: exit $status: $(cat err)"
	[ "$(grep -cE "$LINE" err)" = 1 ] || fail "$*: $(cat err)"
	seconds=$(sed -n 's/.*recording: ended after \([0-9.]*\) s: .*/\1/p' err)
	at_least 50 "$seconds" || fail "$*: ended after $seconds s"
	bytes=$(stat -c %s "$dir/perf.data")
	at_least "$bytes" "$limit" && at_least $((limit + RINGS)) "$bytes" || fail "$*: $bytes bytes"
	grep -q '"finished": true' "$dir/manifest.json" || fail "$*: the manifest is not marked as finished"
	[ -s "$dir/flamegraph.svg" ] && [ -s "$dir/prof.tar.gz" ] || fail "$*: no outputs"
	# A slow machine loses some of the records of a process that maps memory as fast as it can.
	MAY_LOSE=1 perf_agrees script.txt script -i "$dir/perf.data" -F comm,tid,time,event
	echo "$*: $bytes bytes after $seconds s"
}

start storm "$W" maps 600
storm=$STARTED
wait_for 20 grep -q ready storm.log || fail "the workload did not start: $(cat storm.log)"
limited storm 4194304 -p "$storm" --max-size 4M
grep -q "^workload;" storm/folded_stacks.out || fail "the storm has no samples"
limited fp 4194304 -p "$storm" --max-size=4096K --call-graph fp
limited all 4194304 -a --max-size 4194304B
"$PROFCPU" postprocess storm >out 2>err || fail "postprocess: $(cat err)"
"$PROFCPU" postprocess storm/prof.tar.gz -o unpacked >out 2>err || fail "postprocess of the archive: $(cat err)"
cmp storm/folded_stacks.out unpacked/folded_stacks.out || fail "the archive has other stacks"
stop "$storm"

# Two processes with 12,000 mappings of a path of 3,500 bytes: 42 MB each.
cat >mapper.py <<'PY'
import ctypes, mmap, os
for _ in range(14):
    os.mkdir('x' * 248)
    os.chdir('x' * 248)
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
fd = os.open('code', os.O_RDWR | os.O_CREAT)
os.ftruncate(fd, mmap.PAGESIZE)
for _ in range(12000):
    address = libc.mmap(None, mmap.PAGESIZE, mmap.PROT_READ | mmap.PROT_EXEC, mmap.MAP_PRIVATE, fd, 0)
    assert address != ctypes.c_void_p(-1).value, ctypes.get_errno()
os.fork()
print('mapped', flush=True)
while True:
    pass
PY
start mapper timeout 120 python3 mapper.py
mapper=$STARTED
wait_for 20 grep -q mapped mapper.log || fail "no mappings: $(cat mapper.log)"
limited before 4194304 -p "$mapper" --max-size 4M
"$PROFCPU" collect -p "$mapper" -d 1 -o cut >out 2>err || fail "$(cat err)"
bytes=$(stat -c %s cut/perf.data)
at_least "$bytes" $((30 << 20)) && at_least $((33 << 20)) "$bytes" || fail "the mappings of two processes take $bytes bytes"
grep -q '2  processes lack names: their mappings took over 16 MiB' out err || fail "not counted: $(cat out err)"
stop "$mapper"

# A command keeps running, as after -d.
limited command 65536 -F 20000 --max-size 64K -- "$W" maps 30
pid=$(sed -n 's/.*: still running as process \([0-9]*\)$/\1/p' err)
[ -n "$pid" ] && kill "$pid" || fail "the command ended: $(cat err)"

# A limit that is not reached changes nothing.
"$PROFCPU" collect --max-size 1G -o whole -- "$W" deep 5 0.2 >out 2>err || fail "$(cat err)"
grep -q 'max-size' err && fail "a limit that was not reached: $(cat err)"
exit 0
