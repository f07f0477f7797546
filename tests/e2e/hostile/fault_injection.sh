#!/usr/bin/env bash
# Makes allocations and system calls of `collect` fail once, one after another: it must not crash or hang, and must
# report failures. This test covers every second call site. The long test covers all, also with the whole machine and
# .NET processes.
# May take 1200 s.
# Runs beside others, from the start.
. "$TESTS/e2e/lib.sh"
need_sampling
need gcc xargs
need_release
gcc -O1 -fPIC -shared -fno-omit-frame-pointer -o "$T/inject.so" "$TESTS/fault/inject.c" -ldl || fail "inject.c does not build"
export T PROFCPU

# Arguments in $ARGUMENTS for both ways to open events (for each thread, for each CPU), and for names of .NET processes.
collect_of() { # WAY DIR
	case $1 in
	names) set -- -F 99 -q -p "$SERVICES" --record-only -d 0.1 -o "$2" ;;
	command) set -- -F 999 -o "$2" -- sh -c 'i=0; while [ $i -lt 4000 ]; do i=$((i+1)); done' ;;
	machine) set -- -F 99 -q -a --jit-names=none --record-only -d 0.1 -o "$2" ;;
	esac
	ARGUMENTS=(collect "$@")
}

one() { # WAY SITE FUNCTION
	local way=$1 status
	shift
	local out=$T/run-$way-$1
	collect_of "$way" "$out/rec"
	mkdir "$out"
	# timeout must not load the library, or it would fail instead.
	timeout -s KILL 30 env LD_PRELOAD="$T/inject.so" INJECT_SITE="$1" \
		"$PROFCPU" "${ARGUMENTS[@]}" >"$out/stdout" 2>"$out/stderr" </dev/null
	status=$?
	if [ $status -ge 128 ] || [ $status = 124 ]; then
		echo "$1 $2 ($way): ended with $status"
		sed 's/^/    /' "$out/stderr"
	elif [ $status != 0 ] && [ ! -s "$out/stderr" ]; then
		echo "$1 $2 ($way): failed with $status and printed nothing"
	fi
	[ $status = 0 ] || echo "$way $1" >>"$T/failed"
	rm -rf "$out"
}
export -f one collect_of

for way in ${FAULT_INJECTION_WAYS:-command}; do
	collect_of $way "$T/rec-$way"
	LD_PRELOAD=$T/inject.so INJECT_LIST=$T/sites.$way "$PROFCPU" "${ARGUMENTS[@]}" >"$T/stdout" 2>"$T/stderr" ||
		fail "collect does not work without faults: $(cat "$T/stderr")"
	sed "s/^/$way /" "$T/sites.$way" >>"$T/sites"
done
n=$(wc -l <"$T/sites")
[ "$n" -gt 300 ] || fail "only $n call sites were found"
awk -v every="${FAULT_INJECTION_EVERY:-2}" 'NR % every == 0' "$T/sites" >"$T/tried"
n=$(wc -l <"$T/tried")
xargs -P 2 -n 3 bash -c 'one "$1" "$2" "$3"' _ <"$T/tried" >"$T/bad"
cat "$T/bad"
echo "$n call sites, $(grep -c '^[0-9a-f]' "$T/bad") bad"
[ ! -s "$T/bad" ] || fail "crashes or missing messages, see above"
failed=$(wc -l <"$T/failed")
echo "$failed made collect fail"
[ "$failed" -gt $((n / ${FAULT_INJECTION_FAIL_EVERY:-5})) ] || fail "only $failed of $n faults had an effect: they do not reach profcpu"
