#!/usr/bin/env bash
# A process has mounts whose list is longer than profcpu reads: files on further mounts are skipped and counted.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
mkdir first last
cp "$BUILD/examples/shares" program

# crowd: in a mount namespace of its own, tmpfs "first", 4.5 MB of mountinfo, then tmpfs "last"; runs a program on each.
# shellcheck disable=SC2016 # for the other shell
start crowd unshare -m --propagation private bash -ec '
	mount -t tmpfs none first && cp program first/early
	printf -v name "\\n%.0s" {1..240}
	cd -P first
	for i in {1..14}; do mkdir -- "$name" && cd -P -- "$name"; done
	mkdir m
	for i in {1..170}; do mount -cni --bind m m; done
	cd "$0"
	mount -t tmpfs none last && cp program last/late
	setpriv --pdeathsig KILL first/early 60 & exec last/late 60' "$T"
crowd=$STARTED
wait_for 30 grep -q late "/proc/$crowd/comm" || fail "no mounts: $(cat crowd.log)"
wait_for_cpu "$crowd" 300
at_least "$(wc -c <"/proc/$crowd/mountinfo")" $((4 << 20)) || fail "mountinfo is too short"
timeout 60 "$PROFCPU" collect -p "$crowd" -F 499 -d 1 -o out >collect.log 2>&1 || fail "collect: $(cat collect.log)"
grep -q '1 file on unknown mounts was skipped: the process has too many mounts' collect.log || fail "not counted: $(cat collect.log)"
grep -q '^early;.*alpha_leaf' out/folded_stacks.out || fail "no names of a file on a known mount: $(cat collect.log)"
grep -q '^late;' out/folded_stacks.out || fail "no samples: $(cat collect.log)"
grep -q '^late;.*alpha_leaf' out/folded_stacks.out && fail "read a file on an unknown mount"
stop "$crowd"
exit 0
