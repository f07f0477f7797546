#!/usr/bin/env bash
# valgrind finds no invalid access and no leak in the unit tests, the corpora, and the running commands.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need valgrind
need_release
need_sampling

bad=()
clean() { # COMMAND...: prints valgrind's findings and continues
	local status=0
	# test_windows has 2 MB and more on its stack.
	valgrind -q --max-stackframe=8388608 --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite,possible --log-file="$T/vg" \
		"$@" >"$T/out" 2>&1 </dev/null || status=$?
	[ "$status" = 0 ] && return
	bad+=("$1")
	echo "$* gave $status"
	tail -n 10 "$T/out"
	grep -v '^--' "$T/vg" | head -n 40 # without valgrind's messages about unknown system calls
}

cd "$ROOT" || exit 1
while IFS= read -r t; do
	clean "$t"
done < <(find "$BUILD/unit" -name 'test_*' -type f -executable | LC_ALL=C sort)
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
[ ${#bad[@]} = 0 ] || fail "${#bad[@]} of these commands are not clean: ${bad[*]##*/}"
