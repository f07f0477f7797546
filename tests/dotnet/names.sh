# shellcheck shell=bash
# How many frames of .NET services have their name, with nothing set beforehand: for the tests that source this after lib.sh.
NAMES_UNNAMED_SHOWN=40

# names_begin PUBLISH SECONDS [NAME=VALUE...]: it under load for so long, warm; $NAMES_PID.
names_begin() {
	local publish=$1 seconds=$2
	shift 2
	case $publish in
	web-api-*)
		# shellcheck disable=SC2034 # of start_web_api
		API=("$PUBLISHED/$publish/web-api")
		start_web_api "$@"
		NAMES_PID=$API_PID
		start_load "$seconds" / /cpu /wait
		;;
	*)
		# shellcheck disable=SC2034 # of start_wide
		WIDE_ENV=("$@")
		start_wide "$publish" "$seconds"
		NAMES_PID=$WIDE_PID
		;;
	esac
	wait_for_cpu "$NAMES_PID" 2000
}
names_end() {
	case $1 in
	web-api-*) stop "$LOAD_PID" ;;
	esac
	stop "$NAMES_PID"
}

# names_count KIND FIELD FILE: of the table of tests/dotnet/frames.
names_count() { awk -v kind="$1" -v field="$2" '$2 == kind { print $field }' "$3"; }

# names_of_perf PUBLISH WORD SECONDS: what perf makes of the same process.
names_of_perf() {
	perf_record "$T/perf.data" -q -F 499 -g -p "$NAMES_PID" -- sleep "$3"
	perf script -i "$T/perf.data" >"$T/perf.txt" 2>"$T/perf.log"
	"$TESTS/dotnet/frames" --word "$1 $2" "$T/perf.txt" >>"$T/table"
}

# names_check PUBLISH SECONDS: recorded for so long without restart. All R2R frames have a name, and nearly all JIT frames; the
# rest is listed. Adds to $T/table; $NAMES_FAILED counts.
NAMES_FAILED=0
names_check() {
	local publish=$1 rec=$T/$1 jit least
	record "$rec" --no-download -p "$NAMES_PID" -F 499 -d "$2"
	"$TESTS/dotnet/frames" --word "profcpu" --unnamed "$rec.unnamed" "$rec/perf_script.out" >"$rec.frames" || fail "frames of $publish"
	sed "s/^/$publish /" "$rec.frames" >>"$T/table"
	grep -E '^[0-9]+ (jit|r2r) ' "$rec.unnamed" | head -n "$NAMES_UNNAMED_SHOWN" | sed "s/^/$publish without a name: /"
	jit=$(names_count jit 3 "$rec.frames")
	[ "$jit" -ge 300 ] || names_fail "$publish: only $jit JIT frames were sampled"
	[ "$(names_count r2r 3 "$rec.frames")" -ge 100 ] || names_fail "$publish: only $(names_count r2r 3 "$rec.frames") R2R frames were sampled"
	[ "$(names_count r2r 3 "$rec.frames")" = "$(names_count r2r 4 "$rec.frames")" ] || names_fail "$publish: R2R frames without a name"
	least=${NAMES_LEAST:-99.7} # a machine that is busy with others lets the looks come late
	awk -v least="$least" '$2 == "jit" { exit !($4 >= least / 100 * $3) }' "$rec.frames" ||
		names_fail "$publish: fewer than $least % of the JIT frames have a name"
}
names_fail() {
	echo "FAILED: $*"
	NAMES_FAILED=$((NAMES_FAILED + 1))
}

names_table() {
	printf '%-24s %-14s %-9s %8s %8s %8s %8s %9s\n' process by kind frames named placed unknown 'named %'
	awk '$4 { printf "%-24s %-14s %-9s %8d %8d %8d %8d %9.3f\n", $1, $2, $3, $4, $5, $6, $7, 100 * $5 / $4 }' "$T/table"
}
