#!/usr/bin/env bash
# profcpu ps: its rows for root, for a user without rights, and from inside a PID namespace.
# Runs beside others.
set -eu
dir=$(mktemp -d)
pids=()
cleanup() {
	for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
	rm -rf "$dir"
}
trap cleanup EXIT
fail() {
	echo "$*"
	exit 1
}
row() { # PID: its line, words by single spaces
	"$PROFCPU" ps 2>/dev/null | tr -s ' ' | sed 's/^ //' | grep "^$1 " || true
}

sleep 1000 &
pids+=($!)
sleeper=$!
[ "$(row "$sleeper")" = "$sleeper $(awk '/^NSpid/ { print $NF }' "/proc/$sleeper/status") $(id -un) - - sleep" ] ||
	fail "row of a plain process: $(row "$sleeper")"
row $$ | grep -q bash || fail "row of this shell: $(row $$)"

# Shows arguments only on request, and without control characters for the terminal.
bash -c 'exec -a "$(printf "pass\033word")" sleep 1001' &
pids+=($!)
secret=$!
for _ in $(seq 50); do [ "$(cat "/proc/$secret/comm")" = sleep ] && break; sleep 0.1; done
"$PROFCPU" ps 2>/dev/null | grep -q word && fail "arguments are shown"
"$PROFCPU" ps --args 2>/dev/null | grep -q 'sleep: pass?word 1001' || fail "arguments are missing or not escaped"
# The table cuts a long command line; scripts get it whole.
python3 -c 'import os; os.execvp("sleep", ["é" * 30001] + ["1003"])' &
pids+=($!)
long=$!
for _ in $(seq 50); do [ "$(cat "/proc/$long/comm")" = sleep ] && break; sleep 0.1; done
"$PROFCPU" ps --args 2>/dev/null >"$dir/long"
grep "^ *$long " "$dir/long" | grep -q 'sleep: ?*\.\.\.$' || fail "no row of a long command line"
[ "$(grep "^ *$long " "$dir/long" | wc -c)" -le 4300 ] || fail "a command line is not cut"
"$PROFCPU" ps --args --json 2>/dev/null | python3 -c '
import json, sys
text = [p for p in json.load(sys.stdin)["processes"] if p["pid"] == int(sys.argv[1])][0]["arguments"]
assert text == "é" * 30001 + " 1003", text[-10:]
' "$long" || fail "--json: a long command line is not whole"
"$PROFCPU" ps --json 2>/dev/null | python3 -c '
import json, sys
l = json.load(sys.stdin)
me = [p for p in l["processes"] if p["pid"] == int(sys.argv[1])]
assert len(me) == 1 and me[0]["command"] == "sleep" and me[0]["dotnet"] is False and "arguments" not in me[0], me
' "$sleeper" || fail "--json: wrong entry"

"$PROFCPU" ps nonsense 2>/dev/null && fail "ps accepts an argument"
status=0; "$PROFCPU" ps --nonsense >/dev/null 2>&1 || status=$?
[ "$status" = 2 ] || fail "exit status $status of wrong usage"
status=0; "$PROFCPU" ps >/dev/full 2>"$dir/err" || status=$?
[ "$status" = 1 ] || fail "exit status $status on a full disk"
grep -q 'No space' "$dir/err" || fail "the full disk is not reported: $(cat "$dir/err")"

if [ "$(id -u)" = 0 ]; then
	# A user without rights gets a note that more processes exist; the rows of its own processes are complete.
	chmod 755 "$dir"
	cp "$PROFCPU" "$dir/profcpu"
	setpriv --reuid 12345 --regid 12345 --clear-groups "$dir/profcpu" ps >"$dir/out" 2>"$dir/err"
	tr -s ' ' <"$dir/out" | grep -q "^ $sleeper .* ? - sleep" || fail "without rights: $(cat "$dir/out")"
	grep -q 'CAP_SYS_PTRACE' "$dir/err" || fail "CAP_SYS_PTRACE is not mentioned: $(cat "$dir/err")"
fi
# Not in a chroot, whose root is no mount and cannot have another /proc.
if [ "$(id -u)" = 0 ] && unshare --mount true 2>/dev/null; then
	# Inside a PID namespace only its own processes are listed, under its numbers.
	unshare --pid --fork --mount-proc "$PROFCPU" ps >"$dir/out" 2>"$dir/err"
	grep -q sleep "$dir/out" && fail "processes of the outer namespace are listed"
	# From outside both numbers are shown.
	unshare --pid --fork --mount-proc --kill-child sleep 1002 &
	pids+=($!)
	for _ in $(seq 50); do
		inner=$("$PROFCPU" ps --json 2>/dev/null | sed -n "s/.*\"pid\":\([0-9]*\),.*\"ppid\":$!,.*/\1/p")
		[ -n "$inner" ] && break
		sleep 0.1
	done
	[ "$(row "$inner" | cut -d' ' -f1,2)" = "$inner 1" ] || fail "a process in a namespace: $(row "$inner")"
fi

# If collect cannot choose, it lists the candidates like ps, with the assembly but never with arguments.
mkdir -p "$dir/shared/Microsoft.NETCore.App/9.8.7"
head -c 4096 /dev/zero >"$dir/shared/Microsoft.NETCore.App/9.8.7/libcoreclr.so"
runtime='import mmap, sys, time
f = open(sys.argv[1], "rb")
m = mmap.mmap(f.fileno(), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
time.sleep(1000)'
python=$(python3 -c 'import sys; print(sys.executable)')
for program in dotnet "$dir/one/$(printf 'long%.0s' {1..20})/App"; do
	bash -c 'exec -a "$0" "$@"' "$program" "$python" -c "$runtime" "$dir/shared/Microsoft.NETCore.App/9.8.7/libcoreclr.so" /srv/shop/Shop.dll secret /srv/no.dll &
	pids+=($!)
done
for _ in $(seq 100); do
	"$PROFCPU" ps --dotnet >"$dir/out" 2>/dev/null
	grep -q " ${pids[-1]} " "$dir/out" && grep -q " ${pids[-2]} " "$dir/out" && break
	sleep 0.1
done
status=0; "$PROFCPU" collect -o "$dir/rec" >"$dir/out" 2>"$dir/err" || status=$?
[ "$status" = 2 ] || fail "several .NET processes: exit status $status: $(cat "$dir/err")"
grep -q 'error: [0-9]* .NET processes in sight; choose with -p:$' "$dir/err" || fail "$(cat "$dir/err")"
grep -Eq '^ +PID +NSPID +USER +.NET +CONTAINER +COMMAND$' "$dir/err" || fail "no headings: $(cat "$dir/err")"
grep -Eq "^ *${pids[-2]} .* $(id -un) +9.8.7 .* python3[0-9.]*: /srv/shop/Shop.dll\$" "$dir/err" || fail "the assembly is not listed: $(cat "$dir/err")"
grep -Eq "^ *${pids[-1]} .* python3[0-9.]*: \.\.\.(ng)?(long)*/App\$" "$dir/err" || fail "the program's path is not shortened: $(cat "$dir/err")"
[ ! -s "$dir/out" ] && [ ! -e "$dir/rec" ] || fail "several .NET processes: a recording was started"

command -v dotnet >/dev/null || exit 0
# Any .NET program will do: the compiler server of the SDK waits for work.
server=$(find "$(dirname "$(readlink -f "$(command -v dotnet)")")" -name VBCSCompiler.dll | head -n 1)
[ -n "$server" ] || exit 0
dotnet "$server" "-pipename:$$-profcpu-ps" >/dev/null 2>&1 &
pids+=($!)
net=$!
version=
for _ in $(seq 100); do
	version=$(row "$net" | cut -d' ' -f4)
	[ -n "$version" ] && [ "$version" != - ] && break
	sleep 0.1
done
dotnet --list-runtimes | grep -q "^Microsoft.NETCore.App $version " || fail "version '$version' of $(row "$net")"
"$PROFCPU" ps --dotnet 2>/dev/null | tr -s ' ' | grep -q "^ $net .* $version - dotnet" || fail "--dotnet does not list the process"
"$PROFCPU" ps --dotnet 2>/dev/null | grep -q sleep && fail "--dotnet lists a process without .NET"
"$PROFCPU" ps --dotnet --json 2>/dev/null | grep -q "\"dotnet\":true,\"dotnet_version\":\"$version\"" || fail "--dotnet --json: wrong entry"
if [ "$(id -u)" = 0 ]; then
	# Without rights its port in /tmp identifies it.
	for _ in $(seq 50); do
		setpriv --reuid 12345 --regid 12345 --clear-groups "$dir/profcpu" ps --dotnet 2>/dev/null | grep -q " $net " && exit 0
		sleep 0.1
	done
	fail "without rights: the .NET process is not found by its port"
fi
