#!/usr/bin/env bash
# Many processes that share many maps, and maps that overlap: `fold` takes at most 150 MB and 5 s, and finds every map.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need python3

# measured COMMAND...: runs it; its peak memory in MB and its CPU time in ms are in $MB and $MS.
measured() {
	python3 -c '
import resource, subprocess, sys
status = subprocess.run(sys.argv[2:]).returncode
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_maxrss // 1024, int((used.ru_utime + used.ru_stime) * 1000), file=open(sys.argv[1], "w"))
sys.exit(status if status >= 0 else 128 - status)' "$T/used" "$@" || return
	read -r MB MS <"$T/used"
}
folds() { # ARG...: folds what many_processes writes with these arguments
	"$BUILD/helpers/many_processes" many.data "$@" || fail "many_processes $*"
	measured "$PROFCPU" fold many.data >folded 2>err || fail "fold of $*: exit $?: $(cat err)"
	echo "$*: $(stat -c %s many.data) bytes, $MB MB, $MS ms"
	[ "$MB" -le 150 ] || fail "fold of $* took $MB MB"
	[ "$MS" -le 5000 ] || fail "fold of $* took $MS ms"
	[ ! -s err ] || fail "fold of $*: $(cat err)"
}

# Samples in the newest maps of each process, of its parent, and of the first process.
folds chain 2000 20000
[ "$(cat folded)" = 'many;[truncated];[missing.so] 2000' ] || fail "not all maps were found: $(cat folded)"
folds chain 20000 2000
[ "$(cat folded)" = 'many;[truncated];[missing.so] 20000' ] || fail "not all maps were found: $(cat folded)"
# As many maps as a process may have, over one another.
folds overlap 250000
[ "$(weight_of folded)" = 2500 ] || fail "$(weight_of folded) of 2500 samples"

# report MAPS: writes the report of that many overlapping maps; sets $LEFT_OUT to the maps that it left out.
report() {
	"$BUILD/helpers/many_processes" many.data overlap "$1" || fail "many_processes overlap $1"
	measured "$PROFCPU" postprocess many.data -o "report.$1" >"report.$1.txt" 2>err || fail "postprocess: exit $?: $(cat err)"
	LEFT_OUT=$(report_number "report.$1" maps_left_out)
	echo "$1 maps: $MB MB, $MS ms, $LEFT_OUT left out"
	[ "$MB" -le 150 ] || fail "$1 maps took $MB MB"
	[ "$MS" -le 5000 ] || fail "$1 maps took $MS ms"
}
report 100000
[ "$LEFT_OUT" = 0 ] || fail "maps below the limit were left out"
! grep 'maps of code' report.100000.txt || fail "the report counts maps that were not left out"
report 300000
[ "$LEFT_OUT" -gt 10000 ] || fail "$LEFT_OUT maps were left out"
grep -q "^ *$LEFT_OUT maps of code were left out: the limits are 262144 maps for each process, 48.0 MiB for all, 128.0 MiB for their files; half for one process and its forks. Process [0-9]* lacks most$" report.300000.txt ||
	fail "the report does not say what was left out: $(cat report.300000.txt)"
