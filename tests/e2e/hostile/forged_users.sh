#!/usr/bin/env bash
# A user's recording says that a process was another user's, whose perf map only that user may read. Root's post-processing does not
# put its names into that user's recording. It is the user's if the directory is, or symbols/, a file or the archive.
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
os.setresuid(54321, 54321, 54321)
with open('/tmp/perf-%d.map' % os.getpid(), 'w') as f:
    f.write('%x 1000 only_its_method\n' % at)
call = ctypes.CFUNCTYPE(None)(at)
while True: call()
PY
start jit python3 jit.py
PID=$STARTED
T_FILES+=("/tmp/perf-$PID.map")
wait_for_cpu "$PID" 300
"$PROFCPU" collect -q -p "$PID" -F 499 -d 1 --record-only -o roots >collect.log 2>&1 || fail "collect: $(cat collect.log)"
stop "$PID"
cp -r roots without
rm -r without/symbols
mkdir -p theirs # in the user's directory, root writes to directories of the user
chown 65534:65534 theirs
warnings=1 # about the owner
hides() { # DIR COMMAND...: makes outputs without the names
	"${@:2}" >post.log 2>&1 || fail "${*:2}: $(cat post.log)"
	[ -s "$1/folded_stacks.out" ] || fail "${*:2}: no stacks"
	grep -rq only_its_method "$1" && fail "${*:2}: has names of the private perf map"
	[ "$(grep -c 'user 65534 may have forged' post.log)" = $warnings ] || fail "${*:2}: not $warnings warnings about the owner: $(cat post.log)"
}
for owned in -R '' symbols symbols/users perf.data manifest.json samples.idx; do
	echo "the user's: ${owned:-the directory}"
	rm -rf theirs/* copy && cp -r roots theirs/rec || fail "cp"
	case $owned in -R) chown -R 65534:65534 theirs/rec ;; *) chown 65534:65534 "theirs/rec/$owned" ;; esac
	hides copy "$PROFCPU" postprocess -q -o copy theirs/rec
	# The copy is root's, and its manifest tells who may have forged it.
	hides copy "$PROFCPU" postprocess -q -o copy theirs/rec
	hides copy "$PROFCPU" postprocess -q copy
	for input in theirs/rec theirs/rec/perf.data; do
		"$PROFCPU" fold "$input" >folded 2>post.log || fail "fold $input: $(cat post.log)"
		grep -q only_its_method folded && fail "fold $input: has names of the private perf map"
	done
	hides theirs/rec "$PROFCPU" postprocess -q theirs/rec
done
chown -R 65534:65534 without && hides without "$PROFCPU" postprocess -q without

echo "a file without a manifest"
cp roots/perf.data theirs/alone.data && chown 65534 theirs/alone.data || fail "cp"
for _ in 1 2; do
	hides alone "$PROFCPU" postprocess -q -o alone theirs/alone.data
done
hides alone "$PROFCPU" postprocess -q alone

echo "an archive"
tar -czf pack.tar.gz roots || fail "tar"
chown 65534 pack.tar.gz
hides unpacked "$PROFCPU" postprocess -q -o unpacked pack.tar.gz
hides unpacked "$PROFCPU" postprocess -q -o unpacked pack.tar.gz
hides again "$PROFCPU" postprocess -q -o again unpacked/prof.tar.gz
[ ! -e unpacked/symbols/users ] || fail "the users of an archive are believed when it is unpacked"

# Root's own recording has them if everybody may read the map: the process may have become one of another user before its end.
cp -r roots private
warnings=0
hides private "$PROFCPU" postprocess -q private
chmod 644 "/tmp/perf-$PID.map"
"$PROFCPU" postprocess -q roots >post.log 2>&1 || fail "roots: $(cat post.log)"
grep -q only_its_method roots/folded_stacks.out || fail "no names in root's own recording: $(cat post.log)"
exit 0
