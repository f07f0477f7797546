# shellcheck shell=bash disable=SC2034 # tests use these variables
# Helpers of the end-to-end tests, sourced first: `. "$TESTS/e2e/lib.sh"`. $T is an empty directory and the working
# directory. The exit removes it and stops every process that `start` began.
set -u
: "${PROFCPU:?run it through tests/run}" "${BUILD:?}" "${TESTS:?}" "${ROOT:?}"
export LC_ALL=C
T=$(mktemp -d "${TMPDIR:-/tmp}/profcpu-test.XXXXXX")
chmod 755 "$T" # processes that have ended get only files that everybody may read
cd "$T" || exit 1
# Names come from this machine alone, so debug files downloaded by other runs change nothing.
export XDG_CACHE_HOME=$T/.cache DOTNET_SYMBOL_SERVER='' DEBUGINFOD_URLS=''
T_STARTED=()
declare -A T_TICKS=() # PID to the start time of the process
T_MOUNTED=()
T_FILES=()

t_clean_up() {
	local pid dir
	trap '' INT TERM
	for pid in "${T_STARTED[@]}"; do
		stop "$pid"
	done
	for dir in "${T_MOUNTED[@]}"; do
		umount "$dir" 2>/dev/null || umount -l "$dir"
	done
	cd / && rm -rf "$T"
	[ ${#T_FILES[@]} -eq 0 ] || rm -f "${T_FILES[@]}"
}
trap t_clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Results of the test.
fail() {
	echo "FAILED: $*"
	exit 1
}
skip() {
	echo "$*"
	exit 77
}

# Nothing that can be installed helps: a skip under CI=true, too.
skip_here() {
	echo "$*"
	exit 79
}

# need COMMAND...: skips the test if one is missing.
need() {
	local c
	for c in "$@"; do
		command -v "$c" >/dev/null || skip "needs $c"
	done
}
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }
# Skips the test if this user may not sample with kernel frames.
need_sampling() {
	local why
	why=$("$BUILD/helpers/can_sample" 2>&1) || skip "needs perf_event_open: $why"
}
# Skips the test if no 32-bit program can be built or run; some kernels execute none.
need_32_bit() {
	need gcc
	echo 'int main(void) { return 0; }' >"$T/m32.c"
	gcc -m32 -o "$T/m32" "$T/m32.c" 2>"$T/m32.err" ||
		skip "needs gcc-12-multilib, g++-12-multilib and libc6-dev-i386: $(cat "$T/m32.err")"
	"$T/m32" 2>"$T/m32.err" || skip_here "needs a kernel that executes 32-bit programs: $(cat "$T/m32.err")"
}
need_mounts() { unshare --mount true 2>/dev/null || skip "needs mounts of its own, which a chroot cannot have"; }
# need_tracefs: makes tracefs readable; call it first. If it is not mounted, the test restarts in its own mount
# namespace with it, so that no mount remains.
need_tracefs() {
	[ ! -r /sys/kernel/tracing/events/sched/sched_waking/id ] || return 0
	[ -z "${T_TRACEFS:-}" ] && need_root && need_mounts || skip "needs tracefs at /sys/kernel/tracing"
	local script
	script=$(cd "$ROOT" && realpath "$0") && cd / && rm -rf "$T"
	# shellcheck disable=SC2016 # for the other shell
	exec env T_TRACEFS=mounted unshare --mount sh -c 'mount -t tracefs nodev /sys/kernel/tracing; exec bash "$1"' - "$script"
}
# need_dotnet TARGET...: builds these targets of the Makefile; tests may run beside each other.
need_dotnet() {
	need dotnet
	dotnet --list-sdks | grep -q '^10\.' || skip "needs the .NET 10 SDK"
	flock -o "$ROOT/build" make -s -C "$ROOT" "$@" >"$T/build.log" 2>&1 || fail "$* does not build: $(cat "$T/build.log")"
}
# need_published NAME...: makes the .NET publishes by tests/dotnet/publish, each in $PUBLISHED/NAME.
PUBLISHED=$ROOT/build/publish
need_published() {
	need dotnet
	"$TESTS/dotnet/publish" "$@" >"$T/publish.log" 2>&1 || skip "needs the .NET 10 SDK and a package source: $(cat "$T/publish.log")"
}
# Measurements of instrumented builds are meaningless. Some other tests find nothing there that unit tests, fuzz corpora or
# other scripts do not find too.
is_release() { [ "$BUILD" = "$ROOT/build" ]; }
need_release() {
	is_release && return
	echo "is for release builds only"
	exit 78
}

# start NAME COMMAND...: runs it in the background; its PID is in $STARTED, its output in $T/NAME.log.
start() {
	local name=$1
	shift
	: >"$T/$name.log" # removes earlier output
	"$@" >"$T/$name.log" 2>&1 </dev/null &
	started "$!"
}
# started PID: the exit stops this process.
started() {
	STARTED=$1
	T_STARTED+=("$1")
	T_TICKS[$1]=$(start_ticks "$1")
}
start_ticks() { sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -d ' ' -f 20; }
# stop PID: sends SIGTERM, after 5 s SIGKILL; ignores an ended process. Its PID may be that of another process by now.
stop() {
	local i
	[ "$(start_ticks "$1")" = "${T_TICKS[$1]-$(start_ticks "$1")}" ] || return 0
	kill -TERM "$1" 2>/dev/null || return 0
	for ((i = 0; i < 50; i++)); do
		kill -0 "$1" 2>/dev/null || break
		sleep 0.1
	done
	kill -KILL "$1" 2>/dev/null
	wait "$1" 2>/dev/null
	return 0
}
# wait_for SECONDS COMMAND...: repeats it until it succeeds; fails after that time.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}

# start_shares SECONDS [OPTION...]: starts the native example; its PID is in $SHARES_PID. It is idle for most of the
# time, unless an option changes that.
start_shares() {
	local seconds=$1
	shift
	start shares "$BUILD/examples/shares" -i 3 "$@" "$seconds"
	SHARES_PID=$STARTED
	sleep 0.2
}

# cpu_ns PID: CPU time of its main thread so far.
cpu_ns() { cut -d ' ' -f 1 "/proc/$1/schedstat"; }
# cpu_ms PID: CPU time of all its threads and ended children so far. Compare samples with it, because the machine may
# be busy.
cpu_ms() { awk '{ sub(/^.*\) /, ""); print ($12 + $13 + $14 + $15) * 10 }' "/proc/$1/stat"; }
# wait_for_cpu PID MS: waits until it has used that much more CPU time, or has ended.
wait_for_cpu() {
	local end=$(($(cpu_ms "$1") + $2))
	while kill -0 "$1" 2>/dev/null && [ "$(cpu_ms "$1")" -lt "$end" ]; do
		sleep 0.1
	done
}

# started_dotnet: registers files that the runtime of the last started process may leave in /tmp, for removal.
started_dotnet() { T_FILES+=("/tmp/perf-$STARTED.map" "/tmp/jit-$STARTED.dump" "/tmp/perfinfo-$STARTED.map"); }
# start_web_api [NAME=VALUE...]: starts the web API, or $API, with this environment; sets $API_PID, $API_PORT.
API=(dotnet "$ROOT/build/examples/web-api/web-api.dll")
start_web_api() {
	start api env "$@" "${API[@]}"
	API_PID=$STARTED
	started_dotnet
	wait_for 30 grep -qE '^listening on .*:[0-9]+ pid [0-9]+$' "$T/api.log" || fail "the web API did not start: $(cat "$T/api.log")"
	API_PORT=$(sed -n 's/^listening on .*:\([0-9]*\) pid .*/\1/p' "$T/api.log")
}
# start_wide NAME [ARGUMENT...]: starts a publish of the wide example with the environment in the array $WIDE_ENV, and
# waits until it works. Sets $WIDE_PID; its output is in $T/wide.log.
WIDE_ENV=()
start_wide() {
	local name=$1
	shift
	start wide env "${WIDE_ENV[@]}" "$PUBLISHED/$name/wide-net" "$@"
	WIDE_PID=$STARTED
	started_dotnet
	wait_for 60 grep -q '^working pid' "$T/wide.log" || fail "$name did not start: $(cat "$T/wide.log")"
}
# start_load SECONDS [ROUTE...]: starts a load of $LOAD_CONNECTIONS (5) connections to each as $LOAD_PID; its table is in
# $T/load.log at the end.
start_load() {
	local seconds=$1
	shift
	start load "$BUILD/examples/load" -c "${LOAD_CONNECTIONS:-5}" -d "$seconds" "$API_PORT" "$@"
	LOAD_PID=$STARTED
}

# another_root: makes $R, a root that contains only profcpu with its libraries; `there ARG...` runs profcpu in it.
another_root() {
	R=$T/root
	mkdir -p "$R/tmp" "$R/bin"
	cp "$PROFCPU" "$R/bin/profcpu"
	ldd "$PROFCPU" | grep -o '/[^ ]*' | while read -r lib; do
		mkdir -p "$R$(dirname "$lib")"
		cp -L "$lib" "$R$lib"
	done
	# Sanitizers read their options and threads from /proc.
	if ! is_release; then
		mkdir "$R/proc"
		mount --bind /proc "$R/proc" || skip "needs the right to mount"
		T_MOUNTED+=("$R/proc")
		mount --bind /dev/null "$R/proc/kallsyms" || fail "kallsyms cannot be hidden" # as on another machine
		T_MOUNTED+=("$R/proc/kallsyms")
	fi
	there version >/dev/null || skip "profcpu does not start in an empty root"
}
there() { chroot "$R" /bin/profcpu "$@"; }

# record DIR ARG...: runs profcpu collect, which must succeed; its messages are in $T/collect.log.
record() {
	local dir=$1
	shift
	"$PROFCPU" collect -o "$dir" "$@" >"$T/collect.log" 2>&1 || {
		cat "$T/collect.log"
		fail "collect $* gave $?"
	}
}

# FIRST COMMAND...: runs it before all other processes on a CPU, if this user may; its children have normal priority.
FIRST=()
! chrt -R -f 1 true 2>/dev/null || FIRST=(chrt -R -f 1)
# record_waits DIR COMMAND...: COMMAND records waits into DIR; stdout and stderr are in out and err. Repeats at most
# five times if the kernel lost switches because of other processes. Then the state of threads is unknown, and the
# recording reports that.
record_waits() {
	local dir=$1 try unknown
	shift
	for try in 1 2 3 4 5; do
		"$@" >out 2>err || fail "$*: $(cat err)"
		unknown=$(report_number "$dir" unknown_ns)
		awk -v unknown="$unknown" -v off="$(report_number "$dir" ns)" 'BEGIN { exit !(unknown <= 0.0005 * off) }' && return
		echo "try $try: $(report_number "$dir" lost_switches) switches are lost, $unknown ns unknown"
	done
	fail "all recordings lost switches: $(cat err)"
}
# report_number DIR KEY: prints the first number of that name in its report.json.
report_number() { sed -n "s/^ *\"$2\": \([0-9]*\),*$/\1/p" "$1/report.json" | head -n 1; }

# perf_record FILE ARG...: runs perf record; a FILE *.pipe in pipe mode. Repeats if mappings claim build ids that were
# not requested. Linux sets that flag for everybody while any program records with build ids. perf 6.1 then reads device
# and inode as a build id, and finds wrong images or aborts.
PERF_RECORD=(perf record)
perf_record() {
	local file=$1 out=$1 status try
	shift
	[ "$file" = "${file%.pipe}" ] || out=-
	for try in 1 2 3 4 5 6 7 8; do
		status=0
		"${PERF_RECORD[@]}" -o "$out" "$@" >"$T/record.out" 2>"$T/record.log" </dev/null || status=$?
		[ "$out" != - ] || mv "$T/record.out" "$file"
		# In order of time, as perf script reads, perf refuses samples of an unknown event. record --threads writes some.
		[ "$status" != 0 ] || perf script -F pid --show-mmap-events -i "$file" >"$T/record.out" 2>>"$T/record.log" </dev/null ||
			status=$?
		! grep -q 'failed to process type: 9' "$T/record.log" || status=134
		case $status in
		0)
			[[ " $* " = *" --buildid-mmap "* ]] && return
			grep -qaE 'PERF_RECORD_MMAP2 [^]]* <[0-9a-f]*>\]' "$T/record.out" || return 0
			;;
		134 | 139) ;;
		*) break ;;
		esac
		echo "perf record $*: try $try is not usable, exit $status"
		sleep "$try"
	done
	case $status in
	0 | 134 | 139) skip "needs a machine on which no other program records with build ids: perf cannot read its own recording" ;;
	esac
	fail "perf record $*: exit $status: $(tail -n 5 "$T/record.log")"
}
# only_ours FOLDED...: keeps the stacks of a test's own programs. Others, from perf record -a, may differ: only profcpu
# names .NET methods, and only perf names the vDSO of 32-bit programs.
only_ours() { sed -i -E '/^(workload|swapper|perf|:-1)[-;_ ]/!d' "$@"; }
# perf_agrees OUT ARG...: checks that perf succeeds with these arguments and without messages; its output is in OUT.
# Ignores its message about a chroot, which it leaves to enter another process's mount namespace. Ignores its warning of
# lost records too where MAY_LOSE=1 is set, and in builds with sanitizers, which lose some while they start.
perf_agrees() {
	local out=$1
	shift
	perf "$@" >"$out" 2>"$T/perf.err" </dev/null || fail "perf $*: $(cat "$T/perf.err")"
	is_release && [ "${MAY_LOSE:-0}" = 0 ] || sed -i '/^Warning:$/,/^Check IO\/CPU overload!$/d; /^$/d' "$T/perf.err"
	grep -v '^assertion failed at util/namespaces\.c' "$T/perf.err" && fail "perf $*: unexpected messages, see above"
	return 0
}

# without_threads COMMAND...: runs it with a pthread_create that fails and reports that on stderr. Not for sanitizers.
without_threads() {
	[ -e "$T/no_thread.so" ] || gcc -shared -fPIC -xc -o "$T/no_thread.so" - <<-'C' || fail "no_thread.so does not build"
		#include <errno.h>
		#include <pthread.h>
		#include <unistd.h>
		int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
		{
			(void)thread, (void)attr, (void)start, (void)arg;
			return write(2, "no thread for you\n", 18) == 18 ? EAGAIN : EPERM;
		}
	C
	LD_PRELOAD=$T/no_thread.so "$@"
}

# duration_us DIR: duration of that recording, which on a busy machine exceeds -d.
duration_us() { awk -F '[:,]' '/"duration_ns"/ { printf "%.0f\n", $2 / 1000 }' "$1/manifest.json"; }
# part_of_duration DIR US LEAST MOST: checks that US, from the outputs of DIR, is that part of its duration.
part_of_duration() { awk -v us="$2" -v all="$(duration_us "$1")" -v least="$3" -v most="$4" 'BEGIN { exit !(all > 0 && us >= least * all && us <= most * all) }'; }
# weight_of FOLDED [PATTERN]: the sum of the weights of the stacks that match the regular expression.
weight_of() {
	awk -v pattern="${2:-}" '{ w = $NF; $NF = "" } $0 ~ pattern { sum += w } END { printf "%.0f\n", sum }' "$1"
}
# share_of FOLDED PATTERN: the same in percent of all.
share_of() {
	awk -v pattern="$2" '{ w = $NF; $NF = ""; all += w } $0 ~ pattern { sum += w }
		END { printf "%.3f\n", all ? 100 * sum / all : 0 }' "$1"
}
# within VALUE WANTED TOLERANCE
within() { awk -v v="$1" -v w="$2" -v t="$3" 'BEGIN { d = v - w; exit !(d <= t && d >= -t) }'; }
at_least() { awk -v v="$1" -v w="$2" 'BEGIN { exit !(v >= w) }'; }

# refuses COMMAND...: checks that it fails with a status of its own (no signal, no timeout, no finding of a sanitizer).
# One line on stderr must be marked as the error and give the reason; stderr is in $T/refused.
refuses() {
	local status=0
	timeout -k 5 60 "$@" >"$T/refused.out" 2>"$T/refused" </dev/null || status=$?
	no_crash "$status" "$*"
	[ "$status" != 0 ] || fail "accepted: $*"
	[ "$(grep -c 'error: ' "$T/refused")" = 1 ] || fail "expected one clear line: $*: $(cat "$T/refused")"
}
# survives COMMAND...: it may succeed or refuse, but must not crash, hang or fail silently; the status is in $SURVIVED.
survives() {
	SURVIVED=0
	timeout -k 5 60 "$@" >"$T/refused.out" 2>"$T/refused" </dev/null || SURVIVED=$?
	no_crash "$SURVIVED" "$*"
	[ "$SURVIVED" = 0 ] || [ -s "$T/refused" ] || [ -s "$T/refused.out" ] || fail "exit $SURVIVED without a message: $*"
}
no_crash() { # STATUS COMMAND
	if grep -qE 'AddressSanitizer|LeakSanitizer|runtime error:|ThreadSanitizer' "$T/refused"; then
		fail "a sanitizer reports an error in: $2: $(cat "$T/refused")"
	fi
	case $1 in
	124 | 137) fail "hangs: $2" ;;
	esac
	# profcpu itself exits with 126 and 127 if the command to record cannot be executed.
	[ "$1" -lt 126 ] || { [ "$1" -lt 128 ] && grep -q '^profcpu: error: cannot execute ' "$T/refused"; } ||
		fail "exit $1 of: $2: $(cat "$T/refused")"
}

# start_symbol_server ROOT: starts tests/e2e/names/symbol_server.py on 127.0.0.1; $SYMBOL_SERVER is its address,
# $T/server.log its log.
start_symbol_server() {
	need python3
	rm -f "$T/server.port"
	: >"$T/server.log"
	start symbol_server python3 "$TESTS/e2e/names/symbol_server.py" "$1" "$T/server.port" "$T/server.log"
	wait_for 20 test -s "$T/server.port" || fail "the symbol server did not start: $(cat "$T/symbol_server.log")"
	SYMBOL_SERVER=http://127.0.0.1:$(cat "$T/server.port")
}
# serve ROOT IMAGE DEBUG-FILE: puts the debug file at the paths of both kinds of servers; its build id is in $BUILD_ID.
serve() {
	BUILD_ID=$(readelf -n "$2" | sed -n 's/.*Build ID: //p')
	[ ${#BUILD_ID} = 40 ] || fail "$2 has no build id"
	mkdir -p "$1/ssqp/_.debug/elf-buildid-sym-$BUILD_ID" "$1/dbg/buildid/$BUILD_ID"
	cp "$3" "$1/ssqp/_.debug/elf-buildid-sym-$BUILD_ID/_.debug"
	cp "$3" "$1/dbg/buildid/$BUILD_ID/debuginfo"
}
