#!/usr/bin/env bash
# A recording, its perf.data and its archive fold to folded_stacks.out, byte for byte, and these stacks give the picture of
# the recording. With --names perf they fold like perf_script.out.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need g++

cat >cxx.cc <<'END'
#include <sys/prctl.h>
#include <vector>
namespace work {
template <class T> __attribute__((noinline)) T sum(const std::vector<T> &v, int rounds)
{
	T s = 0;
	while (rounds--)
		for (volatile T x : v)
			s += x;
	return s;
}
}
int main()
{
	prctl(PR_SET_NAME, "cx;x 12");
	return work::sum(std::vector<long>(1000000, 3), 700) == 1;
}
END
g++ -O2 -o cxx cxx.cc || fail "the program does not build"
start_shares 30 -t 3 -i 0
record "$T/rec" -F 499 -d 3 -p "$SHARES_PID" -- ./cxx
record "$T/names" -F 499 -- ./cxx
# same_picture FOLDED RECORDING: names, places and colours of all boxes are equal.
same_picture() {
	"$PROFCPU" flamegraph --title x --countname x -o folded.svg "$1" || fail "flamegraph $1 gave $?"
	"$PROFCPU" flamegraph --title x --countname x --offline -o recording.svg "$2" || fail "flamegraph $2 gave $?"
	cmp folded.svg recording.svg || fail "the picture of $1 differs from that of $2"
}
for rec in rec names; do
	[ "$(weight_of $rec/folded_stacks.out)" -gt 0 ] || fail "folded_stacks.out is empty"
	for input in $rec $rec/perf.data $rec/prof.tar.gz; do
		"$PROFCPU" fold "$input" >folded || fail "fold $input gave $?"
		cmp $rec/folded_stacks.out folded || fail "stacks of $input differ"
	done
	"$PROFCPU" fold $rec/perf_script.out >from_text || fail "fold perf_script.out gave $?"
	"$PROFCPU" fold - <$rec/perf_script.out | cmp - from_text || fail "stacks of the text on stdin differ"
	"$PROFCPU" fold --names perf $rec | cmp - from_text || fail "stacks of the recording differ from those of its text"
	"$PROFCPU" postprocess -q -o $rec.text $rec/perf_script.out || fail "postprocess of the text gave $?"
	cmp $rec.text/folded_stacks.out from_text || fail "folded_stacks.out of the text differs"
done
same_picture rec/folded_stacks.out rec
for dir in "$TESTS"/golden/perf/*/; do
	"$PROFCPU" fold --offline "$dir" >folded 2>/dev/null || fail "fold $dir gave $?"
	same_picture folded "$dir"
done

# Separators of the format in names are replaced, so each line has one count.
grep -q '^cx:x_12;.*;main;work::sum<long>[; ]' names/folded_stacks.out || fail "full names: $(cat names/folded_stacks.out)"
"$PROFCPU" flamegraph names/folded_stacks.out | grep -q 'data-diff="1"' && fail "names with numbers make the picture differential"
"$PROFCPU" fold --inline --srcline rec >folded 2>err || fail "fold --inline --srcline gave $?"
"$PROFCPU" fold --inlines --lines rec 2>err | cmp - folded || fail "--inline and --srcline are not --inlines and --lines"
exit 0
