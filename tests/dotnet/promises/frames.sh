# shellcheck shell=bash
# How many frames of JIT-compiled and of precompiled .NET code have names, in profcpu's text and in perf's.

# frames_count KIND FIELD FILE: of the table that tests/dotnet/frames prints.
frames_count() { awk -v kind="$1" -v field="$2" '$2 == kind { print $field }' "$3"; }
frames_table() { # FILE
	awk '$3 { printf "%-9s %-9s %8d frames, %8d named, %6d placed, %6d unknown, named %.3f %%\n", $1, $2, $3, $4, $5, $6, 100 * $4 / $3 }' "$1"
}

# all_named LEAST: at least 300 JIT frames, of which LEAST % have a name; at least 100 precompiled frames, which all have one.
promise_all_named() {
	local jit r2r
	"$TESTS/dotnet/frames" --word profcpu --unnamed unnamed "$REC/perf_script.out" >frames || fail "frames"
	frames_table frames
	jit=$(frames_count jit 3 frames) r2r=$(frames_count r2r 3 frames)
	grep -E '^[0-9]+ (jit|r2r) ' unnamed | head -n 20 | sed 's/^/without a name: /'
	[ "$jit" -ge 300 ] || fail "only $jit JIT frames were sampled"
	[ "$r2r" -ge 100 ] || fail "only $r2r R2R frames were sampled"
	[ "$r2r" = "$(frames_count r2r 4 frames)" ] || fail "R2R frames without a name"
	awk -v least="$1" '$2 == "jit" { exit !($4 >= least / 100 * $3) }' frames || fail "fewer than $1 % of the JIT frames have a name"
}

# perf_names_few MOST SECONDS: perf itself names at most MOST % of the JIT frames of the same process.
promise_perf_names_few() {
	need perf
	need_sampling
	perf_record "$T/perf.data" -q -F 499 -g -p "$PID" -- sleep "$2"
	perf script -i perf.data >perf.txt 2>perf.log
	"$TESTS/dotnet/frames" --word perf perf.txt >perf.frames || fail "frames"
	frames_table perf.frames
	awk -v most="$1" '$2 == "jit" { n = $3; named = $4 } END { exit !(n >= 100 && named <= most / 100 * n) }' perf.frames ||
		fail "perf names more than $1 % of the JIT frames, or has fewer than 100"
}
