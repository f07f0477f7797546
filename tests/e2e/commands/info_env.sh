#!/usr/bin/env bash
# profcpu info and env: what runtimes of .NET 8 to 10 say of themselves, and processes that do not answer.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published wide-net-net8 wide-net-net9 wide-net-net10
refused() { # PATTERN ARG...: exit 1 and one line
	local status=0
	"$PROFCPU" "${@:2}" >out 2>err || status=$?
	[ "$status" = 1 ] || fail "${*:2}: exit $status: $(cat out err)"
	[ "$(grep -c . err)" = 1 ] && [ ! -s out ] || fail "${*:2}: not one line: $(cat out err)"
	grep -qE "$1" err || fail "${*:2}: $(cat err)"
}

cat >same.py <<'PYTHON'
import json, sys
pid = sys.argv[1]
with open(f"/proc/{pid}/environ", "rb") as f:
    want = sorted(v.decode(errors="replace") for v in f.read().split(b"\0") if v)
entries = json.load(open("env.json"))["environment"]
have = sorted(e["name"] + ("" if e["value"] is None else "=" + e["value"]) for e in entries)
assert have == want, (set(have) ^ set(want))
info = json.load(open("info.json"))
inside = [line.split()[-1] for line in open(f"/proc/{pid}/status") if line.startswith("NSpid:")]
assert info["pid"] == int(pid) and info["pid_inside"] == int(inside[0]), info
assert info["dotnet_version"].startswith(sys.argv[2] + "."), info
assert info["rid"] == "linux-x64" and info["arch"] == "x64" and info["entry_assembly"] == "wide-net", info
assert "command_line" not in info and len(info["runtime_cookie"]) == 36, info
PYTHON
# The command SetEnvironmentVariable, through the port in our own /tmp.
cat >set_variable.py <<'PYTHON'
import glob, socket, struct, sys
text = lambda t: struct.pack("<I", len(t) + 1) + (t + "\0").encode("utf-16-le")
payload = text(sys.argv[2]) + text(sys.argv[3])
with socket.socket(socket.AF_UNIX) as port:
    port.connect(glob.glob(f"/tmp/dotnet-diagnostic-{sys.argv[1]}-*-socket")[0])
    port.sendall(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20 + len(payload), 4, 3, 0) + payload)
    sys.exit(port.recv(24)[16:18] != b"\xff\0")
PYTHON
for version in 8 9 10; do
	start "net$version" env ODD=$'a\nb\033[2J\303\244=' DOTNET_Odd=1 "$PUBLISHED/wide-net-net$version/wide-net" 600 --threads 1 --except Collect
	pid=$STARTED
	wait_for 120 grep -q '^working pid' "net$version.log" || fail "$(cat "net$version.log")"
	"$PROFCPU" info -p "$pid" --json >info.json || fail "info of .NET $version"
	"$PROFCPU" env -p "$pid" --json >env.json || fail "env of .NET $version"
	python3 same.py "$pid" "$version" || fail "info or env of .NET $version: $(cat info.json)"
	"$PROFCPU" info -p "$pid" >info || fail "info of .NET $version"
	grep -q "^\.NET  *$version\." info && ! grep -q 'command line' info || fail "$(cat info)"
	"$PROFCPU" info -p "$pid" --args | grep -q '^command line .*wide-net.* 600 --threads 1' || fail "no command line"
	"$PROFCPU" env -p "$pid" >environment || fail "env of .NET $version"
	grep -aq $'\033' environment && fail "a value reaches the terminal: $(grep -a ODD environment | cat -v)"
	grep -q '^DOTNET_Odd=1$' environment || fail "$(cat environment)"
	python3 set_variable.py "$pid" SET_LATER yes || fail "the runtime of .NET $version set no variable"
	"$PROFCPU" env -p "$pid" | grep -q '^SET_LATER=yes$' || fail "env lacks what was set since the start"
done

echo "who may not, and who does not answer"
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	mkdir other && cp "$PROFCPU" other/profcpu && chmod 755 "$T" other other/profcpu
	for command in info env; do
		status=0
		setpriv --reuid 65534 --regid 65534 --clear-groups other/profcpu "$command" -p "$pid" >out 2>err || status=$?
		[ "$status" = 1 ] && [ "$(grep -c . err)" = 1 ] && grep -q "run as its user, or with the capabilities that .profcpu doctor -p $pid. names" err ||
			fail "another user: exit $status: $(cat out err)"
	done
fi
if [ "$(id -u)" = 0 ] && unshare --pid --fork --mount-proc true 2>/dev/null; then
	for command in info env dump trace; do
		status=0
		unshare --pid --fork --mount-proc "$PROFCPU" "$command" >out 2>err || status=$?
		[ "$status" = 1 ] && [ "$(cat err)" = 'profcpu: error: no .NET process in sight; name one with -p' ] ||
			fail "$command without a process: exit $status: $(cat out err)"
	done
fi
start plain sleep 600
refused 'has no diagnostic port' info -p "$STARTED"
refused 'has no diagnostic port' env -p "$STARTED"
refused 'does not exist' env -p 2147483647
kill -STOP "$pid"
refused 'did not answer in time' info -p "$pid"
kill -CONT "$pid"
"$PROFCPU" info -p "$pid" >info || fail "info after a stop"
"$PROFCPU" env -p "$pid" >/dev/full 2>err && fail "a full disk was accepted"
grep -q 'cannot write to stdout' err || fail "$(cat err)"
exit 0
