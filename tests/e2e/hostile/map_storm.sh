#!/usr/bin/env bash
# A target without rights forks, maps or recurses as fast as it can. In a control group of 64 MiB, profcpu takes at most
# 48 MiB. The recording is saved, and can be read.
# Runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need setpriv

# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"
OWN_MIB=48

# look PID: the commands that look at processes have enough memory too, or say that it is missing.
look() {
	local command status
	for command in "ps" "doctor -p $1" "symbols list $1"; do
		# shellcheck disable=SC2086 # words
		in_group "$PROFCPU" $command >look 2>&1
		status=$?
		[ "$status" = 0 ] || grep -q 'list of memory maps is too long' look || fail "$command: exit $status: $(tail -n 3 look)"
	done
}

# storm KIND MAPS [SECONDS [OPTION]]: records such a target; profcpu's largest memory in MiB is in $MIB.
storm() {
	local status
	start "storm.$1" setpriv --reuid=65534 --regid=65534 --clear-groups "$BUILD/helpers/map_storm" "$1" "${3:-9}" "$2"
	local target=$STARTED
	sleep 1
	[ "$1" != paths ] || look "$target"
	in_group "$BUILD/helpers/peak_kib" "$PROFCPU" collect -q -p "$target" -F 499 -d 6 "${@:4}" -o "$1" 2>"$1.err"
	status=$?
	MIB=$(($(tail -n 1 "$1.err") / 1024))
	[ "$status" = 0 ] || fail "$1: exit $status: $(cat "$1.err")"
	echo "$1: $MIB MiB; $(stat -c %s "$1/perf.data") bytes; $(report_number "$1" samples) samples"
	stop "$target"
	[ "$MIB" -le "$OWN_MIB" ] || fail "profcpu took $MIB MiB of $LIMIT_MIB"
	# Threads that end within a sampling period have no samples. Those that change names lose theirs.
	[ "$1" = threads ] || [ "$1" = comms ] || [ "$(report_number "$1" samples)" -gt 0 ] || fail "$1: no samples"
	"$PROFCPU" fold "$1" >"$1.folded" 2>"$1.fold.err" || fail "fold of $1: exit $?: $(cat "$1.fold.err")"
	[ "$1" = threads ] || [ "$1" = comms ] || [ -s "$1.folded" ] || fail "$1: nothing was recorded"
}

storm chain 20000
storm names 0
# The target mapped more files than the limit allows. The report counts those that were left out.
[ "$(stat -c %s names/perf.data)" -lt 20000000 ] || [ "$(report_number names maps_left_out)" -gt 0 ] ||
	fail "names: no map was left out"
storm threads 0
rm -r threads
storm threads 0 9 --off-cpu
# A lower rate of samples would not help.
storm comms 16 9 -F 99
[ "$(report_number comms other_records)" -gt 0 ] || fail "comms: no record of a name was lost: $(cat comms/report.json)"
"$PROFCPU" postprocess comms >comms.report 2>&1 || fail "postprocess of comms: $(cat comms.report)"
grep 'use a lower -F' comms.report && fail "comms: $(cat comms.report)"
start renames "$BUILD/helpers/map_storm" comms 60 16
in_group "$PROFCPU" collect -q -a -d 3 -o renames >log 2>&1 || fail "collect -a: exit $?: $(cat log)"
stop "$STARTED"
[ "$(report_number renames lost)" = 0 ] || fail "-a: samples lost: $(cat renames/report.json)"
at_least "$(grep -c '^map_storm;\|^[0-9]*;.*rename_self' renames/folded_stacks.out)" 1 || fail "-a: no sample: $(head renames/folded_stacks.out)"
# Deep stacks, each different. Those that did not fit are cut and counted, and no sample is missing.
storm stacks 0
[ "$(report_number stacks stack_memory)" -gt 0 ] || fail "stacks: no stack was cut: $(cat stacks/report.json)"
grep -q '^[^;]*;\[truncated\];.*call_left [0-9]*$' stacks/folded_stacks.out || fail "stacks: no cut stack in the outputs"
weights() { awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$1"; }
[ "$(weights stacks/folded_stacks.out)" = "$(weights stacks.folded)" ] || fail "stacks: samples are missing in the outputs"
fold_cut() { # INPUT
	in_group "$PROFCPU" fold "$1" >cut.folded 2>cut.err ||
		fail "fold of $1 with little memory: exit $?: $(cat cut.err)"
	grep -q 'stacks have only their innermost frames' cut.err || fail "fold of $1 does not say what it cut: $(cat cut.err)"
	[ "$(weights cut.folded)" = "$(weights stacks.folded)" ] || fail "fold of $1 with little memory: samples are missing"
}
fold_cut stacks
"$PROFCPU" postprocess -q --offline stacks 2>more.err || fail "postprocess with more memory: exit $?: $(cat more.err)"
[ -z "$(report_number stacks stack_memory)" ] || fail "with more memory, stacks are still cut"
cmp stacks/folded_stacks.out stacks.folded || fail "with more memory, the stacks differ"
fold_cut stacks/perf_script.out
in_group "$PROFCPU" flamegraph stacks.folded >cut.svg 2>cut.err ||
	fail "flamegraph with little memory: exit $?: $(cat cut.err)"
grep -q 'stacks in pictures lack frames or names' cut.err || fail "flamegraph does not say what it cut: $(cat cut.err)"
grep -q '\[truncated\]' cut.svg || fail "the picture does not show that stacks were cut"
# Each sample has 2,000 frames at new addresses. In the outputs, those that do not fit share one frame; no sample is missing.
storm places 0
[ "$(report_number places addresses)" -gt 0 ] || fail "places: no address was left out: $(cat places/report.json)"
in_group "$PROFCPU" fold places >few.folded 2>few.err || fail "fold of places with little memory: exit $?: $(cat few.err)"
[ "$(weights few.folded)" = "$(weights places.folded)" ] || fail "fold of places with little memory: samples are missing"
rm -r places
storm places 1 9 --off-cpu
# The kernel's list of these maps has 95 MiB.
storm paths 25000 60
