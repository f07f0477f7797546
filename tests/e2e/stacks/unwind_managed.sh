#!/usr/bin/env bash
# Rules of .NET code lead to the true return address at each instruction. Rules of all precompiled framework functions
# agree with the analysis of their code. A program with all kinds of calls is stepped through, and its observed calls
# and returns are the truth. This covers JIT-compiled and precompiled code, thunks and stubs, for UNWIND_VERSIONS of
# .NET ("10").
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need dotnet

mapfile -t files < <(find "$(dirname "$(readlink -f "$(command -v dotnet)")")/shared" -name '*.dll')
"$BUILD/helpers/r2r_rules" -v "${files[@]}" >"$T/rules" || fail "rules and code do not agree: $(grep -v 'bytes of memory' "$T/rules" | head -n 20)"
tail -n 1 "$T/rules"
read -r _ _ functions _ < <(tail -n 1 "$T/rules")
[ "$functions" -ge 100000 ] || fail "only $functions functions"

warm_ms=3000 # CPU time after which hot methods are recompiled
before=0     # seconds before the first calls of the program
# step STEPS ROUNDS VARIABLE=VALUE...: checks that all rules are right; appends the number of instructions of each kind
# of place to $T/places.
step() {
	local steps=$1 rounds=$2 pid
	shift 2
	env "$@" "$PUBLISHED/$name/calls" 300 "" "$before" >"$T/calls.log" 2>&1 &
	pid=$!
	wait_for_cpu "$pid" "$warm_ms"
	"$BUILD/helpers/step_dotnet" "$pid" "$steps" "$rounds" >"$T/step"
	status=$?
	kill "$pid" && wait "$pid" 2>/dev/null
	echo "$name $*:" && cat "$T/step"
	[ $status = 0 ] || fail "$name $*: wrong return addresses, see above: $(cat "$T/calls.log")"
	sed -n 's/ *\([0-9]*\) right,.*/:\1/p' "$T/step" >>"$T/places"
}

for version in ${UNWIND_VERSIONS:-10}; do
	name=calls-net$version
	need_published "$name"
	: >"$T/places"
	step "${UNWIND_STEPS:-60000}" "${UNWIND_ROUNDS:-5}" DOTNET_TieredCompilation=1
	step "${UNWIND_STEPS:-60000}" "${UNWIND_ROUNDS:-3}" DOTNET_TieredCompilation=0
	# Methods are replaced on the stack in their first loop; on a busy machine perhaps not while they are stepped through.
	for try in 1 2 3; do
		step "${UNWIND_STEPS:-60000}" "${UNWIND_ROUNDS:-3}" DOTNET_OSR_HitLimit=1 DOTNET_TC_OnStackReplacement_InitialCounter=1 \
			DOTNET_TC_CallCountThreshold=60000
		! grep -q ', [1-9][0-9]* methods replaced' "$T/step" || break
		[ "$try" -lt 3 ] || fail "$name: no method was replaced on the stack"
	done
	# Thunks of precompiled code run once each, at the first call of their target, so few steps reach one.
	# Stepping begins before them.
	[ -z "${UNWIND_FIRST_ROUNDS-}" ] || warm_ms=500 before=3 step "${UNWIND_STEPS:-60000}" "$UNWIND_FIRST_ROUNDS" DOTNET_TieredCompilation=0
	for least in 'jit body:10000' 'jit edge:5000' 'r2r body:5000' 'r2r edge:2000' "r2r thunk:${UNWIND_THUNKS:-0}" 'stub:1000'; do
		n=$(awk -F: -v place="${least%:*}" '$1 == place { n += $2 } END { print n + 0 }' "$T/places")
		[ "$n" -ge "${least#*:}" ] || fail "$name: only $n instructions of ${least%:*}"
	done
done
