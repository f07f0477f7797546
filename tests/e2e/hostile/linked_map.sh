#!/usr/bin/env bash
# Files that a target may not read do not reach the outputs through links that the target puts.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need python3
[ "$(uname -m)" = x86_64 ] || skip "needs x86-64, because the program makes code for it"
user=54321

mkdir -m 700 vault && mkdir -m 755 way
touch vault/secret shut open && chmod 600 vault/secret shut open && chown $user open
ln -s ../vault way/first && ln -s "$T/shut" way/last && mkdir -m 755 way/mid && ln -s ../../vault way/mid/link

# link TARGET: starts a program of the user in code that it made. Puts a link in the place of its perf map, and a valid map
# with the text SECRET_NAME into the link's target.
spin="import ctypes, mmap, os
os.setgroups([]); os.setresgid($user, $user, $user); os.setresuid($user, $user, $user)
code = mmap.mmap(-1, 4096, prot=7)
code.write(b'\xeb\xfe') # 1: jmp 1b
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()"
link() {
	start target python3 -c "$spin"
	local map=/tmp/perf-$STARTED.map
	T_FILES+=("$map")
	ln -s "$1" "$map" && chown -h $user "$map" || fail "ln"
	wait_for 30 grep -q rwx "/proc/$STARTED/maps" || fail "no code"
	wait_for_cpu "$STARTED" 300
	echo "$(awk '$2 ~ /rwx/ { sub("-.*", "", $1); print $1; exit }' "/proc/$STARTED/maps") 1000 SECRET_NAME" >"$1"
}

for place in vault/secret shut way/first/secret way/last way/mid/link/secret; do
	link "$T/$place"
	rm -rf out
	"$PROFCPU" collect -p "$STARTED" -F 499 -d 1 -o out >collect.log 2>&1 || fail "$place: $(cat collect.log)"
	"$PROFCPU" fold --pid --all out >folded 2>&1 || fail "$place: fold: $(cat folded)"
	"$PROFCPU" doctor -p "$STARTED" >doctor 2>&1
	grep -rla SECRET_NAME out collect.log folded doctor && fail "$place: a secret of root reached these files"
	grep -q 'its perf map is denied' collect.log || fail "$place: the report does not say why names are missing: $(cat collect.log)"
	stop "$STARTED"
done

echo "the user's own file is read"
link "$T/open"
"$PROFCPU" collect -p "$STARTED" -F 499 -d 1 -o open.out >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q SECRET_NAME open.out/folded_stacks.out || fail "the perf map was not read: $(cat collect.log)"
exit 0
