#!/usr/bin/env bash
# A second recording into the same directory is as good as one into a new directory: nothing of the first is in it.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
"$PROFCPU" collect -F 999 -o again -- sh -c 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done' || fail "collect"
start_shares 60
"$PROFCPU" collect --record-only -F 999 -p "$SHARES_PID" -d 1 -o again || fail "collect into the same directory"
for f in flamegraph.svg folded_stacks.out perf_script.out prof.tar.gz; do
	[ ! -e "again/$f" ] || fail "$f of the older recording stands beside the new perf.data"
done
"$PROFCPU" postprocess -q again || fail "postprocess"
at_least "$(share_of again/folded_stacks.out ';work;')" 80 || fail "names are missing: $(head -n 3 again/folded_stacks.out)"
