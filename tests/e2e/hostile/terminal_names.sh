#!/usr/bin/env bash
# Names that a target chooses reach no terminal and no output as control characters, and none is endless.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need objcopy python3
[ "$(uname -m)" = x86_64 ] || skip "needs x86-64, because the helpers make code for it"
shopt -s nullglob
esc=$'\e[2J'

# clean FILE...: no control characters except tab and newline, valid UTF-8, no name of more than 4096 bytes.
clean() {
	python3 - "$@" <<'PY' || fail "control characters or endless names, see above"
import re, sys
bad = False
for path in sys.argv[1:]:
    data = open(path, 'rb').read()
    text = data.decode('utf-8', 'replace')
    for what, found in (
            ('control', re.search('[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]', text)),
            ('invalid UTF-8', '\ufffd' in text and re.search('\ufffd', text)),
            ('long', re.search('L{4097}', text))):
        if found:
            print(path, what, ascii(text[max(0, found.start() - 60):found.end() + 60][:300]))
            bad = True
sys.exit(bad)
PY
}
# outputs DIR: all that a person may print, by default and with each form of names.
outputs() {
	local form
	for form in full perf; do
		"$PROFCPU" fold --names $form --pid --all "$1" >"$1.$form" 2>"$1.$form.err" || fail "fold: $(cat "$1.$form.err")"
	done
	"$PROFCPU" fold --names full --raw-names --mangled --addrs "$1" >"$1.raw" 2>"$1.raw.err" || fail "fold: $(cat "$1.raw.err")"
	"$PROFCPU" fold - <"$1/perf_script.out" >"$1.text" 2>"$1.text.err" || fail "fold of text: $(cat "$1.text.err")"
	"$PROFCPU" symbols list "$1" >"$1.list" 2>&1 || fail "symbols list: $(cat "$1.list")"
	"$PROFCPU" symbols list --json "$1" >"$1.json" 2>&1 || fail "symbols list --json: $(cat "$1.json")"
	python3 -m json.tool "$1/report.json" >json || fail "report.json is not JSON"
	python3 -m json.tool "$1/manifest.json" >json || fail "manifest.json is not JSON"
	tr -d L <"$1/symbols/names" >"$1.names" # longer names are kept there
	clean "$1".* "$1"/*.out "$1"/*.folded "$1"/*.svg "$1"/*.json collect.log
	# A reader of folded stacks takes each line, and finds all weight.
	awk '!/ [0-9]+$/ { exit 1 }' "$1.full" "$1.perf" "$1.raw" "$1.text" || fail "fold wrote a line without a count"
	[ "$(weight_of "$1.full")" = "$(weight_of "$1/folded_stacks.out")" ] || fail "the forms differ in weight"
}

dir=$T/dir$esc$'\n'$'\xff'
prog=$dir/prog$esc$'\n'
mkdir "$dir"
objcopy --redefine-sym plain_name="elf$esc"$'\n'name "$BUILD/helpers/hostile_names" "$prog" || fail "objcopy"
record all --off-cpu -F 999 -- "$prog" 1.5
clean collect.log
outputs all
mapfile -t -O ${#T_FILES[@]} T_FILES < <(grep -ao '/tmp/perf-[0-9]*\.map' all/perf_script.out | sort -u)
for name in 'elf\\x1b\[2J\\x0aname' 'map\\x1b\[2J\\x1b\]0:title\\x07' 'c1\\xc2\\x9b2J\\x9b' 'order\\xe2\\x80\\xae' 'L\{4085\}\.\.\.[0-9a-f]\{8\}'; do
	grep -q ";$name" all.full || fail "no frame $name: $(cut -c -200 all.full | tail)"
done
grep -q '^co\\x1b\[2Jmm\\x0a\\xff' all.full || fail "no thread name"
grep -q 'hottest' collect.log || fail "no hottest functions: $(cat collect.log)"
[ "$(awk '{ print length($0) }' collect.log | sort -n | tail -1)" -lt 2000 ] || fail "a line of the report is endless"
grep -q 'names have control characters' collect.log || fail "escaped names are not counted: $(cat collect.log)"
grep -q 'more than 4096 bytes' collect.log || fail "cut names are not counted: $(cat collect.log)"
at_least "$(report_number all escaped_names)" 6 || fail "report.json: $(report_number all escaped_names) escaped names"
at_least "$(report_number all cut_names)" 1 || fail "report.json: $(report_number all cut_names) cut names"

# jitdump
record dump -F 999 -- "$BUILD/helpers/jit_writer" 1 "dump$esc$(printf 'J%.0s' {1..5000})"
outputs dump
grep -q ';dump\\x1b\[2JJ*\.\.\.' dump.full || fail "no name of the jitdump: $(cut -c -200 dump.full)"

# The title of a recording's manifest
python3 - dump/manifest.json <<'PY' || fail "manifest.json cannot be changed"
import json, sys
with open(sys.argv[1]) as f:
    manifest = json.load(f)
manifest['target'] = 'title\x1b]0;x\x07\u202e' + 'L' * 60000
with open(sys.argv[1], 'w') as f:
    json.dump(manifest, f)
PY
"$PROFCPU" postprocess dump >postprocess.log 2>&1 || fail "postprocess: $(cat postprocess.log)"
"$PROFCPU" flamegraph -o dump.svg dump 2>flamegraph.log || fail "flamegraph: $(cat flamegraph.log)"
clean dump/*.svg dump/report.json dump.svg postprocess.log flamegraph.log
grep -q 'title\\x1b\]0;x\\x07.*L\.\.\.' dump/flamegraph.svg || fail "no title: $(head -c 3000 dump/flamegraph.svg)"

# Folded text of others
python3 -c 'print("text;" + "L" * 60000 + " 100")' | "$PROFCPU" flamegraph -o text.svg - 2>text.log || fail "flamegraph: $(cat text.log)"
clean text.svg text.log
grep -q '1 names have more than 4096 bytes' text.log || fail "cut names are not counted: $(cat text.log)"

# A running process, in lists and messages; -p prints its name in several places.
start hostile "$prog" 20
wait_for 10 grep -q 'co' "/proc/$STARTED/comm" || fail "the program did not start"
"$PROFCPU" ps --args >ps.text 2>&1 || fail "ps: $(cat ps.text)"
"$PROFCPU" ps --args --json >ps.json 2>ps.err || fail "ps --json: $(cat ps.err)"
"$PROFCPU" doctor -p "$STARTED" >doctor.text 2>&1
"$PROFCPU" doctor --json -p "$STARTED" >doctor.json 2>&1
"$PROFCPU" symbols list "$STARTED" >list.text 2>&1
script -qec "'$PROFCPU' collect -p $STARTED -d 1 -o tty" tty.log >/dev/null </dev/null || fail "collect on a terminal"
T_FILES+=("/tmp/perf-$STARTED.map")
stop "$STARTED"
grep -q 'co?\[2Jmm??' ps.text || fail "ps does not list it"
python3 -m json.tool ps.json >json || fail "ps --json is not JSON"
tr -d '\r' <tty.log >tty.clean # the terminal's own line ends and progress line
clean ps.text ps.json ps.err doctor.text doctor.json list.text tty.clean
# Messages with a hostile path
for command in "fold" "postprocess" "flamegraph" "symbols fetch"; do
	# shellcheck disable=SC2086 # two words
	"$PROFCPU" $command "$dir/missing$esc" >message 2>&1 && fail "$command accepts a missing file"
	clean message
done
