#!/usr/bin/env bash
# fold --names perf counts as `perf script | fold` does: for all ways of perf to choose tasks, and for samples without
# times, as of perf record --per-thread. Tasks that are ending have tid -1 and count too.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf python3
need_sampling
export HOME=$T # without cached copies of images
W=$BUILD/helpers/workload

# Sets the pid and tid of every third sample to -1.
cat >ending.py <<'END'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
attrs, _, at, size = struct.unpack_from("<4Q", data, 24)
sample_type, = struct.unpack_from("<Q", data, attrs + 24)
end, samples = at + size, 0
while at < end:
    kind, _, size = struct.unpack_from("<IHH", data, at)
    samples += kind == 9
    if kind == 9 and samples % 3 == 0:
        struct.pack_into("<ii", data, at + 8 + 8 * bool(sample_type & 1 << 16) + 8 * bool(sample_type & 1), -1, -1)
    at += size
open(sys.argv[2], "wb").write(data)
END

same() { # FILE
	"$PROFCPU" fold script.txt >as_text 2>err || fail "$1: $(cat err)"
	"$PROFCPU" fold --names perf "$1" >as_data 2>err || fail "$1: $(cat err)"
	[ -s as_text ] || fail "$1: nothing to compare"
	only_ours as_text as_data
	cmp -s as_text as_data || fail "$1: $(diff as_text as_data | head -n 6)"
}
checked() { # OPTION...
	perf_record x.data -q -B -F 499 -g "$@" -- "$W" deep 5 0.5
	perf script -i x.data >script.txt 2>script.err </dev/null || fail "perf script: $(cat script.err)"
	same x.data
	python3 ending.py x.data ending.data
	perf script -i ending.data >script.txt 2>script.err </dev/null || fail "perf script: $(cat script.err)"
	grep -q '^:-1 *-1 ' script.txt || fail "no task with tid -1"
	same ending.data
	grep -q '^:-1_*-1' as_data || fail "the name of ending tasks is not perf's"
	"$PROFCPU" fold --names full ending.data >full 2>err || fail "$(cat err)"
	grep -q '^:-1;' full || fail "the full form names ending tasks otherwise: $(head -n 3 full)"
	echo "$*: $(wc -l <as_data) lines"
}

checked --per-thread
[ "$(awk '{ n += $NF } END { print n }' as_data)" -lt 100000 ] || fail "samples without times count their periods"
checked --per-thread -T
checked --per-thread -e cpu-clock,page-faults
checked --no-timestamp --sample-cpu
checked --sample-cpu
"$W" deep 5 60 >target.log &
target=$!
for _ in {1..50}; do
	! grep -q ready target.log || break
	sleep 0.1
done
checked -p "$target"
checked -p "$target" --per-thread
checked -t "$target"
kill "$target"
checked -a
