#!/usr/bin/env bash
# Makes every allocation of `fold` of a text and of `postprocess` fail once, one after another; the long test also those of
# `fold` of a recording. The result equals that with enough memory, or the error reports lack of memory, or that a file could not be
# read for names; they never change silently. Not tested: reading an archive, which libarchive does not survive.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need gcc xargs
need_release
gcc -O1 -fPIC -shared -fno-omit-frame-pointer -o "$T/inject.so" "$TESTS/fault/inject.c" -ldl || fail "inject.c does not build"
record rec --record-only -F 499 -- "$BUILD/examples/shares" 0.5
export T PROFCPU
export HOME=$T # no cached files of perf that change names

# run COMMAND OUT: stores the command's output in OUT.
run() {
	case $1 in
	postprocess) cp -r "$T/rec" "$2.rec" && "${@:3}" "$PROFCPU" postprocess -q "$2.rec" && cat "$2.rec"/{folded_stacks.out,perf_script.out} >"$2" ;;
	text) "${@:3}" "$PROFCPU" fold "$T/text" >"$2" ;;
	inline) "${@:3}" "$PROFCPU" fold --inline --context "$T/text" >"$2" ;;
	inlines) "${@:3}" "$PROFCPU" fold --inlines --lines "$T/rec" >"$2" ;;
	*) "${@:3}" "$PROFCPU" fold "$T/rec" >"$2" ;;
	esac
}
one() { # COMMAND SITE FUNCTION
	local out=$T/run-$1-$2 status=0
	run "$1" "$out" timeout -s KILL 30 env LD_PRELOAD="$T/inject.so" INJECT_SITE="$2" 2>"$out.err" </dev/null || status=$?
	if [ $status -ge 124 ]; then
		echo "$1 $2 $3: ended with $status"
	elif [ $status != 0 ]; then
		grep -qiE 'out of memory|cannot allocate memory|memory is out' "$out.err" ||
			echo "$1 $2 $3: failed with $status and no reason: $(cat "$out.err")"
		echo "$1 $2" >>"$T/failed"
		grep -q 'error: cannot read .*: out of memory; raise the limit of memory' "$out.err" && echo "$1 $2" >>"$T/with_remedy"
	elif ! cmp -s "$out" "$T/$1.good" && ! grep -qE 'memory|cannot read [0-9]+ files? for names' "$out.err"; then
		echo "$1 $2 $3: the result differs without a message"
	fi
	rm -rf "$out" "$out".*
}
export -f one run

cp -r rec whole
"$PROFCPU" postprocess -q whole || fail "postprocess"
cp whole/perf_script.out text
: >failed
for command in ${OUT_OF_MEMORY_COMMANDS:-text postprocess}; do # the long test has all commands
	run $command "$command.good" env LD_PRELOAD="$T/inject.so" INJECT_LIST="$T/sites" || fail "$command does not work without faults"
	[ -s "$command.good" ] || fail "$command prints nothing"
	grep -E ' (malloc|calloc|realloc|reallocarray|strdup|mmap|mmap64)$' sites | sed "s/^/$command /" >"$command.sites"
	rm sites
	n=$(wc -l <"$command.sites")
	[ "$n" -gt 30 ] || fail "$command: only $n call sites that allocate were found"
	xargs -P 2 -n 3 bash -c 'one "$1" "$2" "$3"' _ <"$command.sites" >"$command.bad"
	sort "$command.bad"
	echo "$command: $n call sites, $(wc -l <"$command.bad") bad, $(grep -c "^$command" failed) made it fail"
	[ "$(grep -c "^$command" failed)" -gt $((n / 3)) ] || fail "$command: the faults do not reach profcpu"
done
[ -z "$(cat ./*.bad)" ] || fail "crashes, or failures without a reason, see above"
[ "$(wc -l <with_remedy)" -gt $(($(wc -l <failed) / 4)) ] || fail "only $(wc -l <with_remedy) of $(wc -l <failed) failures have a remedy"
