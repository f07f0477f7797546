# shellcheck shell=bash
# Recordings of tests/dotnet/stacks, whose stacks are known: for the tests that source this after lib.sh.

# In percent, at least; 99 of what is nearly all prologue and epilogue.
# shellcheck disable=SC2034 # of the tests
STACKS_START=99.5 STACKS_LEAST=(--least start=99.5 --least chain=99.5 --least leaf=99.5 --least chain/tiny=99)

# The file offsets of the runtime's stub for hijacked returns, by the instructions that it begins with: whole_stacks --hijack.
stub_of_hijacks() { # VERSION
	local at
	at=$(LC_ALL=C grep -obUaP '\x50\x55\x53\x41\x57\x41\x56\x41\x55\x41\x54\x51?\x52\x50\x48\x89\xe7' "$PUBLISHED/stacks-net$1/libcoreclr.so")
	printf '%x-%x' "${at%%:*}" $((${at%%:*} + 0x44))
}

# start_stacks VERSION SECONDS [NAME=VALUE...]: the publish for that .NET, all in its last tier when this returns; $STACKS_PID. What it says
# of its stacks is in $T/stacks.log, and in $STACKS_SAID what else whole_stacks is to know.
start_stacks() {
	local version=$1 seconds=$2
	shift 2
	start stacks env BURN_LIBRARY="$BUILD/examples/libburn.so" "$@" "$PUBLISHED/stacks-net$version/stacks" "$seconds"
	STACKS_PID=$STARTED STACKS_SAID=(--hijack "$(stub_of_hijacks "$version")")
	started_dotnet
	wait_for 90 grep -q '^warm' "$T/stacks.log" || fail "stacks of .NET $version: $(grep -vE '^(MODE|LEAF|TRACE)' "$T/stacks.log")"
}

# What perf makes of such stacks stands beside ours: $T/g.out with our names, which also are those of precompiled code, and $T/dwarf.txt.
# Perf finds no names in memory that is mapped twice, so the runtime is not to do that, and to write its map of names; the methods
# that it compiles are the same.
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
