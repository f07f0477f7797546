# shellcheck shell=bash
# Recordings of tests/dotnet/stacks, whose stacks are known. Source this after lib.sh.

# Minimal percentages; 99 for methods that are almost only prologue and epilogue.
# shellcheck disable=SC2034 # used by the tests
STACKS_START=99.5 STACKS_LEAST=(--least start=99.5 --least chain=99.5 --least leaf=99.5 --least chain/tiny=99)

# File offsets of the runtime's stub for hijacked returns, found by its first instructions, for whole_stacks --hijack.
stub_of_hijacks() { # VERSION
	local at
	at=$(LC_ALL=C grep -obUaP '\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x51?\x52\x50\x48\x89\xe7' "$PUBLISHED/stacks-net$1/libcoreclr.so")
	printf '%x-%x' "${at%%:*}" $((${at%%:*} + 0x44))
}

# start_stacks VERSION SECONDS [NAME=VALUE...]: starts the publish for that .NET as $STACKS_PID, and waits until its
# methods are in their last tier. Its description of its stacks is in $T/stacks.log, further arguments of whole_stacks are
# in $STACKS_ARGUMENTS.
start_stacks() {
	local version=$1 seconds=$2
	shift 2
	start stacks env BURN_LIBRARY="$BUILD/examples/libburn.so" "$@" "$PUBLISHED/stacks-net$version/stacks" "$seconds"
	STACKS_PID=$STARTED STACKS_ARGUMENTS=(--hijack "$(stub_of_hijacks "$version")")
	started_dotnet
	wait_for 90 grep -q '^warm' "$T/stacks.log" || fail "stacks of .NET $version: $(grep -vE '^(MODE|LEAF|TRACE)' "$T/stacks.log")"
}

# perf's stacks of the same program, for comparison: $T/g.out with our names, which include precompiled code, and
# $T/dwarf.txt. perf finds no names in memory that is mapped twice. So the runtime must not map it twice, and must write
# its perf map. The compiled methods stay the same.
PERF_NAMES=(DOTNET_PerfMapEnabled=3 DOTNET_EnableWriteXorExecute=0)
perf_g() { # PID SECONDS
	perf_record "$T/g.data" -q -F 499 -g -p "$1" -- sleep "$2"
	rm -rf "$T/g"
	"$PROFCPU" postprocess -q --no-download -o "$T/g" "$T/g.data" >"$T/perf.log" 2>&1 || fail "postprocess: $(cat "$T/perf.log")"
	mv "$T/g/perf_script.out" "$T/g.out"
}
perf_dwarf() { # PID SECONDS
	perf_record "$T/dwarf.data" -q -F 99 --call-graph dwarf,16384 -p "$1" -- sleep "$2"
	perf script -i "$T/dwarf.data" --no-inline -F comm,pid,tid,time,event,ip,sym,symoff,dso >"$T/dwarf.txt" 2>"$T/perf.log"
}
