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
