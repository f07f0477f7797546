#!/usr/bin/env bash
# Known shares are reproduced and stacks reach main: 60/30/10 % within 2 points at 999 Hz over 10 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_release

start_shares 60 -i 0
cpu_before=$(cpu_ns "$SHARES_PID")
record "$T/rec" -p "$SHARES_PID" -F 999 -d 10
cpu_after=$(cpu_ns "$SHARES_PID")
folded=$T/rec/folded_stacks.out
[ -s "$folded" ] || fail "no folded stacks"

for want in 'alpha;alpha_leaf 60' 'beta;beta_middle;beta_inner;beta_leaf 30' 'gamma_down;gamma_leaf 10'; do
	share=$(share_of "$folded" ";work;.*${want% *}")
	echo "${want% *}: $share %, ${want##* } % wanted"
	within "$share" "${want##* }" 2 || fail "${want% *} has $share % and not ${want##* } %"
done

reach=$(share_of "$folded" ';main;')
echo "stacks that reach main: $reach %"
at_least "$reach" 99 || fail "only $reach % of the stacks reach main"

# The whole path with its depth, not only its ends: all 12 frames of the recursion are there.
downs=$(printf 'gamma_down;%.0s' {1..12})
deep=$(share_of "$folded" ";work;${downs}gamma_leaf")
within "$deep" 10 2 || fail "the recursion of 12 has $deep %"

# The rate equals the requested one, relative to the target's CPU time on a possibly busy machine; nothing was lost.
samples=$(grep -c '^shares ' "$T/rec/perf_script.out")
wanted=$(awk -v ns="$((cpu_after - cpu_before))" 'BEGIN { printf "%d", ns * 999 / 1e9 }')
echo "samples: $samples, $wanted by the clock"
within "$samples" "$wanted" $((wanted / 20 + 50)) || fail "$samples samples where $wanted were expected"
grep -q 'none lost' "$T/collect.log" || fail "samples were lost: $(cat "$T/collect.log")"
