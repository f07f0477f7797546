#!/usr/bin/env bash
# Without the right to do something there is one line that says so and how to mend it; as root against nobody.
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

# Somebody else's process.
start_shares 60
refuses "${nobody[@]}" "$T/profcpu" collect -p "$SHARES_PID" -d 1 -o "$T/ours/foreign"
grep -qiE 'CAP_|permission|paranoid|root|not permitted' "$T/refused" || fail "no mend: $(cat "$T/refused")"

# The whole machine, where that is not for everybody.
if [ "$paranoid" -ge 1 ]; then
	refuses "${nobody[@]}" "$T/profcpu" collect -a -d 1 -o "$T/ours/machine"
	grep -qE 'perf_event_paranoid|CAP_PERFMON' "$T/refused" || fail "no mend: $(cat "$T/refused")"
fi

# Its own process works, without the kernel's part.
if [ "$paranoid" -le 2 ]; then
	survives "${nobody[@]}" "$T/profcpu" collect -F 199 -o "$T/ours/own" -- "$T/shares" 1
	[ "$SURVIVED" = 0 ] || fail "cannot profile its own process: $(cat "$T/refused")"
	grep -q ';main;.*alpha_leaf' "$T/ours/own/folded_stacks.out" || fail "no names in its own process"
fi

# A directory that is not writable.
mkdir "$T/theirs"
refuses "${nobody[@]}" "$T/profcpu" collect -d 1 -o "$T/theirs/rec" -- "$T/shares" 1
grep -q "theirs" "$T/refused" || fail "does not say where: $(cat "$T/refused")"

# A recording that is not readable.
mkdir "$T/secret"
: >"$T/secret/perf.data"
chmod 600 "$T/secret/perf.data"
refuses "${nobody[@]}" "$T/profcpu" fold "$T/secret/perf.data"

# Doctor says what is missing, as whom ever.
survives "${nobody[@]}" "$T/profcpu" doctor -p "$SHARES_PID"
grep -qE 'CAP_|paranoid' "$T/refused.out" || fail "doctor says nothing of rights: $(cat "$T/refused.out")"
