#!/usr/bin/env bash
# A target in a container, seen from the host and from a sidecar: its PID inside, its container, its root, its perf map.
# First in namespaces that this script makes, which works everywhere. Then, if podman and runc work, in a real container
# with its usual limits.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need unshare tar
need_mounts

# A root with only a shell and the programs that both tests need.
add_program() { # PROGRAM PLACE
	local library
	cp -L "$1" "$T/root$2"
	while read -r library; do
		mkdir -p "$T/root$(dirname "$library")"
		cp -Ln "$library" "$T/root$library"
	done < <(ldd "$1" | grep -o '/[^ ]*')
}
make_root() {
	local program
	mkdir -p "$T"/root/{bin,tmp,proc,sys,dev,etc,run} "$T/mnt"
	for program in /bin/sh /bin/sleep /bin/mkfifo; do
		add_program "$program" "$program"
	done
	add_program "$PROFCPU" /bin/profcpu
	add_program "$BUILD/helpers/waits" /bin/waits
	echo 'root:x:0:0::/:/bin/sh' >"$T/root/etc/passwd"
}
make_root

# unshare ignores SIGTERM while its child runs.
end() {
	kill -KILL "$1"
	wait "$1" 2>/dev/null || true
}

# The only descendant of a process that is named "sleep".
sleeper_below() { # ANCESTOR
	local pid
	for _ in $(seq 200); do
		pid=$("$PROFCPU" ps --json 2>/dev/null | python3 -c '
import json, sys
all = {p["pid"]: p for p in json.load(sys.stdin)["processes"]}
def below(p):
    while p and p["pid"] != int(sys.argv[1]):
        p = all.get(p["ppid"])
    return p
print(*[p["pid"] for p in all.values() if p["command"] == "sleep" and below(p)])' "$1")
		if [ -n "$pid" ]; then
			echo "$pid"
			return
		fi
		sleep 0.1
	done
	cat "$T/target.log" >&2
}
doctor_prints() { # PATTERN ARGUMENTS...
	local pattern=$1
	shift
	"$PROFCPU" doctor "$@" >"$T/doctor" 2>&1 || true
	grep -Eq "$pattern" "$T/doctor" || fail "doctor does not print '$pattern': $(cat "$T/doctor")"
}
# Checks a target in a root of its own, with a perf map that exists only there.
check_target() { # PID
	local pid=$1
	[ -n "$pid" ] || fail "no target found"
	[ "$("$PROFCPU" ps --json 2>/dev/null | sed -n "s/.*\"pid\":$pid,\"ns_pid\":\([0-9]*\),.*/\1/p")" = 1 ] ||
		fail "its PID in its namespace is not 1"
	doctor_prints '^yes +target files +in a root of its own' -p "$pid"
	doctor_prints '^yes +target perf map +/tmp/perf-1.map, 1 KiB' -p "$pid"
	doctor_prints '^yes +target maps +readable' -p "$pid"
}

inside='echo "1000 10 inside" >/tmp/perf-1.map; exec sleep 1000'
start target unshare --mount --pid --fork --kill-child --root "$T/root" /bin/sh -c "$inside"
by_hand=$STARTED
check_target "$(sleeper_below "$by_hand")"
end "$by_hand"

# A planted perf map neither blocks nor leads out of the root.
rm "$T/root/tmp/perf-1.map"
echo '1000 10 outside' >"$T/outside.map"
for plant in 'mkfifo /tmp/perf-1.map' ':'; do
	[ "$plant" = : ] && ln -s "$T/outside.map" "$T/root/tmp/perf-1.map"
	start target unshare --mount --pid --fork --kill-child --root "$T/root" /bin/sh -c "$plant; exec sleep 1000"
	planted=$STARTED
	pid=$(sleeper_below "$planted")
	sleep 0.1
	doctor_prints '^yes +target files' -p "$pid"
	grep -Eq '^yes +target perf map' "$T/doctor" && fail "a planted perf map is used: $plant"
	end "$planted"
	rm "$T/root/tmp/perf-1.map"
done

# A program in a root that disappears with it: its names are found even after it has ended.
if "$BUILD/helpers/can_sample" >/dev/null 2>&1; then
	add_program "$BUILD/examples/shares" /bin/only-inside
	start target unshare --mount --pid --fork --kill-child /bin/sh -c "
		mount -t tmpfs tmpfs '$T/mnt' && cp -a '$T/root/.' '$T/mnt/' && exec chroot '$T/mnt' /bin/sh -c 'sleep 1000; exec /bin/only-inside 1'"
	sleeper=$(sleeper_below "$STARTED")
	[ -n "$sleeper" ] || fail "the target did not reach its sleep"
	pid=$(cut -d " " -f 4 "/proc/$sleeper/stat")
	rm "$T/root/bin/only-inside"
	start recorder "$PROFCPU" collect -o "$T/rec" -p "$pid" -F 499 -d 60
	recorder=$STARTED
	wait_for 30 test -s "$T/rec/perf.data" || fail "the recording did not begin: $(cat "$T/recorder.log")"
	kill "$sleeper"
	wait "$recorder" || fail "collect gave $?: $(cat "$T/recorder.log")"
	[ -e "/proc/$pid" ] && fail "the target did not end during the recording"
	share=$(share_of "$T/rec/folded_stacks.out" ';main;.*work;(alpha|beta|gamma)')
	awk -v s="$share" 'BEGIN { exit !(s >= 90) }' || fail "only $share % of the samples have names: $(head -n 5 "$T/rec/folded_stacks.out")"
fi

if ! command -v podman >/dev/null || ! command -v runc >/dev/null; then
	echo "podman or runc is missing; only hand-made namespaces were tested"
	exit 0
fi
image=localhost/profcpu-test-$$
name=profcpu-test-$$
podman_run() { timeout 120 podman --runtime runc run --network none --ulimit nofile=1024:1024 --ulimit nproc=1000:1000 "$@"; }
t_remove_container() {
	timeout 60 podman rm -f -t 0 "$name" >/dev/null 2>&1
	timeout 60 podman rmi -f "$image" >/dev/null 2>&1
	t_clean_up
}
trap t_remove_container EXIT
if ! tar -C "$T/root" -c . | podman import -q - "$image" >/dev/null 2>&1 || ! podman_run --rm "$image" /bin/sh -c : 2>"$T/podman"; then
	echo "podman does not work here ($(tail -n 1 "$T/podman" 2>/dev/null)); only hand-made namespaces were tested"
	exit 0
fi

id=$(podman_run -d --name "$name" "$image" /bin/sh -c "$inside") || fail "podman run: $id"
pid=$(podman inspect -f '{{.State.Pid}}' "$name")
check_target "$pid"
"$PROFCPU" ps 2>/dev/null | tr -s ' ' | grep -q "^ *$pid 1 0 - ${id:0:12} sleep$" ||
	fail "ps of the container: $("$PROFCPU" ps 2>/dev/null | grep " $pid ")"

# A sidecar in its PID namespace: the suggested capabilities give it the missing rights.
sidecar() { # STATUS ARGUMENTS...
	local wanted=$1 status=0
	shift
	podman_run --rm --pid "container:$name" "$@" "$image" /bin/profcpu doctor -p 1 >"$T/sidecar" 2>&1 || status=$?
	[ "$status" = "$wanted" ] || fail "sidecar $*: exit status $status instead of $wanted: $(cat "$T/sidecar")"
}
sidecar_prints() { grep -Eq "$1" "$T/sidecar" || fail "the output in the sidecar lacks '$1': $(cat "$T/sidecar")"; }
sidecar 1
sidecar_prints '^NO +perf_event_open'
sidecar_prints 'remedy: .*--cap-add PERFMON --security-opt seccomp=unconfined'
sidecar_prints 'remedy: .*--cap-add SYS_PTRACE'
sidecar_prints '^yes +target +PID 1: sleep'
podman_run --rm "$image" /bin/profcpu doctor >"$T/sidecar" 2>&1
sidecar_prints 'remedy: .*--pid container:TARGET'
grep -q CAP_PERFMON "$T/sidecar" || fail "CAP_PERFMON is not mentioned"
# Root with every right that perf_event_open requires.
if "$BUILD/helpers/can_sample" >/dev/null 2>&1; then
	sidecar 0 --cap-add SYS_ADMIN --cap-add SYS_PTRACE
	sidecar_prints '^yes +target perf map +/tmp/perf-1.map'
	sidecar_prints '^yes +target samples'
	sidecar 0 --cap-add PERFMON --cap-add SYS_PTRACE --security-opt seccomp=unconfined
	sidecar_prints '^yes +target samples'

	# Waits of a target inside and their wakers, with the options for sidecars in docs/containers.md.
	podman rm -f -t 0 "$name" >/dev/null 2>&1
	mkdir "$T/out"
	podman_run -d --name "$name" "$image" /bin/waits pipe 60 >/dev/null || fail "podman run waits"
	tracefs=()
	[ ! -r /sys/kernel/tracing/events/sched/sched_waking/id ] || tracefs=(-v /sys/kernel/tracing:/sys/kernel/tracing:ro)
	podman_run --rm --pid "container:$name" --cap-add PERFMON --cap-add SYS_PTRACE --cap-add SYSLOG --cap-add IPC_LOCK \
		--security-opt seccomp=unconfined "${tracefs[@]}" -v "$T/out:/out" "$image" \
		/bin/profcpu collect --off-cpu --max-overhead 100 -p 1 -d 2 -o /out/rec >"$T/waits.out" 2>&1 || fail "sidecar: $(cat "$T/waits.out")"
	part_of_duration "$T/out/rec" "$(weight_of "$T/out/rec/offcpu.folded" ';run_pipe;wait_pipe;')" 0.9 1.02 ||
		fail "wait_pipe does not have the whole duration: $(cat "$T/out/rec/offcpu.folded")"
	if [ -n "${tracefs[*]}" ]; then
		# The first wait of each thread has no waker, because that wait reveals the thread's TID outside.
		at_least "$(weight_of "$T/out/rec/wakeup.folded" ';wait_pipe;[^-]*;--;[^-]*;wake_pipe;end_pipe;')" 1700000 || fail "wait_pipe lacks wakers: $(cat "$T/out/rec/wakeup.folded")"
	else
		grep -q 'wakers are not recorded: .*tracefs' "$T/waits.out" || fail "tracefs is not mentioned: $(cat "$T/waits.out")"
	fi
fi
