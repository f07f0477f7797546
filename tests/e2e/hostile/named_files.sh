#!/usr/bin/env bash
# Paths in a text or a recording may name any file. Files that its user may not read stay unread, and files on file systems
# that never answer stop nothing. Root reads only those of everybody.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need gcc nm setpriv strip
[ -w /dev/fuse ] || skip "needs /dev/fuse"
mkdir silent theirs && chown 65534:65534 theirs && chmod 700 theirs

cat >app.c <<'C'
static inline __attribute__((always_inline)) int secret(int x) { volatile int s = 0; for (int i = 0; i < x; i++) s += i; return s; }
__attribute__((noinline)) int hot(int x) { return secret(x) * 2; }
int main(int argc, char **argv) { (void)argv; return hot(argc); }
C
gcc -O1 -g -no-pie -o app app.c || fail "cannot compile"
at=$((16#$(nm app | sed -n 's/ T hot$//p')))
size=$((16#$(nm -S app | sed -n 's/^[0-9a-f]* \([0-9a-f]*\) T hot$/\1/p')))
# text_of FILE: samples in each byte of the function.
text_of() {
	local i
	for ((i = 0; i < size; i++)); do
		printf 'app 1/1 [000] 1.5: 1 cycles:\n\t%16x hot+0x%x (%s)\n\n' $((at + i)) "$i" "$1"
	done
}

echo "a file of root"
text_of "$T/app" >text
timeout 60 "$PROFCPU" fold --inline text >out 2>log || fail "fold: $(cat log)"
grep -q 'hot;secret' out || fail "does not read a file that everybody may read: $(cat out log)"
chmod 700 app
timeout 60 "$PROFCPU" fold --inline text >out 2>log || fail "fold: $(cat log)"
grep -q secret out && fail "read a file of root"
grep -q -- '--inline: files not read: 1; .*; root reads only' log || fail "no warning: $(cat log)"

echo "a file of the user, who runs it"
install -o 65534 -m 700 app theirs/app
text_of "$T/theirs/app" >text
cp "$PROFCPU" profcpu
timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups "$T/profcpu" fold --inline text >out 2>log || fail "fold: $(cat log)"
grep -q 'hot;secret' out || fail "does not read the user's own file: $(cat out log)"

echo "a file whose server no longer answers"
start server "$BUILD/helpers/fuse_mount" "$T/silent" "$BUILD/examples/shares"
SERVER=$STARTED
T_MOUNTED+=("$T/silent")
wait_for 10 grep -q mounted server.log || fail "no FUSE file system: $(cat server.log)"
text_of "$T/silent/program" >text
kill -STOP "$SERVER"
timeout -s KILL 30 "$PROFCPU" fold --inline text >out 2>log
status=$?
kill -CONT "$SERVER"
[ "$status" = 0 ] || fail "fold ended with $status: $(cat log)"
grep -q 'files on fuse.test skipped: 1; .*--allow-fs fuse.test' log || fail "no warning: $(cat log)"
timeout 60 "$PROFCPU" fold --inline --allow-fs fuse.test text >out 2>log || fail "fold: $(cat log)"
[ -s log ] && fail "skipped a file that --allow-fs permits: $(cat log)"

echo "a debug file of root beside a recorded image"
cp "$BUILD/examples/shares" program
timeout 60 "$PROFCPU" collect -F 499 -d 1 -o recording -- "$T/program" 1 >log 2>&1 || fail "collect: $(cat log)"
cp program program.dbg
for mode in 644 600; do
	chmod $mode program.dbg
	timeout 60 "$PROFCPU" symbols verify recording >out 2>log
	grep program.dbg out >verdict.$mode
done
grep -q '^ok ' verdict.644 || fail "does not check a debug file that everybody may read: $(cat log)"
[ -s verdict.600 ] && fail "read a file of root: $(cat verdict.600)"

echo "a debug file of root, to which another user leads beside his image"
mkdir -m 755 his && strip -o his/program program && chown 65534 his/program && ln -s "$T/program.dbg" his/program.debug
for mode in 644 600; do
	chmod $mode program.dbg
	for command in list verify; do
		timeout 60 "$PROFCPU" symbols $command "$T/his/program" >"$command.$mode" 2>log || fail "symbols $command: $(cat log)"
	done
done
grep -q ' beside ' list.644 && grep -q '^ok ' verify.644 || fail "no debug file that everybody may read: $(cat list.644 verify.644)"
grep -qE 'beside|^ok ' list.600 verify.600 && fail "read a file of root: $(cat list.600 verify.600)"

echo "a debug file whose server no longer answers"
rm program.dbg && ln -s "$T/silent/program" program.dbg
kill -STOP "$SERVER"
timeout -s KILL 30 "$PROFCPU" symbols verify recording >out 2>log
status=$?
kill -CONT "$SERVER"
[ "$status" -lt 124 ] || fail "symbols verify did not end: $(cat log)"
exit 0
