# shellcheck shell=bash
# A program compiled ahead of time.

# aot_kinds DIR: prints for each kind of code the number of frames, of named and of placed ones.
aot_kinds() {
	python3 -c '
import json, sys
for k in json.load(open(sys.argv[1] + "/report.json"))["code"]:
    print(k["kind"], k["frames"], k["named"], k["placed"])' "$1"
}

# named LEAST: with the debug file LEAST % of more than 1,000 frames have readable names. The archive gives the same names.
promise_named() {
	local name
	need_sampling
	cp -r "$APP" app
	[ -f app/compute.dbg ] || fail "no debug file was made"
	record rec -F 499 -- app/compute 3
	"$PROFCPU" fold rec >folded || fail "fold gave $?"
	for name in Work.Burn 'Boxes<Int32>.Fill' 'Boxes<__Canon>.Fill' 'Work.LaterAsync() [async]' 'Program.Main() [async]' System.Threading.ThreadPoolWorkQueue.Dispatch; do
		grep -qF ";$name" folded || fail "no $name: $(tr ';' '\n' <folded | sort | uniq -c | sort -rn | head -n 20)"
	done
	aot_kinds rec | tee kinds
	awk -v least="$1" '$1 == "aot" { n = $2; named = $3 } END { exit !(n > 1000 && named >= least / 100 * n) }' kinds || fail "not all of its frames have names"
	"$PROFCPU" postprocess -q -o away rec/prof.tar.gz || fail "postprocess gave $?"
	cmp rec/folded_stacks.out away/folded_stacks.out || fail "names of the archive differ"
}

# placed LEAST: without the debug file LEAST % of more than 1,000 frames are placed in their functions or named. More than 90 %
# are placed, and profcpu prints the remedy.
promise_placed() {
	need_sampling
	rm -rf app && cp -r "$APP" app && rm app/compute.dbg
	record stripped -F 499 -- app/compute 2
	aot_kinds stripped | tee kinds
	awk -v least="$1" '$1 == "stripped" { n = $2; named = $3; placed = $4 }
		END { exit !(n > 1000 && named + placed >= least / 100 * n && placed > 0.9 * n) }' kinds || fail "not all of its frames are placed"
	grep -q 'compute: no debug file of build id [0-9a-f]*; `dotnet publish` made its .dbg file: put it beside the program' collect.log ||
		fail "no remedy: $(cat collect.log)"
	cp "$APP/compute.dbg" app/
	"$PROFCPU" postprocess -q stripped || fail "postprocess gave $?"
	aot_kinds stripped | tee kinds
	awk -v least="$1" '$1 == "aot" { n = $2; named = $3 } END { exit !(n > 1000 && named >= least / 100 * n) }' kinds || fail "the remedy gave no names"
	"$PROFCPU" fold stripped | grep -qF ';Work.LaterAsync() [async]' || fail "the remedy gave no readable names"
}
