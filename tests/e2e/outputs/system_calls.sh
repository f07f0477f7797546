#!/usr/bin/env bash
# The number of system calls of post-processing does not grow with samples or processes, except calls that carry the
# data and take memory.
. "$(dirname "$0")/../lib.sh"
need_release
need strace

# calls NAME COMMAND...: counts its system calls by kind in $T/NAME.calls, as lines "CALL COUNT".
calls() {
	local name=$1
	shift
	strace -f -qq -c -o "$T/trace" "$@" >"$T/out" 2>"$T/err" || fail "$*: $(tail -n 3 "$T/err")"
	# Columns: % time, seconds, usecs/call, calls, [errors,] syscall.
	awk '$4 ~ /^[0-9]+$/ && $NF != "total" { print $NF, $4 }' "$T/trace" >"$T/$name.calls"
	[ -s "$T/$name.calls" ] || fail "no calls counted: $(cat "$T/trace")"
}

# grows_not WHAT SMALL LARGE BYTES: no kind of call is more frequent in LARGE. LARGE has BYTES more of input and output.
# A few more images may cost 200 calls, and reads and writes may take one for each 16 KiB. Memory may take one for each
# 4 KiB.
grows_not() {
	awk -v what="$1" -v bytes="$4" '
		NR == FNR { small[$1] = $2; next }
		{
			more = $2 - small[$1]
			most = 200
			if ($1 ~ /^p?(read|write)v?(64)?$/)
				most += bytes / 16384
			if ($1 ~ /^(brk|mmap|munmap|mremap|madvise)$/)
				most += bytes / 4096
			if (more > most) {
				printf "%s: %s was called %d times, %d times for less\n", what, $1, $2, small[$1]
				bad = 1
			}
		}
		END { exit bad }' "$T/$2.calls" "$T/$3.calls" || fail "$1: system calls grow: see above"
}
bytes_of() { cat "$@" | wc -c; }

"$BUILD/helpers/many_processes" few 100 10 || fail "many_processes"
"$BUILD/helpers/many_processes" processes 1500 10 || fail "many_processes"
"$BUILD/helpers/many_processes" samples 100 100 || fail "many_processes"
for input in few processes samples; do
	for names in perf full; do
		calls "$input.$names" "$PROFCPU" fold --names "$names" "$input"
		[ -s out ] || fail "fold $input: no lines"
		mv out "$input.$names.out"
	done
	calls "$input.postprocess" "$PROFCPU" postprocess -q -o "$input.dir" "$input"
	[ -s "$input.dir/flamegraph.svg" ] || fail "postprocess $input: no picture"
	# Again, with all names in the recording.
	calls "$input.again" "$PROFCPU" postprocess -q "$input.dir"
done
for input in processes samples; do
	for names in perf full; do
		grows_not "fold --names $names, more $input" "few.$names" "$input.$names" \
			"$(bytes_of "$input" "$input.$names.out")"
	done
	grows_not "postprocess, more $input" few.postprocess "$input.postprocess" \
		"$(bytes_of "$input" "$input.dir"/*.* "$input.dir"/symbols/*)"
	grows_not "postprocess again, more $input" few.again "$input.again" \
		"$(bytes_of "$input" "$input.dir"/*.* "$input.dir"/symbols/*)"
done

# As recorded here: processes that ended, and the post-processing of their recording.
need_sampling
for n in 100 1500; do
	"$PROFCPU" collect --record-only -q -F 4999 -o "recorded.$n" -- \
		sh -c "for i in \$(seq $n); do /bin/true; done" >log 2>&1 || fail "collect: $(cat log)"
	calls "recorded.$n" "$PROFCPU" postprocess -q "recorded.$n"
done
grows_not "postprocess of a recording here" recorded.100 recorded.1500 "$(bytes_of recorded.1500/*.* recorded.1500/symbols/*)"
