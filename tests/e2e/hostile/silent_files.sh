#!/usr/bin/env bash
# Programs on file systems that may not answer: skipped and counted, and read with --allow-fs. One that never answers stops
# nothing.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
[ -w /dev/fuse ] || skip "needs /dev/fuse"
mkdir program silent
# build_id_of DIR PATH: whether the record of a mapping of PATH has a build id.
build_id_of() {
	"$BUILD/helpers/perfdata_dump" dump "$1/perf.data" | grep "MMAP2.*$2" >maps || fail "no mapping of $2"
	grep -q ' <[0-9a-f]*>\]: r-xp' maps
}

start server "$BUILD/helpers/fuse_mount" "$T/program" "$BUILD/examples/shares"
SERVER=$STARTED
T_MOUNTED+=("$T/program")
wait_for 10 grep -q mounted server.log || fail "no FUSE file system: $(cat server.log)"
start target "$T/program/program" 60
target=$STARTED
wait_for_cpu "$target" 300
timeout 60 "$PROFCPU" collect -p "$target" -F 499 -d 1 -o skipped >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q '1 file on fuse.test was skipped: that file system may never answer; use --allow-fs fuse.test' collect.log || fail "the report does not count the file: $(cat collect.log)"
grep -q 'its file system may not answer' collect.log || fail "no reason: $(cat collect.log)"
grep -q 'alpha_leaf' skipped/folded_stacks.out && fail "read a file of FUSE"
python3 - skipped/report.json <<'PY' || fail "report.json: $(grep -A3 skipped_files skipped/report.json)"
import json, sys
sys.exit(json.load(open(sys.argv[1]))['skipped_files'] != [{'file_system': 'fuse.test', 'files': 1}])
PY

timeout 60 "$PROFCPU" postprocess -q --allow-fs fuse.test skipped >post.log 2>&1 || fail "postprocess: $(cat post.log)"
grep -q 'alpha_leaf' skipped/folded_stacks.out || fail "no names with --allow-fs: $(cat post.log)"
timeout 60 "$PROFCPU" collect -p "$target" --allow-fs fuse.test -F 499 -d 1 -o allowed >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q 'alpha_leaf' allowed/folded_stacks.out || fail "no names with --allow-fs: $(cat collect.log)"
grep -q 'fuse.test' collect.log && fail "counts a file that was read: $(cat collect.log)"

echo "an overlay with such a layer"
mkdir merged other
mount -t overlay -o "lowerdir=$T/program:$T/other" none "$T/merged" || fail "no overlay of FUSE"
T_MOUNTED=("$T/merged" "${T_MOUNTED[@]}")
start target "$T/merged/program" 60
wait_for_cpu "$STARTED" 300
timeout 60 "$PROFCPU" collect -p "$STARTED" -F 499 -d 1 -o layer >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q '1 file on overlay was skipped' collect.log || fail "entered an overlay of FUSE: $(cat collect.log)"
timeout 60 "$PROFCPU" collect -p "$STARTED" --allow-fs fuse.test -F 499 -d 1 -o layer.allowed >collect.log 2>&1 ||
	fail "collect: $(cat collect.log)"
grep -q 'alpha_leaf' layer.allowed/folded_stacks.out || fail "--allow-fs does not permit the layer: $(cat collect.log)"
stop "$STARTED"

echo "an overlay over that overlay"
mkdir upper_merged
mount -t overlay -o "lowerdir=$T/merged:$T/other" none "$T/upper_merged" || fail "no overlay of an overlay"
T_MOUNTED=("$T/upper_merged" "${T_MOUNTED[@]}")
need node
start jit node -e 'let s = 0; for (;;) s = (s * 31 + 1) % 1000003'
wait_for_cpu "$STARTED" 500
nested=/tmp/perf-$STARTED.map
T_FILES+=("$nested")
ln -s "$T/upper_merged/program" "$nested"
timeout 60 "$PROFCPU" collect -p "$STARTED" -F 499 -d 1 -o nested >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q '1 file on overlay was skipped' collect.log || fail "entered an overlay over an overlay of FUSE: $(cat collect.log)"
stop "$STARTED"

# Its layers may lie elsewhere in our root.
echo "an overlay of a user namespace"
mkdir -p -m 777 lower lower2 their_merged
cp "$BUILD/examples/shares" lower/program
# shellcheck disable=SC2016 # for the other shell
start their setpriv --reuid=65534 --regid=65534 --clear-groups unshare -Urm sh -c \
	'mount -t overlay -o "lowerdir=$0/lower:$0/lower2,userxattr" none "$0/their_merged" && exec "$0/their_merged/program" 60' "$T"
their=$STARTED
if wait_for 10 grep -q program "/proc/$their/comm"; then
	wait_for_cpu "$their" 300
	timeout 60 "$PROFCPU" collect -p "$their" -F 499 -d 1 -o theirs >collect.log 2>&1 || fail "collect: $(cat collect.log)"
	grep -q '1 file on overlay was skipped.*--allow-fs overlay' collect.log || fail "entered their overlay: $(cat collect.log)"
	timeout 60 "$PROFCPU" collect -p "$their" --allow-fs overlay -F 499 -d 1 -o theirs >collect.log 2>&1 || fail "collect: $(cat collect.log)"
	grep -q 'alpha_leaf' theirs/folded_stacks.out || fail "--allow-fs does not permit their overlay: $(cat collect.log)"
	stop "$their"
else
	echo "this kernel permits no overlay in a user namespace: $(cat their.log)"
fi

echo "a root that no longer answers"
need python3
start rooted python3 -c 'import os, sys
os.chroot(sys.argv[1])
while True: pass' "$T/program"
rooted=$STARTED
wait_for_cpu "$rooted" 300
kill -STOP "$SERVER"
sleep 1.1 # until the kernel forgets the attributes
for command in ps "doctor -p $rooted" "collect -p $rooted -F 499 -d 1 -o rooted"; do
	# shellcheck disable=SC2086 # words
	timeout -s KILL 30 "$PROFCPU" $command >log 2>&1
	[ $? -lt 124 ] || { kill -CONT "$SERVER" && fail "$command: did not end: $(cat log)"; }
done
kill -CONT "$SERVER"
stop "$rooted"

echo "a mapped file whose server no longer answers"
mkdir mapped
start mapped "$BUILD/helpers/fuse_mount" "$T/mapped" "$BUILD/examples/shares"
SERVER=$STARTED
T_MOUNTED+=("$T/mapped")
wait_for 10 grep -q mounted mapped.log || fail "no FUSE file system: $(cat mapped.log)"
start mapper python3 -c 'import mmap, os, sys
fd = os.open(sys.argv[1], os.O_RDONLY)
m = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
print("mapped", flush=True)
while True: pass' "$T/mapped/program"
mapper=$STARTED
wait_for 30 grep -q mapped mapper.log || fail "not mapped: $(cat mapper.log)"
kill -STOP "$SERVER"
timeout -s KILL 30 "$PROFCPU" collect -p "$mapper" -F 499 -d 1 -o mapped.out >log 2>&1
status=$?
kill -CONT "$SERVER"
[ "$status" = 0 ] || fail "collect ended with $status: $(cat log)"
build_id_of mapped.out mapped/program && fail "read the file"
stop "$mapper"

echo "an overlay of disks"
mkdir plain plain_merged
cp "$BUILD/examples/shares" plain/program
mount -t overlay -o "lowerdir=$T/plain:$T/other" none "$T/plain_merged" || fail "no overlay"
T_MOUNTED=("$T/plain_merged" "${T_MOUNTED[@]}")
start plain "$T/plain_merged/program" 60
timeout 60 "$PROFCPU" collect -p "$STARTED" -F 499 -d 1 -o plain.out >log 2>&1 || fail "collect: $(cat log)"
if build_id_of plain.out libc.so; then # Linux 6.11
	build_id_of plain.out plain_merged/program || fail "no build id of a file on an overlay"
fi
stop "$STARTED"

echo "a server that never answers"
start silent "$BUILD/helpers/fuse_mount" "$T/silent" silent
T_MOUNTED+=("$T/silent")
wait_for 10 grep -q mounted silent.log || fail "no FUSE file system: $(cat silent.log)"
map=/tmp/perf-$target.map
T_FILES+=("$map")
ln -s "$T/silent/map" "$map"
for command in "collect -p $target -F 499 -d 1 --allow-fs fuse.other -o out" "doctor -p $target" "postprocess out" "symbols list out"; do
	# shellcheck disable=SC2086 # words
	timeout 60 "$PROFCPU" $command >log 2>&1
	[ $? -lt 124 ] || fail "$command: did not end: $(cat log)"
done
[ -s out/folded_stacks.out ] || fail "no outputs"

echo "wrong types"
for type in '' proc 'a b' "$(printf 'x%.0s' {1..40})"; do
	survives "$PROFCPU" collect --allow-fs "$type" -p "$target" -d 1 -o usage
	[ "$SURVIVED" = 2 ] || fail "--allow-fs '$type' gave $SURVIVED: $(cat "$T/refused")"
	grep -q -- '--allow-fs' "$T/refused" || fail "$(cat "$T/refused")"
done
stop "$target"
exit 0
