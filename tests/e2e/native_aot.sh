#!/usr/bin/env bash
# A .NET program that was compiled ahead of time: with its debug file beside it its frames have readable names; without it they are
# placed in their functions, and it is said what would name them.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published compute-net8-aot
need_sampling

cp -r "$PUBLISHED/compute-net8-aot" app
[ -f app/compute.dbg ] || fail "no debug file was made"
# kinds DIR: of each kind of code how many frames there are, named, placed.
kinds() {
	python3 -c '
import json, sys
for k in json.load(open(sys.argv[1] + "/report.json"))["code"]:
    print(k["kind"], k["frames"], k["named"], k["placed"])' "$1"
}

record rec -F 499 -- app/compute 3
"$PROFCPU" fold --names full rec >folded || fail "fold gave $?"
for name in Work.Burn 'Boxes<Int32>.Fill' 'Boxes<__Canon>.Fill' 'Work.LaterAsync() [async]' 'Program.Main() [async]' System.Threading.ThreadPoolWorkQueue.Dispatch; do
	grep -qF ";$name" folded || fail "no $name: $(tr ';' '\n' <folded | sort | uniq -c | sort -rn | head -n 20)"
done
kinds rec | tee kinds
awk '$1 == "aot" { n = $2; named = $3 } END { exit !(n > 1000 && named >= 0.999 * n) }' kinds || fail "not all of it has names"
"$PROFCPU" postprocess -q -o away rec/prof.tar.gz || fail "postprocess gave $?"
cmp rec/folded_stacks.out away/folded_stacks.out || fail "other names from the archive"

rm app/compute.dbg
record stripped -F 499 -- app/compute 2
kinds stripped | tee kinds
awk '$1 == "stripped" { n = $2; named = $3; placed = $4 } END { exit !(n > 1000 && named + placed >= 0.999 * n && placed > 0.9 * n) }' kinds ||
	fail "not all of it is placed"
grep -q 'compute: no debug file of build id [0-9a-f]*; `profcpu symbols fetch DIR`' collect.log || fail "no mend: $(cat collect.log)"
