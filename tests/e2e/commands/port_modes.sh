#!/usr/bin/env bash
# profcpu info, env, dump, load and resume with --diagnostic-port: runtimes of .NET 8 to 10 that listen, and that connect,
# as this user, as another one, and what is refused.
# Runs beside others.
# May take 900 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc python3
need_published parked-net8 parked-net9 parked-net10 wide-net-net8 wide-net-net9 wide-net-net10
CLSID=01234567-89ab-cdef-0123-456789abcdef
mkdir bin && cp "$PROFCPU" bin/profcpu && gcc -shared -fPIC -o bin/profiler.so "$TESTS/e2e/commands/profiler.c" || fail "no profiler"
chmod -R a+rX "$T"

# use DIR [COMMAND...]: $D is the place of all files from here on; COMMAND runs profcpu and its targets as their user.
use() {
	D=$T/$1 AS=("${@:2}")
	mkdir "$D"
	[ $# = 1 ] || chown 65534:65534 "$D"
	export PROFILER_FILE=$D/profiled HOOK_FILE=$D/hooked TMPDIR=$D
}
by() { timeout -k 5 120 "${AS[@]}" "$T/bin/profcpu" "$@"; }
done_by() { by "$@" >out 2>err || fail "$*: exit $?: $(cat out err)"; }
refused() { # STATUS PATTERN COMMAND...: one error line
	local status=0
	"${@:3}" >out 2>err || status=$?
	[ "$status" = "$1" ] || fail "${*:3}: exit $status: $(cat out err)"
	[ "$(grep -c 'error:' err)" = 1 ] && [ ! -s out ] || fail "${*:3}: not one line: $(cat out err)"
	grep -qE "$2" err || fail "${*:3}: $(cat err)"
}
run() { # VERSION NAME=VALUE...: a program that works as soon as its runtime may run; its PID is in $PID
	start "net$1" "${AS[@]}" env "${@:2}" "$PUBLISHED/wide-net-net$1/wide-net" 600 --threads 1 --except Collect
	PID=$STARTED
}
works() { # VERSION
	wait_for 120 grep -q '^working pid' "net$1.log" || fail "$AT: it does not run: $(cat "net$1.log" out err)"
}
waits() { ! grep -q '^working' "net$1.log" || fail "$AT: it does not wait"; }
core() { [ "$(head -c 4 "$D/core" | tail -c 3)" = ELF ] && rm "$D/core" || fail "$AT: no core file: $(cat out err)"; }

# begin_listen ARG...: profcpu with this command waits at $D/port.
begin_listen() {
	"${AS[@]}" "$T/bin/profcpu" "$@" --diagnostic-port "$D/port" >out 2>err &
	started $!
	TOOL=$STARTED
	wait_for 60 test -S "$D/port" || fail "$AT: no socket: $(cat out err)"
}
# end_listen STATUS: it ends and removes the socket.
end_listen() {
	local status=0
	wait "$TOOL" || status=$?
	[ "$status" = "$1" ] || fail "$AT: exit $status: $(cat out err)"
	[ ! -e "$D/port" ] || fail "$AT: the socket is left"
}
# at_start VERSION STATUS ARG...: that command to a program that waits at its start and runs then. No file is left of others.
at_start() {
	AT="$1 ${*:3}"
	rm -f "$PROFILER_FILE" "$HOOK_FILE"
	begin_listen "${@:3}"
	run "$1" DOTNET_DiagnosticPorts="$D/port"
	end_listen "$2"
	works "$1"
}
# to_running ARG...: that command to the program that connects whenever a tool listens.
to_running() {
	done_by "$@" --diagnostic-port "$D/port"
	[ ! -e "$D/port" ] || fail "$*: the socket is left"
}

connect_mode() { # VERSION
	local v=$1 socket
	AT="$v, connect"
	rm -f "$PROFILER_FILE" "$HOOK_FILE"
	run "$v" DOTNET_DefaultDiagnosticPortSuspend=1
	wait_for 60 compgen -G "$D/dotnet-diagnostic-$PID-*-socket" || fail "$AT: no socket: $(cat "net$v.log")"
	socket=$(echo "$D/dotnet-diagnostic-$PID-"*-socket)
	PORT=(--diagnostic-port "$socket,connect")
	done_by info "${PORT[@]}" --json
	grep -q "\"pid\": $PID," out && grep -q "\"dotnet_version\": \"$v\." out || fail "$AT: $(cat out)"
	done_by env "${PORT[@]}" --set FIRST=1 --set OTHER=a=b
	done_by env "${PORT[@]}" --unset OTHER
	done_by env "${PORT[@]}"
	grep -q '^FIRST=1$' out && ! grep -q '^OTHER=' out || fail "$AT: $(cat out)"
	refused 1 'until it runs its program, it writes only --type full' by dump "${PORT[@]}" --type mini -o "$D/core"
	done_by load "${PORT[@]}" --profiler "$T/bin/profiler.so" --clsid $CLSID --at-start
	done_by load "${PORT[@]}" --startup-hook "$PUBLISHED/parked-net$v/parked.dll"
	waits "$v"
	[ ! -e "$PROFILER_FILE" ] && [ ! -e "$HOOK_FILE" ] || fail "$AT: something ran before the start"
	done_by resume "${PORT[@]}"
	works "$v"
	grep -q created "$PROFILER_FILE" || fail "$AT: no profiler from the start"
	[ "$(cat "$HOOK_FILE")" = "$PID" ] || fail "$AT: no hook"
	done_by dump "${PORT[@]}" --type mini -o "$D/core"
	core
	done_by resume "${PORT[@]}" # without effect
	stop "$PID"
}

listen_mode() { # VERSION
	local v=$1
	at_start "$v" 0 info --json
	grep -q "\"pid\": $PID," out && grep -q "\"dotnet_version\": \"$v\." out || fail "$AT: $(cat out)"
	stop "$PID"
	at_start "$v" 0 env
	grep -q "^DOTNET_DiagnosticPorts=$D/port$" out || fail "$AT: $(cat out)"
	stop "$PID"
	at_start "$v" 0 env --set FIRST=1 --unset DOTNET_DiagnosticPorts
	done_by env -p "$PID"
	grep -q '^FIRST=1$' out && ! grep -q '^DOTNET_DiagnosticPorts=' out || fail "$AT: $(cat out)"
	stop "$PID"
	at_start "$v" 0 load --profiler "$T/bin/profiler.so" --clsid $CLSID --at-start
	grep -q created "$PROFILER_FILE" || fail "$AT: no profiler"
	stop "$PID"
	at_start "$v" 0 load --startup-hook "$PUBLISHED/parked-net$v/parked.dll"
	[ "$(cat "$HOOK_FILE")" = "$PID" ] || fail "$AT: no hook"
	stop "$PID"
	at_start "$v" 0 resume
	stop "$PID"
	at_start "$v" 0 dump -o "$D/core"
	core
	stop "$PID"
	# It runs also after a failure.
	at_start "$v" 1 dump --type mini -o "$D/core"
	grep -q 'until it runs its program, it writes only --type full' err || fail "$AT: $(cat err)"
	stop "$PID"
	at_start "$v" 1 env --unset MISSING
	stop "$PID"

	AT="$v, nosuspend"
	rm -f "$PROFILER_FILE"
	run "$v" DOTNET_DiagnosticPorts="$D/port,nosuspend"
	works "$v"
	to_running info
	grep -q "^pid  *$PID$" out || fail "$AT: $(cat out)"
	to_running env --set LATER=1
	to_running dump --type mini -o "$D/core"
	core
	to_running load --profiler "$T/bin/profiler.so" --clsid $CLSID
	wait_for 20 grep -q created "$PROFILER_FILE" || fail "$AT: the profiler is not attached"
	to_running resume
	to_running env
	grep -q '^LATER=1$' out || fail "$AT: $(cat out)"
	stop "$PID"
}

both_modes() {
	local version
	for version in 8 9 10; do
		connect_mode $version
		listen_mode $version
	done
}

echo "as this user"
use mine
both_modes
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	echo "as another user, who is not root"
	use theirs setpriv --reuid 65534 --regid 65534 --clear-groups
	chmod a+x "$PUBLISHED"/wide-net-net{8,9,10}/createdump # the package has it for its owner only
	"${AS[@]}" test -x "$PUBLISHED/wide-net-net8/wide-net" || fail "user 65534 cannot read $PUBLISHED"
	both_modes

	echo "to a process of another user"
	use roots
	run 10 DOTNET_DefaultDiagnosticPortSuspend=1
	wait_for 60 compgen -G "$D/dotnet-diagnostic-$PID-*-socket" || fail "no socket"
	socket=$(echo "$D/dotnet-diagnostic-$PID-"*-socket)
	stranger=(setpriv --reuid 65534 --regid 65534 --clear-groups "$T/bin/profcpu")
	denies() { # REASON
		for command in info env 'env --set A=1' "dump -o $D/core" resume "load --profiler $T/bin/profiler.so --clsid $CLSID"; do
			# shellcheck disable=SC2086 # words
			refused 1 "^profcpu: error: $socket: $1; run as the user whose process listens there, or as root$" \
				"${stranger[@]}" $command --diagnostic-port "$socket,connect"
		done
	}
	denies '.*Permission denied'
	# The mode alone does not make it trusted.
	chmod 666 "$socket"
	denies 'another user listens there.*'
	[ ! -e "$D/core" ] && waits 10
	stop "$PID"

	echo "from a process of another user"
	AS=()
	begin_listen info
	AS=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	run 10 DOTNET_DiagnosticPorts="$D/port"
	wait_for 60 grep -q 'waiting for a runtime that starts with DOTNET_DiagnosticPorts=.* and may write to this socket' err ||
		fail "no note: $(cat err)"
	kill -INT "$TOOL"
	end_listen 1
	[ ! -s out ] && grep -q 'interrupted before a runtime connected' err || fail "$(cat out err)"
	stop "$PID"
	AS=()
fi

echo "signals while it waits"
use other
AT=signals
for signal in INT TERM; do
	begin_listen env --set A=1
	kill -$signal "$TOOL"
	end_listen 1
	[ "$(cat err)" = "profcpu: error: $D/port: interrupted before a runtime connected" ] || fail "$(cat out err)"
done

echo "runtimes that disconnect or stay silent"
cat >fake.py <<'PYTHON'
# usage: fake.py MODE DOES PATH   MODE: listen or connect; DOES: leaves after the first command, or silent
import os, socket, sys, time
mode, does, path = sys.argv[1:]
def connect():
    s = socket.socket(socket.AF_UNIX)
    s.connect(path)
    s.sendall(b"ADVR_V1\0" + b"c" * 16 + os.getpid().to_bytes(8, "little") + b"\0\0")
    return s
if mode == "listen":
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    s = server.accept()[0]  # profcpu finds out who listens
    s = server.accept()[0]
else:
    s = connect()
s.recv(1000)
open("requested", "w")
if does == "silent":
    time.sleep(600)
PYTHON
start fake python3 fake.py listen leaves "$D/fake"
wait_for 20 test -S "$D/fake"
refused 1 'its reply was cut off' by info --diagnostic-port "$D/fake,connect"
begin_listen info
start fake python3 fake.py connect leaves "$D/port"
end_listen 1
[ "$(grep -c 'error:' err)" = 1 ] && grep -q 'its reply was cut off' err || fail "$(cat err)"
rm requested
begin_listen dump -o "$D/core"
start fake python3 fake.py connect silent "$D/port"
wait_for 20 test -e requested || fail "no request: $(cat err)"
kill -INT "$TOOL"
end_listen 1
[ "$(grep -c 'error:' err)" = 1 ] && grep -q 'the command was interrupted' err &&
	grep -q "note: .*profcpu resume --diagnostic-port $D/port. lets it run\|^profcpu: the runtime may still wait" err || fail "$(cat err)"

echo "what is refused"
long=$(printf 'x%.0s' {1..108})
: >"$D/file"
refused 1 'missing: No such file or directory: no runtime listens there' by info --diagnostic-port "$D/missing,connect"
refused 1 'file: it is not a socket; give the one' by resume --diagnostic-port "$D/file,connect"
refused 1 'file exists; remove it if no tool waits there, or give another path' by resume --diagnostic-port "$D/file"
[ -f "$D/file" ] || fail "the file is removed"
refused 1 'fake: no process listens there any more' by env --diagnostic-port "$D/fake,connect"
refused 1 'longer than the path of a socket can be, 107 bytes; use' by env --diagnostic-port "$long,connect"
refused 1 'longer than the path of a socket can be, 107 bytes' by env --diagnostic-port "$long,listen"
refused 1 'cannot create the socket .*; give a path in a directory that you may write' by dump --diagnostic-port "$D/no/port"
refused 2 'is not PATH, PATH,listen or PATH,connect' by load --diagnostic-port "$D/file,twice" --profiler /x --clsid $CLSID
for command in info env dump resume "load --profiler /x --clsid $CLSID"; do
	# shellcheck disable=SC2086 # words
	refused 2 'exclude each other' by $command -p 1 --diagnostic-port "$D/file"
done
exit 0
