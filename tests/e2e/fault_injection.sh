#!/usr/bin/env bash
# Makes every allocation and system call of `collect` fail once, one after another: it must not crash or hang, and a
# failure must be said.
. "$TESTS/e2e/lib.sh"
need_sampling
need gcc xargs
[ "$BUILD" = "$ROOT/build" ] || { echo "runs on the release build"; exit 0; }
gcc -O1 -fPIC -shared -fno-omit-frame-pointer -o "$T/inject.so" "$TESTS/fault/inject.c" -ldl || fail "inject.c does not build"
export T PROFCPU

one() { # SITE FUNCTION
	local out=$T/run-$1 status
	mkdir "$out"
	# timeout would be the one that is disturbed, were it to load the library itself.
	timeout -s KILL 30 env LD_PRELOAD="$T/inject.so" INJECT_SITE="$1" \
		"$PROFCPU" collect -F 999 -o "$out/rec" -- sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' \
		>"$out/stdout" 2>"$out/stderr" </dev/null
	status=$?
	if [ $status -ge 128 ] || [ $status = 124 ]; then
		echo "$1 $2: ended with $status"
		sed 's/^/    /' "$out/stderr"
	elif [ $status != 0 ] && [ ! -s "$out/stderr" ]; then
		echo "$1 $2: failed with $status and said nothing"
	fi
	[ $status = 0 ] || echo "$1" >>"$T/failed"
	rm -rf "$out"
}
export -f one

LD_PRELOAD=$T/inject.so INJECT_LIST=$T/sites "$PROFCPU" collect -F 999 -o "$T/rec" -- \
	sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done' >"$T/stdout" 2>"$T/stderr" ||
	fail "collect does not work undisturbed: $(cat "$T/stderr")"
n=$(wc -l <"$T/sites")
[ "$n" -gt 100 ] || fail "only $n places were seen to call"
xargs -P 2 -n 2 bash -c 'one "$1" "$2"' _ <"$T/sites" >"$T/bad"
cat "$T/bad"
echo "$n places, $(grep -c '^[0-9a-f]' "$T/bad") bad"
[ ! -s "$T/bad" ] || fail "see above"
failed=$(wc -l <"$T/failed")
echo "$failed made collect fail"
[ "$failed" -gt $((n / 4)) ] || fail "only $failed of $n faults were felt: they do not reach profcpu"
