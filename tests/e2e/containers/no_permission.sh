#!/usr/bin/env bash
# A missing right gives one line with the problem and a remedy. Run as root, the test becomes nobody.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need setpriv
need_root
need_sampling
chmod 755 "$T"
cp "$PROFCPU" "$BUILD/examples/shares" "$T/"
chmod 755 "$T/profcpu" "$T/shares"
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all)
mkdir "$T/ours"
chown 65534:65534 "$T/ours"
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)

# A process of another user.
start_shares 60
refuses "${nobody[@]}" "$T/profcpu" collect -p "$SHARES_PID" -d 1 -o "$T/ours/foreign"
grep -qiE 'CAP_|permission|paranoid|root|not permitted' "$T/refused" || fail "no remedy: $(cat "$T/refused")"

# The whole machine, if not everybody may record it.
if [ "$paranoid" -ge 1 ]; then
	refuses "${nobody[@]}" "$T/profcpu" collect -a -d 1 -o "$T/ours/machine"
	grep -q 'set sysctl kernel.perf_event_paranoid=0$' "$T/refused" || fail "no remedy: $(cat "$T/refused")"
	refuses "${nobody[@]}" "$T/profcpu" collect --off-cpu -o "$T/ours/waits" -- true
	grep -q 'CPU [0-9]*: Permission denied: .*CAP_PERFMON is missing; .* set sysctl kernel.perf_event_paranoid=0$' "$T/refused" ||
		fail "--off-cpu: no remedy: $(cat "$T/refused")"
	survives "${nobody[@]}" "$T/profcpu" doctor
	grep -A 2 'whole CPUs' "$T/refused.out" | grep -q 'remedy: .*perf_event_paranoid=0$\|remedy: .*--cap-add PERFMON\|remedy: .*PERFMON\]' ||
		fail "doctor's remedy differs from collect's: $(cat "$T/refused.out")"
	grep -A 2 'off-CPU  ' "$T/refused.out" | grep -q 'remedy: .*perf_event_paranoid=0$\|remedy: .*--cap-add PERFMON\|remedy: .*PERFMON\]' ||
		fail "doctor does not mention --off-cpu: $(cat "$T/refused.out")"
	grep -q 'can work here, without --off-cpu\.$\|cannot work here' "$T/refused.out" || fail "doctor: $(cat "$T/refused.out")"
fi

# Recording its own process works, without kernel frames.
if [ "$paranoid" -le 2 ]; then
	survives "${nobody[@]}" "$T/profcpu" collect -F 199 -o "$T/ours/own" -- "$T/shares" 1
	[ "$SURVIVED" = 0 ] || fail "cannot profile its own process: $(cat "$T/refused")"
	grep -q ';main;.*alpha_leaf' "$T/ours/own/folded_stacks.out" || fail "no names in its own process"
fi

# Programs with more rights than ours: at their exec the kernel removes the events without a report.
cp "$T/shares" "$T/shares_uid"
cp "$T/shares" "$T/shares_cap"
cp "$T/shares" "$T/shares_unread"
cp /usr/bin/id "$T/id"
chmod 4755 "$T/shares_uid" "$T/id"
chmod 711 "$T/shares_unread"
others=(shares_unread)
[ "$("${nobody[@]}" "$T/id" -u)" = 0 ] && others+=(shares_uid)
command -v setcap >/dev/null && setcap cap_net_raw+ep "$T/shares_cap" && others+=(shares_cap)
if [ "$paranoid" -le 2 ]; then
	for program in "${others[@]}"; do
		survives "${nobody[@]}" "$T/profcpu" collect -F 199 -o "$T/ours/$program" -- "$T/$program" 0.3
		grep -q "the command .*/$program: no longer sampled: executed a program that is set-uid.*run profcpu as root" "$T/refused" ||
			fail "$program: no reason for the missing samples: $(cat "$T/refused")"
		grep -q 'event did not happen' "$T/refused" && fail "$program: reports a wrong reason: $(cat "$T/refused")"
		survives "$T/profcpu" collect -F 199 -o "$T/root-$program" -- "$T/$program" 0.3
		grep -q 'set-uid' "$T/refused" && fail "$program as root: $(cat "$T/refused")"
		grep -q ';main;.*alpha_leaf' "$T/root-$program/folded_stacks.out" || fail "$program: no samples as root"
	done
	survives "${nobody[@]}" "$T/profcpu" collect -F 199 -o "$T/ours/among" -- sh -c "$T/shares 0.3; $T/shares_unread 2; exit 0" # longer than a round, so that its name can be read
	grep -q '^profcpu: warning: process [0-9]* ([a-z_]*): no longer sampled: executed a program' "$T/refused" || fail "the child is not reported: $(cat "$T/refused")"
	grep -q ';main;.*alpha_leaf' "$T/ours/among/folded_stacks.out" || fail "the other child has no samples"
	# Root has all rights, but the kernel removes its events too if the process belongs to another user.
	start loop "${nobody[@]}" sh -c "while :; do '$T/shares_unread' 0.1; done"
	survives "$T/profcpu" collect -F 199 -d 5 -p "$STARTED" -o "$T/root-loop"
	stop "$STARTED"
	grep -q 'no longer sampled: .* is not readable; record the whole machine (-a)$' "$T/refused" || fail "as root: wrong remedy: $(cat "$T/refused")"
fi

# A directory that is not writable.
mkdir "$T/theirs"
refuses "${nobody[@]}" "$T/profcpu" collect -d 1 -o "$T/theirs/rec" -- "$T/shares" 1
grep -q "theirs" "$T/refused" || fail "the message lacks the directory: $(cat "$T/refused")"

# A recording that is not readable.
mkdir "$T/secret"
: >"$T/secret/perf.data"
chmod 600 "$T/secret/perf.data"
owner_only='only its owner may read a recording: run profcpu as that user or as root$'
for command in fold flamegraph postprocess; do
	for input in secret secret/perf.data; do
		refuses "${nobody[@]}" "$T/profcpu" $command "$T/$input"
		grep -q "cannot open $T/secret/perf.data: Permission denied; $owner_only" "$T/refused" || fail "$command: $(cat "$T/refused")"
	done
done
chmod 700 "$T/secret"
refuses "${nobody[@]}" "$T/profcpu" postprocess "$T/secret"
grep -q "cannot open $T/secret: Permission denied; $owner_only" "$T/refused" || fail "a directory: $(cat "$T/refused")"

# doctor reports missing rights for any user.
survives "${nobody[@]}" "$T/profcpu" doctor -p "$SHARES_PID"
grep -qE 'CAP_|paranoid' "$T/refused.out" || fail "doctor does not report missing rights: $(cat "$T/refused.out")"
