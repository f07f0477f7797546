# shellcheck shell=bash
# Recordings of tests/dotnet/stacks, whose stacks are known: for the tests that source this after lib.sh.

# In percent, at least: 99.5, and 99 of what is nearly all prologue and epilogue, less what hijacked returns take. To stop a thread the runtime has
# a method return to a stub of its own: the real address is not on the stack then, and the stub's CFI is off by a word while it waits.
# shellcheck disable=SC2034 # of the tests
STACKS_START=99 STACKS_LEAST=(--least start=98.5 --least chain=98 --least leaf=99.5 --least chain/tiny=97)

# start_stacks VERSION SECONDS [NAME=VALUE...]: the publish for that .NET, all in its last tier when this returns; $STACKS_PID. What it says
# of its stacks is in $T/stacks.log.
start_stacks() {
	local version=$1 seconds=$2
	shift 2
	start stacks env BURN_LIBRARY="$BUILD/examples/libburn.so" "$@" "$PUBLISHED/stacks-net$version/stacks" "$seconds"
	STACKS_PID=$STARTED
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
