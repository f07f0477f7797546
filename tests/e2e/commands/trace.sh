#!/usr/bin/env bash
# `profcpu trace`: traces of .NET 8 to 10, of running and of started programs, that profcpu and TraceEvent read alike.
# Runs beside others.
# May take 900 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published event_oracle-net10-portable wide-net-net8 wide-net-net9 wide-net-net10
ORACLE=$PUBLISHED/event_oracle-net10-portable/event_oracle.dll
RUNTIME=Microsoft-Windows-DotNETRuntime
RUNDOWN=${RUNTIME}Rundown
SAMPLER=Microsoft-DotNETCore-SampleProfiler
trace() { "$PROFCPU" trace "$@" >out 2>err; }
equal() { # FILE: the events of TraceEvent are ours
	"$PROFCPU" events --raw "$1" >lines 2>events.err || fail "$1: $(cat events.err)"
	! grep -q 'cut off' events.err || fail "$1: $(cat events.err)"
	dotnet "$ORACLE" "$1" <lines >verdict || fail "$1: $(head -n 30 verdict)"
	echo "$1: $(stat -c %s "$1") bytes, $(tail -n 1 verdict)"
}
count() { "$PROFCPU" events --no-stacks --provider "$2" ${3:+--event "$3"} "$1" 2>/dev/null | wc -l; }
some() { at_least "$(count "$@")" 1 || fail "$1 has no event ${3:-} of $2: $(cat err)"; }
none() { [ "$(count "$@")" = 0 ] || fail "$1 has events ${3:-} of $2"; }
refused() { # STATUS PATTERN ARG...: one line
	local status=0
	trace "${@:3}" || status=$?
	[ "$status" = "$1" ] || fail "${*:3}: exit $status: $(cat err)"
	[ "$(grep -c . err)" = 1 ] && [ ! -s out ] || fail "${*:3}: not one line: $(cat out err)"
	grep -qE "$2" err || fail "${*:3}: $(cat err)"
}
working() { # VERSION ARG...: starts wide-net
	start "net$1" "$PUBLISHED/wide-net-net$1/wide-net" 600 --threads 2 "${@:2}"
	wait_for 120 grep -q '^working pid' "net$1.log" || fail "$(cat "net$1.log")"
}

for version in 8 9 10; do
	echo ".NET $version"
	working "$version" --except Collect
	pid=$STARTED
	trace -p "$pid" -d 2 --rundown on -o "default-$version.nettrace" || fail "exit $?: $(cat err)"
	grep -q "wrote default-$version.nettrace: [0-9]* events" err || fail "$(cat err)"
	equal "default-$version.nettrace"
	some "default-$version.nettrace" $SAMPLER
	some "default-$version.nettrace" $RUNTIME ExceptionThrown
	some "default-$version.nettrace" $RUNDOWN MethodDCEndVerbose
	trace -p "$pid" -d 00:00:04 --rundown off --providers "$RUNTIME:8001:verbose" -o "chosen-$version.nettrace" || fail "$(cat err)"
	equal "chosen-$version.nettrace"
	some "chosen-$version.nettrace" $RUNTIME ExceptionThrown
	none "chosen-$version.nettrace" $RUNDOWN MethodDCEndVerbose
	none "chosen-$version.nettrace" $SAMPLER
	# A provider in managed code gets its arguments.
	trace -p "$pid" -d 2.5 --rundown off --providers System.Runtime:0:1:EventCounterIntervalSec=1 -o counters.nettrace || fail "$(cat err)"
	some counters.nettrace System.Runtime EventCounters
	"$PROFCPU" info -p "$pid" >/dev/null || fail "the runtime of .NET $version no longer answers"

	echo "started with .NET $version"
	trace --rundown on --clrevents loader+jit --clreventlevel verbose -o "started-$version.nettrace" -- \
		"$PUBLISHED/wide-net-net$version/wide-net" 1 --threads 1 --except Collect || fail "exit $?: $(cat err)"
	grep -q '^working pid' out || fail "the command's output is lost: $(cat out err)"
	equal "started-$version.nettrace"
	# Main itself, so the trace begins before it.
	"$PROFCPU" events --provider $RUNTIME --event MethodLoadVerbose "started-$version.nettrace" >loaded 2>/dev/null
	grep -q '"MethodName":"<Main>$"' loaded || fail "the start is missing"
done

echo "traces that are written anew"
for format in 4 6; do
	for trace in default-8 default-10 chosen-10 counters started-10; do
		"$BUILD/helpers/nettrace_rewrite" $format <$trace.nettrace >anew.nettrace || fail "$trace cannot be written in format $format"
		equal anew.nettrace
		grep -q 'TraceEvent lost 0;' verdict || fail "$(tail -n 1 verdict)"
		"$PROFCPU" events --raw $trace.nettrace >before 2>events.err || fail "$(cat events.err)"
		# Activities are labels in format 6, which the helper does not write.
		[ $format = 4 ] || sed -i -E 's/"(related_)?activity":"[^"]*",?//g' before lines
		cmp before lines || fail "$trace in format $format has other events"
	done
done

echo "the end by an event, and by a signal"
begin=$SECONDS
trace -p "$pid" -d 60 --rundown off --clrevents exception -o stop.nettrace --stopping-event-provider-name $RUNTIME \
	--stopping-event-event-name Exception/Thrown || fail "$(cat err)"
[ $((SECONDS - begin)) -lt 30 ] || fail "the event did not end the trace"
some stop.nettrace $RUNTIME ExceptionThrown
for signal in INT TERM; do
	"$PROFCPU" trace -p "$pid" --rundown off --clrevents exception -o signal.nettrace 2>err &
	tracer=$!
	wait_for 60 test -s signal.nettrace || fail "no events: $(cat err)"
	sleep 1
	kill -$signal $tracer
	wait $tracer || fail "SIG$signal: exit $?: $(cat err)"
	equal signal.nettrace
	rm signal.nettrace
done

echo "through pipes and sockets"
"$PROFCPU" trace -q -p "$pid" -d 1 --rundown off --clrevents exception -o - 2>err | "$PROFCPU" events >lines 2>events.err || fail "$(cat err events.err)"
grep -q '"ExceptionThrown"' lines || fail "no events through a pipe: $(cat err)"
socket=$(ls "/tmp/dotnet-diagnostic-$pid-"*-socket)
trace --diagnostic-port "$socket,connect" -d 1 --rundown off --clrevents exception -o connect.nettrace || fail "$(cat err)"
equal connect.nettrace
"$PROFCPU" trace --diagnostic-port "$T/port" --clrevents exception -o listen.nettrace -d 2 2>err &
tracer=$!
wait_for 60 test -S port || fail "no socket: $(cat err)"
start late env DOTNET_DiagnosticPorts="$T/port" "$PUBLISHED/wide-net-net10/wide-net" 600 --threads 1 --except Collect
wait $tracer || fail "exit $?: $(cat err)"
equal listen.nettrace
[ ! -e port ] || fail "the socket is left"
wait_for 60 grep -q '^working pid' late.log || fail "the runtime was not resumed: $(cat late.log)"

echo "programs that end, fail and start others"
working 10 --except Collect
"$PROFCPU" trace -p "$STARTED" --rundown off -o killed.nettrace 2>err &
tracer=$!
wait_for 60 test -s killed.nettrace || fail "no events: $(cat err)"
sleep 1
kill -KILL "$STARTED"
status=0
wait $tracer || status=$?
[ "$status" = 1 ] && grep -q 'the events ended suddenly: the process was killed, or closed the connection; its last events are missing' err || fail "exit $status: $(cat err)"
equal killed.nettrace
some killed.nettrace $SAMPLER
working 10 --except Collect
"$PROFCPU" trace -p "$STARTED" --rundown on -o stopped.nettrace 2>err &
tracer=$!
wait_for 60 test -s stopped.nettrace || fail "no events: $(cat err)"
sleep 1 # its first events
kill -STOP "$STARTED" && kill -INT $tracer && sleep 1 && kill -KILL "$STARTED"
status=0
wait $tracer || status=$?
[ "$status" = 1 ] && grep -q 'the process ended before it had sent its last events: the list of its methods may' err || fail "exit $status: $(cat err)"
equal stopped.nettrace
# Runtimes that start later run without being recorded: beside the first one, after it, and after the trace.
cat >several.sh <<SHELL
"$PUBLISHED/wide-net-net10/wide-net" 2 --threads 1 --except Collect &
sleep 1
"$PUBLISHED/wide-net-net9/wide-net" 1 --threads 1 --except Collect
wait
"$PUBLISHED/wide-net-net8/wide-net" 1 --threads 1 --except Collect
exit 7
SHELL
for limit in '' '-d 0.5'; do
	status=0
	# shellcheck disable=SC2086 # two words, or none
	timeout 300 "$PROFCPU" trace $limit -o several.nettrace -- bash several.sh >out 2>err || status=$?
	[ "$status" = 7 ] || fail "exit $status: $(cat out err)"
	equal several.nettrace
	[ "$(grep -c '^working pid' out)" = 3 ] || fail "the command did not run: $(cat out err)"
done
refused 1 'ended before a .NET runtime started' -o none.nettrace -- true
refused 127 'cannot execute ./missing' -o none.nettrace -- ./missing
refused 126 'cannot execute /etc/passwd' -o none.nettrace -- /etc/passwd

echo "killed before the runtime runs: the command must not wait for ever"
"$PROFCPU" trace -o killed.nettrace -- bash -c "sleep 2; exec '$PUBLISHED/wide-net-net10/wide-net' 291" >killed.out 2>err &
tracer=$!
started $tracer
wait_for 60 sh -c "pgrep -P $tracer -x bash >/dev/null" || fail "no command: $(cat err)"
child=$(pgrep -P $tracer -x bash)
# Before it could resume the runtime.
kill -STOP $tracer
wait_for 60 grep -qx wide-net "/proc/$child/comm" || fail "no runtime starts: $(cat killed.out err)"
sleep 2
kill -0 "$child" && [ ! -s killed.out ] || fail "the command runs already: $(cat killed.out err)"
kill -KILL $tracer
wait_for 20 sh -c "! kill -0 $child 2>/dev/null" || fail "the command still waits"

echo "outputs that fail"
# The command ends. A runtime that it leaves behind must not wait for a tool that is gone.
for command in "'$PUBLISHED/wide-net-net10/wide-net' 23; true" "exec '$PUBLISHED/wide-net-net10/wide-net' 307"; do
	status=0
	trace -o no/such/dir.nettrace -- bash -c "$command" || status=$?
	[ "$status" = 1 ] && [ "$(grep -c . err)" = 1 ] && grep -q 'cannot create no/such/dir' err || fail "exit $status: $(cat err)"
done
begin=$SECONDS
while pgrep -f 'wide-net-net10/wide-net (23|307)$' >/dev/null; do
	[ $((SECONDS - begin)) -lt 60 ] || fail "the command went on without a trace: $(pgrep -fa 'wide-net')"
	sleep 0.2
done
cp stop.nettrace good.nettrace
kill -STOP "$pid"
refused 1 'did not answer in time' -p "$pid" --rundown off -o good.nettrace
kill -CONT "$pid"
cmp stop.nettrace good.nettrace || fail "a trace that cannot begin replaces an old one"
trace -q -p "$pid" --rundown off -d 0.5 -o /dev/null || fail "$(cat err)"
[ -c /dev/null ] || fail "/dev/null is replaced"
mkfifo fifo
refused 1 'cannot create fifo: No such device or address' -p "$pid" --rundown off -o fifo
refused 2 'does not go with a command' -o - -- true
{ "$PROFCPU" trace -p "$pid" --rundown off -d 60 -o - 2>err || echo $? >status; } | head -c 1000 >head.nettrace
[ "$(cat status)" = 1 ] && grep -q 'Broken pipe' err || fail "exit $(cat status): $(cat err)"

echo "what is refused"
refused 1 'has no diagnostic port' -p $$ -o none.nettrace
refused 1 'does not exist' -p 2147483647 -o none.nettrace
refused 1 'missing: No such file or directory: no runtime listens there' --diagnostic-port missing,connect -o none.nettrace
refused 1 'cannot create no/such/dir' -p "$pid" --rundown off -o no/such/dir.nettrace
refused 2 "'cpu-sampling' is not a profile; the profiles are dotnet-common" -p "$pid" --profile cpu-sampling
refused 2 'keywords .gc. are not' -p "$pid" --providers "$RUNTIME:gc"
refused 2 'exclude each other' -p "$pid" -o none.nettrace -- true
refused 2 'a command is missing' --
refused 2 'needs --stopping-event-provider-name' -p "$pid" --stopping-event-event-name GCStart
refused 2 'is none of auto, on, off' -p "$pid" --rundown maybe
kill -STOP "$pid"
refused 1 'did not answer in time' -p "$pid" --rundown off -o none.nettrace
kill -CONT "$pid"
[ ! -e none.nettrace ] || fail "an empty file is left"

echo "a full disk"
if unshare --mount true 2>/dev/null; then
	mkdir small && export PROFCPU pid
	# shellcheck disable=SC2016 # the inner shell's own
	unshare --mount bash -c 'mount -t tmpfs -o size=200k none small || exit 9
		"$PROFCPU" trace -p "$pid" -d 20 --rundown off -o small/full.nettrace 2>err; echo $? >status; cp small/full.nettrace full.nettrace'
	[ "$(cat status)" = 1 ] && grep -q 'cannot write small/full.nettrace: No space left' err || fail "exit $(cat status): $(cat err)"
	equal full.nettrace
	some full.nettrace $SAMPLER
fi
"$PROFCPU" info -p "$pid" >/dev/null || fail "the runtime no longer answers"
exit 0
