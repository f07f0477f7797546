#!/usr/bin/env bash
# Stacks of native programs that describe their own calls (tests/stacks/known.h). Each user sample has exactly the
# frames from the start of its thread to the sampled function. The printed table compares both kinds of perf's stacks.
# STACKS_PROGRAMS: other programs than these few. STACKS_PERF: programs that perf records too. STACKS_MS: recorded CPU
# time of each. STACKS_CHANCE: allows two standard deviations below 99.5 %, for few samples.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf gcc g++ clang python3 c++filt
need_sampling
need_release

WORK_MS=${STACKS_MS:-1000}
HZ=999
programs=(plain-O0 plain-gcc plain-lto-clang edges-gcc calls-gcc libraries-lazy exceptions-gcc recursion-100 signals-gcc threads)
[ -z "${STACKS_PROGRAMS:-}" ] || read -ra programs <<<"$STACKS_PROGRAMS"
read -ra beside_perf <<<"${STACKS_PERF:-plain-O0 plain-gcc}"

# check TOOL FILE [OPTION...]: prints a row of the table; examples of errors are in NAME.TOOL.bad.
check() {
	local tool=$1 file=$2
	shift 2
	python3 "$TESTS/stacks/check.py" --row "$name" "$tool" --images bin "$@" "$name.log" "$file" >>rows 2>"$name.$tool.bad"
}
# share PROGRAM TOOL COLUMN...: these columns of the table in percent of the samples; -1 if there are too few.
COLUMNS_OF_ROWS="program tool samples exact main cut missing wrong kernel kernel-exact misnamed worst function"
share() {
	awk -v p="$1" -v t="$2" -v names="$COLUMNS_OF_ROWS" -v wanted="${*:3}" '
		BEGIN { n = split(names, name, " "); m = split(wanted, want, " "); share = -1; for (i = 1; i <= n; i++) at[name[i]] = i }
		$1 == p && $2 == t && $3 >= 100 { share = 0; for (i = 1; i <= m; i++) share += 100 * $at[want[i]] / $3 }
		END { printf "%.2f\n", share }' rows
}

# A recording ends when the program has used its CPU time, however busy the machine is. Just before libgcc enters a
# handler, it overwrites the frames of its callers. This affects 2 of 1,000 samples of exceptions, and by chance more of
# few samples, so exceptions are recorded longer. So are vfork and calls, which partly work in the kernel.
export -f cpu_ms wait_for_cpu
until_worked() {
	local ms=$WORK_MS
	[[ $name != exceptions-* && $name != vfork-* && $name != calls-* ]] || ms=$((3 * WORK_MS))
	UNTIL=(bash -c 'wait_for_cpu "$@"' - "$pid" "$ms")
}

# with_perf TOOL STACKS: records $pid with perf.
with_perf() { perf_record "$1.data" -q -N -B -e cpu-clock -F "$HZ" --call-graph "$2" -p "$pid" -- "${UNTIL[@]}"; }
# check_perf TOOL: checks the recording of with_perf, if it made one.
check_perf() {
	[ -e "$1.data" ] || return 0
	perf script --no-inline --max-stack 20000 -i "$1.data" >"$name.$1" 2>"$1.err" || fail "perf script: $(cat "$1.err")"
	rm "$1.data"
	check "$1" "$name.$1" || fail "check.py: $(cat "$name.$1.bad")"
}

# start_known ARG...: starts the program $name; its PID is in $pid.
start_known() {
	start "$name" "$@"
	pid=$STARTED
	wait_for 20 grep -q '^READY' "$name.log" || fail "$name did not start: $(cat "$name.log")"
}

# start_program: starts it with its arguments, and changes its files if required. Sets $bytes, the size of its stacks.
start_program() {
	local depth lib=lib$name-second.so
	bytes=16384
	case $name in
	recursion-*)
		depth=${name#recursion-}
		depth=${depth%-m32}
		[ "${depth%-fp}" -lt 300 ] || bytes=65528
		start_known "bin/$name" "${depth%-fp}"
		;;
	plugins) start_known "bin/$name" bin/plugin-one.so bin/plugin-two.so ;;
	libraries-gone | libraries-replaced)
		rm -rf run && cp -r bin run # keep their known data
		start_known "run/$name"
		rm "run/$lib" "run/$name"
		[ "$name" = libraries-gone ] || cp "run/lib$name-first.so" "run/$lib"
		;;
	*) start_known "bin/$name" ;;
	esac
}

mkdir bin
: >rows
"$TESTS/stacks/build" bin "${programs[@]}" >build.log 2>&1 || fail "the programs do not build: $(cat build.log)"
for name in "${programs[@]}"; do
	start_program
	until_worked
	case " ${beside_perf[*]} " in
	*" $name "* | " all ")
		with_perf perf-fp fp
		with_perf perf-dwarf "dwarf,$bytes"
		;;
	esac
	record rec -q --no-download -e cpu-clock -F "$HZ" -p "$pid" -- "${UNTIL[@]}"
	stop "$pid"
	mv rec/perf_script.out "$name.profcpu"
	rm -r rec
	check profcpu "$name.profcpu" || fail "check.py: $(cat "$name.profcpu.bad")"
	check_perf perf-fp
	check_perf perf-dwarf
done

# The table: percent of samples with exactly their stack, and with a complete one from main or the thread's function on.
awk '
	BEGIN { printf "%-20s %18s %18s %18s\n", "exact / from main", "profcpu", "perf -g", "perf dwarf" }
	function of(p, t) { return n[p, t] ? sprintf("%6.2f / %6.2f %%", 100 * e[p, t] / n[p, t], 100 * (e[p, t] + m[p, t]) / n[p, t]) : "-" }
	!($1 in seen) { seen[$1] = 1; order[++programs] = $1 }
	{ n[$1, $2] = $3; e[$1, $2] = $4; m[$1, $2] = $5 }
	END { for (i = 1; i <= programs; i++) { p = order[i]
		printf "%-20s %18s %18s %18s\n", p, of(p, "profcpu"), of(p, "perf-fp"), of(p, "perf-dwarf") } }' rows
echo
{ echo "$COLUMNS_OF_ROWS" && cat rows; } | column -t
[ -z "${STACKS_KEEP:-}" ] || { mkdir -p "$STACKS_KEEP" && cp -r ./*.log ./*.p* rows bin "$STACKS_KEEP"; }

# Each stack is complete, unless the copy is too short; then its part is right. Without CFI the sampled function's
# caller is known only if that function has a frame pointer. Without frame pointers too, everything is guessed.
for name in "${programs[@]}"; do
	case ${name%-m32} in
	recursion-10000 | signals-alternate) wanted=(exact main cut) ;;
	no-cfi-fp) wanted=(exact missing) ;;
	no-cfi) continue ;;
	*) wanted=(exact) ;;
	esac
	least=99.5
	[ -z "${STACKS_CHANCE:-}" ] || least=$(awk -v p="$name" '$1 == p && $2 == "profcpu" { print 99.5 - 200 * sqrt(0.005 / $3) }' rows)
	at_least "$(share "$name" profcpu "${wanted[@]}")" "$least" || fail "$name: $(grep "^$name" rows) $(cat "$name.profcpu.bad")"
	case $name in
	edges-*) at_least "$(awk -v n="$name" '$1 == n && $2 == "profcpu" { print $12 }' rows)" 95 || fail "a function loses its callers: $(grep "^$name" rows)" ;;
	esac
done

# Checks the check itself: perf with CFI is mostly right, and frame pointers never show the caller of a frameless leaf.
[ "${STACKS_PERF:-}" ] && exit
at_least "$(share plain-gcc perf-dwarf exact)" 95 || fail "perf's stacks by CFI: $(cat plain-gcc.perf-dwarf.bad)"
at_least "$(share plain-O0 perf-fp exact main)" 80 || fail "perf's stacks by frame pointers: $(cat plain-O0.perf-fp.bad)"
within "$(share plain-gcc perf-fp exact main)" 0 5 || fail "frame pointers find the caller of a frameless leaf: $(grep plain-gcc rows)"
# The check detects missing and additional frames: each second frame removed, one frame doubled, and another function's
# name.
name=plain-gcc
for edit in 'n == 2 { next } 1' '1; n == 2' 'n == 2 { held = $0; next } 1; n == 3 { print held }'; do
	awk '/^[^ \t]/ { n = 0 } /^[ \t]/ { n++ } '"$edit" plain-gcc.perf-dwarf >edited
	check edited edited
	within "$(share plain-gcc edited exact)" 0 1 || fail "stacks are exact after $edit: $(grep edited rows)"
	sed -i '/\tedited\t/d' rows
done
sed 's/ outer+/ other+/' plain-gcc.perf-dwarf >edited
check edited edited
at_least "$(share plain-gcc edited misnamed)" 1 || fail "a wrong name is not detected: $(grep edited rows)"
at_least "$(share plain-gcc edited exact)" 95 || fail "a wrong name counts as a wrong stack: $(grep edited rows)"
