#!/usr/bin/env bash
# A user's recording says that a process was root's, whose perf map only root may read. Root's post-processing does not
# put its names into that user's recording.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need python3

cat >jit.py <<'PY'
import ctypes, mmap, os
m = mmap.mmap(-1, 4096, prot=7)
m.write(b'\xb9\x00\x00\x00\x04\xff\xc9\x75\xfc\xc3')  # counts down from 2^26
at = ctypes.addressof(ctypes.c_char.from_buffer(m))
os.umask(0o077)
with open('/tmp/perf-%d.map' % os.getpid(), 'w') as f:
    f.write('%x 1000 only_roots_method\n' % at)
call = ctypes.CFUNCTYPE(None)(at)
while True: call()
PY
start jit python3 jit.py
PID=$STARTED
T_FILES+=("/tmp/perf-$PID.map")
wait_for_cpu "$PID" 300
"$PROFCPU" collect -q -p "$PID" -F 499 -d 1 --record-only -o roots >collect.log 2>&1 || fail "collect: $(cat collect.log)"
stop "$PID"
chmod 755 .
cp -r roots theirs
cp -r roots without
rm -r without/symbols
chown -R 65534:65534 theirs without
for recording in theirs without; do
	"$PROFCPU" postprocess -q "$recording" >post.log 2>&1 || fail "$recording: $(cat post.log)"
	[ -s "$recording/folded_stacks.out" ] || fail "$recording: no stacks"
	grep -rq only_roots_method "$recording" && fail "$recording: has names of root's perf map"
done
# Root's own recording has them.
"$PROFCPU" postprocess -q roots >post.log 2>&1 || fail "roots: $(cat post.log)"
grep -q only_roots_method roots/folded_stacks.out || fail "no names in root's own recording: $(cat post.log)"
