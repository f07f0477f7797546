# shellcheck shell=bash
# Runs the rows of tests/dotnet/promises/table, which explains its columns. Source this after tests/e2e/lib.sh, then call
# promises_run. PROMISES="WORD..." keeps only the rows that contain each of the words.
#
# Rows with the same program and start share one process, and rows that also have the same recording share that. Groups run
# beside each other, except those with a row that measures. Each row prints one line: ok, FAIL, skip or n/a, with its seconds.
# The logs of failed rows come last, where tests/run shows them.

PROMISES_DIR=$TESTS/dotnet/promises
declare -A PROMISES_START=() PROMISES_RECORD=() PROMISES_ROWS=() PROMISES_MODE=() PROMISES_PIDS=()
PROMISES_ORDER=()
PROMISES_NEEDED=()

# promises_run WHEN [MODE...]: the rows of that kind, of groups of these modes or of all. Fails if a row fails, and skips if
# a row was skipped.
promises_run() {
	local mode
	promises_read "$1"
	[ ${#PROMISES_ORDER[@]} -gt 0 ] || skip "no row of $PROMISES_DIR/table applies: ${PROMISES:-}"
	promises_prepare
	: >"$T/verdicts"
	[ $# -gt 1 ] || set -- "$1" beside alone measures
	for mode in "${@:2}"; do
		promises_start_groups "$mode" built
		promises_wait_publish
		promises_start_groups "$mode" published
		promises_leave 0
	done
	promises_verdict
}

# Reads the table. A group is "PROGRAM START"; its rows are lines "MODE RECORD PROMISE [ARGUMENT...]".
promises_read() { # WHEN
	local when rest name program programs start line mode
	while read -r when rest; do
		rest=${rest%%  #*}
		case $when in
		'' | '#'*) ;;
		start | record)
			read -r name rest <<<"$rest"
			[ "$when" = start ] && PROMISES_START[$name]=$rest || PROMISES_RECORD[$name]=$rest
			;;
		"$1")
			read -r mode programs start line <<<"$rest"
			[[ $programs =~ ^[a-z0-9,{}-]+$ ]] || fail "the table has a program $programs"
			for program in $(eval "echo $programs"); do # braces
				promises_add "$program" "$start" "$mode" "$line"
			done
			;;
		ci | long) ;;
		*) fail "the table has a line that begins with $when" ;;
		esac
	done <"$PROMISES_DIR/table"
}
promises_add() { # PROGRAM START MODE REST
	local group="$1 $2" word name
	for word in ${PROMISES:-}; do
		[[ "$1 $2 $3 $4" == *"$word"* ]] || return 0
	done
	case $3 in
	beside | alone | release | measures) ;;
	*) fail "the table has a mode $3" ;;
	esac
	[ -n "${PROMISES_ROWS[$group]:-}" ] || PROMISES_ORDER+=("$group")
	PROMISES_ROWS[$group]+="$3 $4"$'\n'
	promises_applies "$3" || return 0
	case $3 in
	measures) PROMISES_MODE[$group]=measures ;;
	alone) [ "${PROMISES_MODE[$group]:-}" = measures ] || PROMISES_MODE[$group]=alone ;;
	*) : "${PROMISES_MODE[$group]:=beside}" ;;
	esac
	# An argument may be another published program.
	for name in "$1" $4; do
		[[ ! $name =~ ^[a-z-]+-net[0-9] ]] || [[ " ${PROMISES_NEEDED[*]} " == *" $name "* ]] || PROMISES_NEEDED+=("$name")
	done
}
promises_applies() { # MODE
	is_release || [[ " beside ${PROMISES_SANITIZED:-} " == *" $1 "* ]]
}

# Builds what the Makefile builds, and publishes the rest meanwhile.
promises_prepare() {
	PROMISES_PUBLISH=
	if [ ${#PROMISES_NEEDED[@]} -gt 0 ]; then
		need dotnet
		"$TESTS/dotnet/publish" "${PROMISES_NEEDED[@]}" >"$T/publish.log" 2>&1 </dev/null &
		PROMISES_PUBLISH=$!
		started "$!"
	fi
	case " ${!PROMISES_ROWS[*]} " in
	*' web-api '* | *' wide-net '* | *' prepare '*) need_dotnet web-api wide-net prepare ;;
	esac
}
promises_wait_publish() {
	[ -n "$PROMISES_PUBLISH" ] || return 0
	wait "$PROMISES_PUBLISH"
	PROMISES_PUBLISH=
	sed 's/^/not published: /' "$T/publish.log"
	echo "published ${#PROMISES_NEEDED[@]} programs: $SECONDS s"
}

promises_start_groups() { # beside|alone|measures built|published
	local group jobs=$(($(nproc) + 1)) number=0
	[ "$1" = beside ] || jobs=1
	for group in "${PROMISES_ORDER[@]}"; do
		number=$((number + 1))
		[ "${PROMISES_MODE[$group]:-beside}" = "$1" ] || continue
		[[ ${group%% *} == *-net[0-9]* ]] && [ "$2" = built ] && continue
		[[ ${group%% *} != *-net[0-9]* ]] && [ "$2" = published ] && continue
		promises_leave $((jobs - 1))
		[ ${#PROMISES_PIDS[@]} -eq 0 ] || "$TESTS/wait_for_room" 30
		(promises_group "$group" "$T/$number") >"$T/$number.out" 2>&1 </dev/null &
		PROMISES_PIDS[$!]=$number
		started "$!"
	done
	[ "$1" = beside ] || promises_leave 0
}
promises_leave() { # N: waits until at most N groups run
	local pid
	while [ ${#PROMISES_PIDS[@]} -gt "$1" ]; do
		pid=
		wait -n -p pid "${!PROMISES_PIDS[@]}"
		cat "$T/${PROMISES_PIDS[$pid]}.out"
		unset "PROMISES_PIDS[$pid]"
	done
}

promises_verdict() {
	local ok failed skipped
	ok=$(grep -c '^ok ' "$T/verdicts") failed=$(grep -c '^FAIL' "$T/verdicts") skipped=$(grep -c '^skip' "$T/verdicts")
	[ "$failed" = 0 ] || cat "$T/failed"
	echo "$ok rows ok, $failed failed, $skipped skipped; $SECONDS s"
	[ "$failed" = 0 ] || fail "$failed rows: $(grep '^FAIL' "$T/verdicts" | sed 's/^FAIL *//' | paste -sd ';')"
	[ "$skipped" = 0 ] || skip "$skipped rows are skipped: $(grep '^skip' "$T/verdicts" | sed 's/^skip *//' | paste -sd ';')"
	[ "$ok" -gt 0 ] || { echo "no row applies to this build" && exit 78; }
}

# promises_group "PROGRAM START" DIRECTORY: its rows one after the other, in a subshell.
promises_group() {
	local row mode record promise
	PROGRAM=${1% *} START=${1#* } PID='' APP='' COMMAND=()
	PROMISES_ALL=$T/verdicts PROMISES_FAILED=$T/failed
	PROMISES_LEFT=()
	while read -r row; do
		[ -z "$row" ] || PROMISES_LEFT+=("$row")
	done <<<"${PROMISES_ROWS[$1]}"
	T=$2
	mkdir -p "$T" && cd "$T" || exit 1
	export XDG_CACHE_HOME=$T/.cache
	unset DOTNET_PerfMapEnabled
	T_STARTED=() T_FILES=() T_MOUNTED=()
	trap promises_group_end EXIT
	trap 'exit 143' TERM
	trap 'exit 130' INT
	exec 3>&1 >start.log 2>&1 # errors before the first row are in the log
	[ -z "${PROMISES_MODE[$1]:-}" ] || promises_start
	while [ ${#PROMISES_LEFT[@]} -gt 0 ]; do
		read -r mode record promise <<<"${PROMISES_LEFT[0]}"
		promises_row "$mode" "$record" "$promise"
		PROMISES_LEFT=("${PROMISES_LEFT[@]:1}")
	done
}
# Rows that were not reached failed, or were skipped, for the reason that stopped the group.
promises_group_end() {
	local status=$? row
	for row in "${PROMISES_LEFT[@]}"; do
		promises_report "$status" 0 "${row#* }" start.log
	done
	t_clean_up
}

promises_row() { # MODE RECORD PROMISE
	local begun=$SECONDS status=0
	if ! promises_applies "$1"; then
		promises_report 78 0 "$2 $3" /dev/null
		return
	fi
	(promises_check "$2" "$3") >row.log 2>&1 || status=$?
	promises_report "$status" $((SECONDS - begun)) "$2 $3" row.log
}
promises_report() { # STATUS SECONDS ROW LOG
	local verdict=FAIL line
	case $1 in
	0) verdict='ok  ' ;;
	77) verdict=skip ;;
	78) verdict='n/a ' ;;
	esac
	line="$verdict $PROGRAM $START $3"
	[ "$verdict" != skip ] && [ "$verdict" != FAIL ] || line+=": $(tail -n 1 "$4")"
	echo "$line ($2 s)" >&3
	echo "$line" >>"$PROMISES_ALL"
	if [ "$verdict" = FAIL ]; then
		{ echo "$line" && tail -n 40 "$4" | sed 's/^/     | /'; } >>"$PROMISES_FAILED"
	else
		grep -v '^try ' "$4" | tail -n 6 | sed 's/^/     | /' >&3
	fi
}

# In a subshell: makes the recording, if no row did, and checks the promise.
promises_check() { # RECORD PROMISE
	local options words
	T_STARTED=() T_FILES=() T_MOUNTED=()
	trap promises_check_end EXIT
	trap 'exit 143' TERM
	REC=$T/$1
	if [ "$1" != - ]; then
		[ -n "${PROMISES_RECORD[$1]:-}" ] || fail "the table has no recording $1"
		[ ! -e "$REC.failed" ] || fail "the recording failed: $(cat "$REC.failed")"
		read -ra options <<<"${PROMISES_RECORD[$1]}"
		if [ ! -e "$REC" ]; then
			need_sampling
			[[ " ${options[*]} " == *" -a "* ]] || options+=(-p "${PID:?a recording needs a start}")
			"$PROFCPU" collect -o "$REC" "${options[@]}" >"$REC.log" 2>&1 || {
				cp "$REC.log" "$REC.failed"
				fail "collect ${options[*]} gave $?: $(cat "$REC.log")"
			}
		fi
	fi
	read -ra words <<<"$2"
	# shellcheck source=/dev/null
	. "$PROMISES_DIR/${words[0]%%/*}.sh"
	"promise_${words[0]##*/}" "${words[@]:1}"
}
promises_check_end() {
	local pid dir
	trap '' INT TERM
	for pid in "${T_STARTED[@]}"; do
		stop "$pid"
	done
	for dir in "${T_MOUNTED[@]}"; do
		umount "$dir" 2>/dev/null || umount -l "$dir"
	done
	[ ${#T_FILES[@]} -eq 0 ] || rm -f "${T_FILES[@]}"
}

# For promises at the end of a group: ends its process.
program_ends() {
	[ -z "${LOAD_PID:-}" ] || stop "$LOAD_PID"
	stop "$PID"
}

promises_is_idle() {
	local used
	used=$(cpu_ms "$PID") && sleep 1 && [ $(($(cpu_ms "$PID") - used)) -le 50 ]
}

# Starts PROGRAM with the words of START: $PID, for a service $API_PID and $API_PORT; $APP is its directory, $COMMAND its command.
promises_start() {
	local word variables=() arguments=() warm=0 loaded='' under=''
	[[ $PROGRAM != *-net[0-9]* ]] || grep -qs . "$PUBLISHED/$PROGRAM.made" || skip "needs the .NET 10 SDK and a package source: $(tail -n 1 "$PUBLISHED/$PROGRAM.log")"
	case $PROGRAM in
	prepare) ;;
	*-net[0-9]*) APP=$PUBLISHED/$PROGRAM COMMAND=("$APP/${PROGRAM%%-net[0-9]*}") ;;
	*) APP=$ROOT/build/examples/$PROGRAM COMMAND=(dotnet "$APP/$PROGRAM.dll") ;;
	esac
	case $PROGRAM in
	wide-net*-net*) COMMAND=("$APP/wide-net") ;;
	esac
	[ "$START" != - ] || return 0
	[ -n "${PROMISES_START[$START]+given}" ] || fail "the table has no start $START"
	for word in ${PROMISES_START[$START]}; do
		word=${word//@T/$T}
		case $word in
		load:*) under=${word#load:} ;;
		loaded:*) loaded=${word#loaded:} ;;
		connections:*) export LOAD_CONNECTIONS=${word#connections:} ;;
		warm:*) warm=${word#warm:} ;;
		[A-Za-z_]*=*) variables+=("$word") ;;
		*) arguments+=("$word") ;;
		esac
	done
	case $PROGRAM in
	web-api*)
		# shellcheck disable=SC2034 # for start_web_api
		API=("${COMMAND[@]}" "${arguments[@]}")
		start_web_api "${variables[@]}"
		PID=$API_PID
		;;
	*)
		[[ ${arguments[0]:-} =~ ^[0-9]+$ ]] || arguments=(600 "${arguments[@]}")
		start wide env "${variables[@]}" "${COMMAND[@]}" "${arguments[@]}"
		PID=$STARTED
		started_dotnet
		wait_for 120 grep -q '^working pid' wide.log || fail "$PROGRAM did not start: $(cat wide.log)"
		;;
	esac
	if [ -n "$loaded" ] && [ -n "${API_PORT:-}" ]; then
		# If all code is compiled first, some requests time out, and the work continues for a while.
		# shellcheck disable=SC2046 # several routes
		start_load "${loaded%%:*}" $(tr , ' ' <<<"${loaded#*:}")
		wait "$LOAD_PID"
		wait_for 60 promises_is_idle
	fi
	if [ -n "$under" ] && [ -n "${API_PORT:-}" ]; then
		# shellcheck disable=SC2046 # several routes
		start_load 600 $(tr , ' ' <<<"$under")
	fi
	[ "$warm" = 0 ] || wait_for_cpu "$PID" "$warm"
}
