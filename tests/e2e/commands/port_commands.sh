#!/usr/bin/env bash
# profcpu env --set, dump, load and resume: what they do to runtimes of .NET 8 to 10, and what they refuse.
# Runs beside others.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc
need_published event_oracle-net10-portable parked-net10 wide-net-net8 wide-net-net9 wide-net-net10
refused() { # STATUS PATTERN ARG...: one error line
	local status=0
	"$PROFCPU" "${@:3}" >out 2>err || status=$?
	[ "$status" = "$1" ] || fail "${*:3}: exit $status: $(cat out err)"
	[ "$(grep -c 'error:' err)" = 1 ] && [ ! -s out ] || fail "${*:3}: not one line: $(cat out err)"
	grep -qE "$2" err || fail "${*:3}: $(cat err)"
}
done_by() { "$PROFCPU" "$@" >out 2>err || fail "$*: exit $?: $(cat out err)"; }
gcc -shared -fPIC -o profiler.so "$TESTS/e2e/commands/profiler.c" || fail "no profiler"
CLSID=01234567-89ab-cdef-0123-456789abcdef
export PROFILER_FILE=$T/profiled HOOK_FILE=$T/hooked

for version in 8 9 10; do
	echo ".NET $version"
	rm -f profiled
	start "net$version" "$PUBLISHED/wide-net-net$version/wide-net" 600 --threads 1 --except Collect
	pid=$STARTED
	wait_for 120 grep -q '^working pid' "net$version.log" || fail "$(cat "net$version.log")"
	done_by env -p "$pid" --set $'ODD=a=b;\303\244' --set OTHER=1
	done_by env -p "$pid"
	grep -q $'^ODD=a=b;\303\244$' out && grep -q '^OTHER=1$' out || fail "the variables are not set: $(grep -a 'ODD\|OTHER' out)"
	done_by env -p "$pid" --unset OTHER
	done_by env -p "$pid"
	! grep -q '^OTHER=' out || fail "the variable is not removed"
	refused 1 'has no such environment variable' env -p "$pid" --unset OTHER
	for type in mini triage heap full; do
		done_by dump -p "$pid" --type $type -o "$T/$type.core"
		grep -q "^$T/$type.core  [0-9.]* MB$" out || fail "$(cat out)"
		[ "$(head -c 4 $type.core | tail -c 3)" = ELF ] || fail "$type: no core file"
	done
	at_least "$(stat -c %s full.core)" "$(($(stat -c %s mini.core) + 1))" || fail "a full dump is no larger than a small one"
	rm ./*.core
	refused 1 'it failed' dump -p "$pid" -o "$T/no/such/dir/core"
	grep -q "note: .*Could not create output file '$T/no/such/dir/core'\|^profcpu: .*Could not create output file" err || fail "no reason: $(cat err)"
	refused 1 'it cannot load this file|it failed' load -p "$pid" --profiler "$T/missing.so" --clsid $CLSID
	done_by load -p "$pid" --profiler "$T/profiler.so" --clsid "{$CLSID}"
	wait_for 20 grep -q created profiled || fail "the profiler is not attached"
	refused 1 "$T/profiler.so: it is not a .NET assembly; .*--force" load -p "$pid" --startup-hook "$T/profiler.so"
	refused 1 'it has no class StartupHook outside of namespaces' load -p "$pid" \
		--startup-hook "$PUBLISHED/event_oracle-net10-portable/Microsoft.Diagnostics.Tracing.TraceEvent.dll"
	refused 1 'cannot read /missing.dll' load -p "$pid" --startup-hook /missing.dll
	kill -0 "$pid" || fail "a refused hook ended the process"

	echo "started suspended with .NET $version"
	rm -f profiled
	start "waits$version" env DOTNET_DefaultDiagnosticPortSuspend=1 "$PUBLISHED/wide-net-net$version/wide-net" 600 --threads 1 --except Collect
	waiting=$STARTED
	wait_for 60 "$PROFCPU" info -p "$waiting" >/dev/null 2>&1 || fail "no port"
	! grep -q 'working' "waits$version.log" || fail "it does not wait"
	done_by load -p "$waiting" --profiler "$T/profiler.so" --clsid $CLSID --at-start
	"$PROFCPU" trace -q -p "$waiting" --rundown off --clrevents loader -o start.nettrace 2>err &
	tracer=$!
	wait_for 60 test -e start.nettrace || fail "no trace: $(cat err)"
	sleep 2 # the runtime sends nothing before it runs
	done_by resume -p "$waiting"
	wait_for 120 grep -q '^working pid' "waits$version.log" || fail "not resumed: $(cat "waits$version.log")"
	grep -q created profiled || fail "the profiler is not used from the start"
	kill -INT $tracer && wait $tracer || fail "trace: $(cat err)"
	"$PROFCPU" events --event AssemblyLoad start.nettrace 2>/dev/null | grep -c '"' >loads
	at_least "$(cat loads)" 3 || fail "the trace lacks the start"
	stop "$waiting"
done

echo "a startup hook"
done_by load -p "$pid" --startup-hook "$PUBLISHED/parked-net10/parked.dll"
wait_for 20 test -s hooked || fail "the hook did not run"
[ "$(cat hooked)" = "$pid" ] || fail "the hook ran elsewhere: $(cat hooked)"

if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	echo "a process with another root"
	mkdir newroot
	start inside unshare --mount bash -c "mount --rbind / newroot && exec chroot newroot '$PUBLISHED/wide-net-net10/wide-net' 600 --threads 1 --except Collect"
	wait_for 120 grep -q '^working pid' inside.log || fail "$(cat inside.log)"
	done_by dump -p "$STARTED" --type mini
	path=$(sed -n "s|^\(/proc/$STARTED/root/tmp/core_[0-9_]*\)  [0-9.]* MB$|\1|p" out)
	[ -s "$path" ] || fail "no dump where profcpu says: $(cat out err)"
	rm "$path"
	refused 1 'it has another root than profcpu; give an absolute path' dump -p "$STARTED" -o core
	stop "$STARTED"
fi

echo "what is refused"
refused 2 'NAME=VALUE' env -p "$pid" --set NAME
refused 2 'the name of a variable' env -p "$pid" --unset A=B
refused 2 'none of mini, heap, triage and full' dump -p "$pid" --type huge
refused 2 'either --startup-hook or --profiler' load -p "$pid"
refused 2 'needs --clsid' load -p "$pid" --profiler /x.so
refused 2 'is not a GUID' load -p "$pid" --profiler /x.so --clsid 0123
refused 2 'an absolute path' load -p "$pid" --startup-hook hook.dll
refused 1 'not a regular file, and the runtime could remove it' dump -p "$pid" -o /dev/full
[ -c /dev/full ] || fail "/dev/full is gone"
refused 1 'has no diagnostic port' resume -p $$
refused 1 'has no diagnostic port' dump -p $$ -o "$T/none.core"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir other && cp "$PROFCPU" other/profcpu && chmod 755 "$T" other other/profcpu
	for command in "dump -o $T/none.core" "resume" "env --set A=1"; do
		status=0
		# shellcheck disable=SC2086 # words
		setpriv --reuid 65534 --regid 65534 --clear-groups other/profcpu ${command%% *} -p "$pid" ${command#"${command%% *}"} >out 2>err || status=$?
		[ "$status" = 1 ] && grep -q "run as its user, or with the capabilities" err || fail "another user, $command: exit $status: $(cat out err)"
	done
fi
"$PROFCPU" info -p "$pid" >/dev/null || fail "the runtime no longer answers"
exit 0
