#!/usr/bin/env bash
# valgrind finds nothing in the unit tests, the corpora, and the commands at work: no wrong access, no leak.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need valgrind
need_release
need_sampling

clean() { # COMMAND...
	local status=0
	valgrind -q --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible --log-file="$T/vg" \
		"$@" >"$T/out" 2>&1 </dev/null || status=$?
	[ "$status" != 99 ] || fail "$*: $(grep -v '^--' "$T/vg" | head -n 40) $(tail -n 20 "$T/out")"
	[ "$status" = 0 ] || fail "$* gave $status: $(tail -n 5 "$T/out")"
}

cd "$ROOT" || exit 1
for t in "$BUILD"/unit/test_*; do
	case $t in
	*.d) ;;
	*) clean "$t" ;;
	esac
done
for t in "$BUILD"/replay/*; do
	case $t in
	*.d) ;;
	*) clean "$t" "tests/fuzz/corpus/${t##*/}" ;;
	esac
done
cd "$T" || exit 1
start_shares 120
clean "$PROFCPU" collect -p "$SHARES_PID" -F 199 -d 2 -o "$T/rec"
clean "$PROFCPU" postprocess "$T/rec"
clean "$PROFCPU" postprocess -o "$T/again" "$T/rec/prof.tar.gz"
clean "$PROFCPU" fold "$T/rec/perf.data"
clean "$PROFCPU" fold --pid --kernel --jit "$T/rec/perf_script.out"
clean "$PROFCPU" flamegraph "$T/rec/folded_stacks.out"
clean "$PROFCPU" flamegraph "$T/rec"
clean "$PROFCPU" ps
clean "$PROFCPU" doctor -p "$SHARES_PID"
clean "$PROFCPU" help collect
