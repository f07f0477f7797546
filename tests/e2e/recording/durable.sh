#!/usr/bin/env bash
# Data are on disk before anything refers to them: samples before the header with their size, the manifest and names
# before their rename. So a power cut loses no finished recording.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need strace
need_sampling
export ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" # LeakSanitizer fails under strace
start_shares 60

traced() { # COMMAND...
	strace -y -qq -s 8 -e trace=fdatasync,pwrite64,renameat -o "$T/trace" "$@" >"$T/out" 2>"$T/err" || fail "$*: $(cat "$T/err")"
}
# in_order PATTERN...: checks that matching lines of the trace come in this order.
in_order() {
	local at=0 next pattern
	for pattern in "$@"; do
		next=$(P=$pattern awk -v at="$at" 'NR > at && $0 ~ ENVIRON["P"] { print NR; exit }' "$T/trace")
		[ -n "$next" ] || fail "no '$pattern' after line $at of: $(cat "$T/trace")"
		at=$next
	done
}
data_is_safe() { # DIR
	in_order "^fdatasync\(.*/$1/perf.data>\) = 0" "^pwrite64\(.*/$1/perf.data>, \"PERFILE2\"..., [0-9]*, 0\)" \
		"^fdatasync\(.*/$1/perf.data>\) = 0"
	# Includes the last write before it.
	awk -v dir="$1" 'index($0, "/" dir "/perf.data>") {
			if (/PERFILE2/ && last !~ /^fdatasync/) bad = $0
			last = $0
		} END { exit bad != "" }' "$T/trace" || fail "the header is written before the data are on the disk: $(cat "$T/trace")"
}
replaced_safely() { # DIR NAME
	in_order "^fdatasync\(.*/$1/$2\.[0-9]*\.tmp>\) = 0" "^renameat\(.*/$2\"\) = 0|^renameat\(.*\"${2##*/}\"\) = 0" \
		"^fdatasync\(.*/$1(/symbols)?>\) = 0"
}

traced "$PROFCPU" collect -q -p "$SHARES_PID" -F 199 -d 0.5 -o rec
data_is_safe rec
replaced_safely rec manifest.json
replaced_safely rec symbols/names
grep -qE 'fdatasync.*(svg|folded|script|tar)' trace && fail "syncs outputs that can be made again: $(cat trace)"

echo "a killed recorder"
"$PROFCPU" collect -q --record-only -p "$SHARES_PID" -F 199 -d 60 -o killed &
pid=$!
wait_for 20 [ -s killed/manifest.json ] || fail "the recording did not begin"
sleep 1
kill -KILL "$pid"
wait "$pid" 2>/dev/null
traced "$PROFCPU" postprocess -q killed
data_is_safe killed
replaced_safely killed manifest.json
exit 0
