#!/usr/bin/env bash
# The cost of recording waits stays within --max-overhead, from 16,000 to over 100,000 switches a second.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_release
need python3

for work in 5000 15000 30000 60000; do
	python3 "$TESTS/e2e/waits/off_cpu_cost.py" "$PROFCPU" "$BUILD/helpers/waits" "$work" 9 >cost 2>err || fail "$(cat err)"
	cat cost
	at_least 5 "$(tail -n 1 cost)" || fail "work $work ns: the cost is $(tail -n 1 cost) %"
done
exit 0
