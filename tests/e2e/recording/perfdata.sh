#!/usr/bin/env bash
# Our reader of perf.data agrees with `perf report -D` on files of `perf record` in various modes. It gives the same
# records in the same order, with the same times, contents and callchains.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf
need_sampling
need_root

dump=$BUILD/helpers/perfdata_dump
kernel_types='MMAP|LOST|COMM|EXIT|THROTTLE|UNTHROTTLE|FORK|READ|SAMPLE|MMAP2|AUX|ITRACE_START|LOST_SAMPLES|SWITCH'
kernel_types+='|SWITCH_CPU_WIDE|NAMESPACES|KSYMBOL|BPF_EVENT|CGROUP|TEXT_POKE'
with_content='MMAP|MMAP2|COMM|FORK|EXIT|SAMPLE'

# Output of perf report -D in the format of perfdata_dump. Records about /proc and files without sample_id_all have time
# 0.
as_perf() { # FILE
	perf report -D -i "$1" 2>/dev/null </dev/null | sed -nE "
		s/^([-0-9]+ )?([-0-9]+) 0x[0-9a-f]+ \[(0x[0-9a-f]+)\]: PERF_RECORD_($kernel_types)\b(.*)/\2 [\3]: \4\5/
		t record
		s/^\.\.\.\.\. +[0-9]+: 0*([0-9a-f]+)\$/\1/p
		d
		:record
		s/ +\$//
		s/^-1 /0 /
		/^[0-9]+ \[0x[0-9a-f]+\]: ($with_content)\b/! s/^([0-9]+ \[[^ ]+ [A-Z_0-9]+).*/\1/
		p"
}

# same_as_perf NAME FILE [LEAST]: compares at least LEAST samples; sanitizer builds only read them.
same_as_perf() {
	local samples
	"$dump" dump "$2" >"$T/ours.raw" || fail "$1: perfdata_dump gave $?"
	# A name may end in blanks, or continue in a second line, which as_perf removes.
	sed -nE 's/ +$//; /^([0-9]+ \[.*|[0-9a-f]+)$/p' "$T/ours.raw" >"$T/ours.txt"
	if is_release; then
		as_perf "$2" >"$T/perf.txt"
		cmp -s "$T/perf.txt" "$T/ours.txt" || fail "$1: $(diff "$T/perf.txt" "$T/ours.txt" | head -n 10)"
		perf evlist -i "$2" 2>/dev/null </dev/null | grep -v '^#' | diff - <("$dump" events "$2") ||
			fail "$1: names of events differ from perf evlist's"
	fi
	"$dump" walk "$2" >"$T/walk.txt"
	grep -q '^unknown_types 0 damaged 0 unknown_features 0 ' "$T/walk.txt" || fail "$1: $(cat "$T/walk.txt")"
	grep -q '^truncated_at 0 unfinished 0' "$T/walk.txt" || fail "$1: $(cat "$T/walk.txt")"
	samples=$(sed -n 's/^SAMPLE //p' "$T/walk.txt")
	[ "${samples:-0}" -ge "${3:-50}" ] || fail "$1: only ${samples:-0} samples"
	echo "$1: $(wc -l <"$T/ours.txt") lines, $samples samples"
}

load() { "$BUILD/examples/shares" "$1" >/dev/null; }
export -f load
export BUILD HOME=$T # perf caches build ids there

perf_record g.data -F 999 -g -- "$BUILD/examples/shares" 1
same_as_perf "-g" g.data
perf_record all.data -F 999 -a -g -- bash -c 'load 0.5 & for i in {1..50}; do /bin/true; done; wait'
same_as_perf "-a -g" all.data
perf_record two.data -F 999 -a -g -e cpu-clock -e page-faults -e context-switches -- bash -c 'load 0.5; ls -lR /etc'
same_as_perf "three events" two.data
# Different sample types: perf gives all of them an IDENTIFIER.
perf_record shapes.data -e cpu-clock/freq=999,call-graph=fp/ -e page-faults/period=10,call-graph=no/ -d -- bash -c 'load 0.5'
same_as_perf "two shapes" shapes.data
perf_record group.data -F 499 -e '{cpu-clock,page-faults,task-clock}' -- "$BUILD/examples/shares" 0.5
same_as_perf "a group" group.data
# The leader's samples count for each member by the change of its counter.
perf_record read.data -F 999 -e '{cpu-clock,page-faults,task-clock}:S' -- "$BUILD/examples/shares" 0.5
perf script --ns -F time,period,event -i read.data 2>/dev/null | sed -E 's/^ +//; s/  +/ /g; s/ +$//' >"$T/perf.txt"
"$dump" periods read.data | cmp - "$T/perf.txt" || fail "a group that is read: periods differ from perf's"
[ "$(wc -l <"$T/perf.txt")" -ge 300 ] || fail "a group that is read: few samples"
perf_record user.data -F 999 -e cpu-clock:u -g -- "$BUILD/examples/shares" 0.5
same_as_perf "cpu-clock:u" user.data
perf_record dwarf.data -F 199 --call-graph dwarf,8192 -- "$BUILD/examples/shares" 1
same_as_perf "--call-graph dwarf" dwarf.data
[ "$("$dump" sizes dwarf.data | awk '$6 > 0 && $8 == 1' | wc -l)" -ge 50 ] || fail "no user stacks in $(head -n 3 ours.txt)"
perf_record buildids.data -F 999 --buildid-mmap -a -- "$BUILD/examples/shares" 0.3
same_as_perf "--buildid-mmap" buildids.data
perf_record switches.data -F 999 -a --switch-events --namespaces --all-cgroups -- "$BUILD/examples/shares" 0.3
same_as_perf "switches and namespaces" switches.data
perf_record many.data -F 999 -g -d --phys-data --code-page-size --data-page-size -W -- "$BUILD/examples/shares" 0.3
same_as_perf "addresses, page sizes, weights" many.data
perf_record clock.data -F 999 -k CLOCK_MONOTONIC -g -- "$BUILD/examples/shares" 0.3
same_as_perf "-k" clock.data
"$dump" info clock.data | grep -qx 'clockid 1' || fail "no clock in the header"
if perf record -z -o /dev/null -- true >"$T/record.log" 2>&1; then
	perf_record z.data -z -F 4999 -a -g -- "$BUILD/examples/shares" 0.3
	same_as_perf "-z" z.data
	"$dump" info z.data | grep -qx 'compressed 1' || fail "-z: no compression in the header"
else
	echo "this perf has no zstd: $(cat "$T/record.log")"
fi
perf_record data.pipe -F 999 -a -g -- "$BUILD/examples/shares" 0.5
same_as_perf "pipe mode, as a file" data.pipe
"$dump" dump - < <(cat data.pipe) | cmp - "$T/ours.raw" || fail "pipe mode through a pipe differs"
"$dump" info data.pipe | grep -qx 'pipe 1' || fail "pipe mode is not recognized"

# Contents of the header.
perf report --header-only -i g.data >"$T/header.txt" 2>/dev/null
"$dump" info g.data >"$T/info.txt"
for line in 'hostname:hostname' 'os release:os_release' 'perf version:version' 'arch:arch'; do
	want=$(sed -n "s/^# ${line%%:*} : //p" "$T/header.txt")
	grep -qxF "${line##*:} $want" "$T/info.txt" || fail "${line%%:*} is $want for perf: $(cat "$T/info.txt")"
done
# Programs of one root only, because perf keeps one build id for each path.
perf buildid-list -i g.data 2>/dev/null | sort >"$T/list.txt"
grep -E '^[0-9a-f]{40} ' "$T/info.txt" | sort | cmp - "$T/list.txt" || fail "build ids differ from perf's"

# Tracepoints: each context switch with its payload, in a mount namespace of our own.
cat >"$T/tracepoint" <<'EOF'
[ -d /sys/kernel/tracing/events ] || mount -t tracefs nodev /sys/kernel/tracing 2>/dev/null
exec perf record "$@"
EOF
PERF_RECORD=(unshare -m bash "$T/tracepoint")
if "${PERF_RECORD[@]}" -q -e sched:sched_switch -o "$T/tried.data" -- true >/dev/null 2>&1; then
	# Not -a: to examine other processes, perf leaves a chroot and loses its tracefs.
	perf_record sched.data -q -c 1 -e sched:sched_switch -- bash -c 'for i in {1..50}; do /bin/true; done'
	same_as_perf "sched:sched_switch" sched.data 10
	[ "$("$dump" sizes sched.data | awk '$1 == "sched:sched_switch" && $4 > 50' | wc -l)" -ge 10 ] ||
		fail "tracepoints have no payload"
else
	echo "no tracefs here"
fi
