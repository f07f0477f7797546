#!/usr/bin/env bash
# The fault injection test at all call sites: `collect` of a command, of the whole machine, and with names of .NET 8 and 10
# processes from memory.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_published wide-net-net10 wide-net-net8
SERVICES=
for version in 10 8; do
	start_wide "wide-net-net$version" 7200 --threads 0
	SERVICES+=${SERVICES:+,}$WIDE_PID
done
export FAULT_INJECTION_EVERY=1
FAULT_INJECTION_WAYS="command machine" bash "$TESTS/e2e/hostile/fault_injection.sh" || exit
# Missing names do not make a recording fail.
export SERVICES FAULT_INJECTION_WAYS=names FAULT_INJECTION_FAIL_EVERY=20
bash "$TESTS/e2e/hostile/fault_injection.sh"
