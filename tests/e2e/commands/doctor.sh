#!/usr/bin/env bash
# profcpu doctor: its output and exit status for root, for a user without rights, under seccomp filters, in a PID
# namespace.
set -eu
dir=$(mktemp -d)
chmod 755 "$dir"
cp "$PROFCPU" "$dir/profcpu"
sleep 1000 &
sleeper=$!
map=/tmp/perf-$(awk '/^NSpid/ { print $NF }' "/proc/$sleeper/status").map
cleanup() {
	kill -9 "$sleeper" 2>/dev/null || true
	rm -rf "$dir" "$map"
}
trap cleanup EXIT
fail() {
	echo "$*"
	cat "$dir/out" 2>/dev/null
	exit 1
}
doctor() { # WANTED-STATUS COMMAND...: output in $dir/out
	local wanted=$1 status=0
	shift
	"$@" >"$dir/out" 2>"$dir/err" || status=$?
	[ "$status" = "$wanted" ] || fail "exit status $status instead of $wanted: $* $(cat "$dir/err")"
}
prints() { grep -Eq "$1" "$dir/out" || fail "output lacks: $1"; }

doctor 1 "$PROFCPU" doctor -p 2147483646
prints '^NO +target +PID 2147483646: No such process'
doctor 2 "$PROFCPU" doctor -p nonsense
doctor 2 "$PROFCPU" doctor nonsense
doctor 2 "$PROFCPU" doctor --nonsense

# If this process may sample itself, the other checks must pass too.
"$PROFCPU" doctor >"$dir/out" 2>/dev/null || { tail -n 1 "$dir/out"; exit 77; }
prints '^yes +perf_event_open +works$'
prints "^yes +kernel +Linux $(uname -r)$"
prints '^Recording can work here'
doctor 0 "$PROFCPU" doctor --json -p "$sleeper"
python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
items = {i["name"]: i for i in r["items"]}
assert r["can_record"] is True and items["target samples"]["ok"] is True, r
assert all(i["ok"] == (i["effect"] is None) and i["found"] for i in r["items"]), r
' "$dir/out" || fail "--json: wrong items"

# A file of another user in place of the perf map.
doctor 0 "$PROFCPU" doctor -p "$sleeper"
prints "^yes +target +PID $sleeper: sleep, uid $(id -u), 1 thread$"
prints '^yes +target runtime +not .NET'
grep -q 'target perf map' "$dir/out" && fail "checks the perf map of a program without .NET"
mkfifo "$map"
doctor 0 timeout 20 "$PROFCPU" doctor -p "$sleeper"
prints '^no +target perf map +/tmp/perf-[0-9]+.map: Permission denied'
rm "$map"
echo '1000 10 f' >"$map"
doctor 0 "$PROFCPU" doctor -p "$sleeper"
prints '^yes +target perf map +/tmp/perf-[0-9]+.map, 1 KiB'

# Filters of container runtimes: EPERM (Docker, podman) and ENOSYS (newer ones). 298 is perf_event_open on x86-64.
if [ "$(uname -m)" = x86_64 ] && [ -x "$BUILD/helpers/seccomp_exec" ]; then
	for error in 1 38; do
		doctor 1 "$BUILD/helpers/seccomp_exec" 298 "$error" "$PROFCPU" doctor
		prints '^NO +perf_event_open'
		prints 'seccomp'
		prints '^no +seccomp +a filter'
		prints '^Recording cannot work here'
	done
	# A filter without openat2: files of the target are still found.
	for error in 1 38; do
		doctor 0 "$BUILD/helpers/seccomp_exec" 437 "$error" "$PROFCPU" doctor -p "$sleeper"
		prints '^yes +target perf map'
	done
fi

[ "$(id -u)" = 0 ] || exit 0
unprivileged=(setpriv --reuid 12345 --regid 12345 --clear-groups)
doctor 1 "${unprivileged[@]}" "$dir/profcpu" doctor -p "$sleeper"
prints '^NO +target samples'
prints '^no +CAP_PERFMON +not there'
prints '^no +CAP_SYS_PTRACE +not there'
prints '^no +target files +Permission denied: it belongs to user 0$'
# Without namespaces of a container the remedies are for the machine, even if a container left /.dockerenv.
apart=0
for ns in uts:4026531838 ipc:4026531839 pid:4026531836 user:4026531837 cgroup:4026531835; do
	[ "$(readlink "/proc/self/ns/${ns%:*}")" = "${ns%:*}:[${ns#*:}]" ] || apart=1
done
if [ $apart = 0 ] && [ "$(readlink /proc/self/ns/mnt)" = "$(readlink /proc/1/ns/mnt)" ]; then
	grep -Eq 'run the container|securityContext' "$dir/out" && fail "remedies for containers outside a container"
	prints 'remedy: .*run it as root \(sudo\), or: setcap cap_perfmon'
	[ ! -e /.dockerenv ] || doctor 1 unshare --uts "${unprivileged[@]}" "$dir/profcpu" doctor -p "$sleeper"
	[ ! -e /.dockerenv ] || prints 'remedy: .*run the container with --cap-add PERFMON'
fi
doctor 1 "${unprivileged[@]}" "$dir/profcpu" doctor -p "$sleeper"
grep -A 2 'CAP_SYS_PTRACE' "$dir/out" | grep -Eq 'remedy: .*(SYS_PTRACE|root)' || fail "no remedy for CAP_SYS_PTRACE"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	"${unprivileged[@]}" sleep 1003 &
	own=$!
	for _ in $(seq 50); do [ "$(cat /proc/$own/comm)" = sleep ] && break; sleep 0.1; done
	doctor 0 "${unprivileged[@]}" "$dir/profcpu" doctor -p "$own"
	kill -9 "$own"
	prints '^yes +target samples'
	prints '^yes +target maps'
fi
# A target of the same user with more capabilities: every command reports them as the reason of the denial.
setpriv --reuid 12345 --regid 12345 --clear-groups --inh-caps +net_raw --ambient-caps +net_raw sleep 1004 &
capable=$!
for _ in $(seq 50); do [ "$(cat /proc/$capable/comm)" = sleep ] && break; sleep 0.1; done
status=0
"${unprivileged[@]}" "$dir/profcpu" doctor -p "$capable" >"$dir/out" 2>"$dir/err" || status=$?
[ "$status" = 1 ] || fail "exit status $status instead of 1: doctor -p $capable"
for item in files maps runtime; do
	prints "^no +target $item +Permission denied: it holds CAP_NET_RAW, which we lack$"
done
prints 'remedy: .* capabilities that the target holds'
prints '^no +processes .* 1 holds capabilities that we lack \(PID '$capable'\)$'
"${unprivileged[@]}" "$dir/profcpu" ps 2>&1 >/dev/null | grep -q "1 holds capabilities that we lack (PID $capable);" || fail "ps does not report the reason"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -le 2 ]; then
	prints '^NO +target samples +Permission denied: it holds CAP_NET_RAW'
	mkdir -m 777 "$dir/rec"
	"${unprivileged[@]}" "$dir/profcpu" collect -p "$capable" -d 0.1 -o "$dir/rec/one" 2>"$dir/err" >/dev/null &&
		fail "collect works without the right"
	grep -q "process $capable: Permission denied: it holds CAP_NET_RAW, which we lack, and CAP_PERFMON is missing" "$dir/err" ||
		fail "collect printed: $(cat "$dir/err")"
	# CAP_PERFMON permits sampling. Data from its files are reported as missing.
	"${unprivileged[@]}" --inh-caps +perfmon --ambient-caps +perfmon "$dir/profcpu" collect -p "$capable" -d 0.1 \
		-o "$dir/rec/two" 2>"$dir/err" >/dev/null || fail "collect with CAP_PERFMON: $(cat "$dir/err")"
	grep -q "process $capable: cannot read its files and perf map: it holds CAP_NET_RAW" "$dir/err" ||
		fail "collect with CAP_PERFMON printed: $(cat "$dir/err")"
fi
kill -9 "$capable"
# A chroot cannot have its own /proc, because its root is no mount.
if unshare --mount true 2>/dev/null; then
	doctor 0 unshare --pid --fork --mount-proc "$PROFCPU" doctor
	prints "^no +PID namespace +a container's: 0 other processes in sight"
fi
# /proc of another PID namespace: its PIDs belong to other processes.
doctor 1 unshare --pid --fork "$PROFCPU" doctor
prints '^NO +/proc '
