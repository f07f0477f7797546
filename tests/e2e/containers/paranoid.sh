#!/usr/bin/env bash
# A user without capabilities gets what kernel.perf_event_paranoid permits, and advice on what it does not. The test sets
# the sysctl and restores it, so it runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need setpriv
need_root
need_sampling
need_tracefs
sysctl=/proc/sys/kernel/perf_event_paranoid
before=$(cat $sysctl)
[ -w $sysctl ] || skip "needs to write $sysctl"
trap 'echo "$before" >$sysctl; t_clean_up' EXIT
chmod 755 "$T"
cp "$PROFCPU" "$BUILD/examples/shares" "$T/"
chmod 755 "$T/profcpu" "$T/shares"
mkdir -m 777 "$T/ours"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all)
start_shares 120
mount -o remount,mode=755,gid=65534 /sys/kernel/tracing || skip "needs to change the mode of tracefs"

n=0
collect() { # STATUS ARG...: what it printed is in $T/err
	local want=$1
	shift
	n=$((n + 1))
	timeout 60 "${nobody[@]}" "${through[@]}" "$T/profcpu" collect --no-download -d 0.3 -o "$T/ours/$n" "$@" >"$T/out" 2>"$T/err"
	[ $? = "$want" ] || fail "exit status is not $want: paranoid $(cat $sysctl), $*: $(cat "$T/err")"
}
through=()
says() { grep -q -- "$1" "$T/err" || fail "paranoid $(cat $sysctl): '$1' is missing: $(cat "$T/err")"; }
silent() { if grep -q -- "$1" "$T/err"; then fail "paranoid $(cat $sysctl): '$1' is in: $(cat "$T/err")"; fi; }

echo "-1: all"
echo -1 >$sysctl
collect 0 --off-cpu -p "$SHARES_PID"
silent 'CAP_PERFMON\|paranoid'
collect 0 -F 999 -p "$SHARES_PID"
grep -q '"ring_memory"' "$T/ours/$n/manifest.json" || fail "memory for rings is not free"

echo "0: all but wakers; another user's process through whole CPUs"
echo 0 >$sysctl
collect 0 -F 99 -d 1 -p "$SHARES_PID"
silent 'CAP_PERFMON\|paranoid'
says 'run with CAP_SYS_PTRACE'
[ "$(sed -n 's/^samples *\([0-9]*\).*/\1/p' "$T/out")" -gt 5 ] || fail "no samples: $(cat "$T/out")"
"${nobody[@]}" "$T/profcpu" doctor -p "$SHARES_PID" >"$T/doctor" 2>&1
grep -q '^yes *target samples *may be taken, by events of whole CPUs' "$T/doctor" || fail "doctor: $(cat "$T/doctor")"
grep -A 2 '^no *CAP_PERFMON' "$T/doctor" | grep -q 'remedy: .*perf_event_paranoid=-1\|securityContext' || fail "doctor: $(cat "$T/doctor")"
collect 0 --off-cpu -p "$SHARES_PID"
says 'sched:sched_waking: .*perf_event_paranoid is 0, and CAP_PERFMON is missing; .*perf_event_paranoid=-1$'
cp "$BUILD/helpers/seccomp_exec" "$T/"
# A program that the kernel detaches: -a alone records it.
cp "$T/shares" "$T/shares_unread"
chmod 711 "$T/shares_unread"
collect 0 -F 199 -- "$T/shares_unread" 0.3
says 'run profcpu as root, or record the whole machine (-a)$'
through=("$T/seccomp_exec" "$([ "$(uname -m)" = x86_64 ] && echo 298 || echo 241)" 1) # perf_event_open
collect 1 -a
says 'a seccomp filter or security module blocks perf_event_open'
silent 'paranoid\|is missing'
through=()

echo "1: own processes, with kernel frames"
echo 1 >$sysctl
collect 1 -a
says 'perf_event_paranoid is 1, and CAP_PERFMON is missing; .*perf_event_paranoid=0$'
collect 1 -p "$SHARES_PID"
says 'it belongs to user 0, and CAP_PERFMON is missing; run as root or its user, .*perf_event_paranoid=0$'
collect 0 -F 999 -- "$T/shares" 0.3
silent 'CAP_PERFMON\|paranoid'

echo "2: own processes, without kernel frames"
echo 2 >$sysctl
collect 0 -F 999 -- "$T/shares" 0.3
says 'kernel frames are not recorded: kernel.perf_event_paranoid is 2, and CAP_PERFMON is missing; .*perf_event_paranoid=1$'
# Events in the kernel would have no samples.
for event in sched:sched_switch context-switches; do
	collect 1 -e $event -- "$T/shares" 0.3
	says "open the event $event on .*perf_event_paranoid is 2, and CAP_PERFMON is missing; .*perf_event_paranoid=1\$"
done
exit 0
