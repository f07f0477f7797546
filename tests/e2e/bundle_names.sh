#!/usr/bin/env bash
# All single-file programs have one build id, their host's: what is found by it is the host and not the program. Precompiled code has the
# names of the file that ran, whatever else has that id: a copy that perf record has kept, the program of another container, a program that
# was put in its place.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need readelf python3 unshare
need_published wide-net-net10-single
need_sampling
need_mounts

program=$PUBLISHED/wide-net-net10-single/wide-net
"$TESTS/dotnet/other_bundle" "$program" other
first=::RunSingleMatch second=::RunSimpleMatch # of the one and the other

export DOTNET_TieredCompilation=0 # what is precompiled stays in use
# start_program FILE: at a path that is the same for all, each in mounts of its own; $STARTED.
mkdir app
touch app/wide
start_program() {
	# shellcheck disable=SC2016 # for that shell
	start "$(basename "$1")" unshare --mount sh -c 'mount --bind "$1" "$2" && exec "$2" 60 --only Regex' - "$1" "$T/app/wide"
	started_dotnet
	wait_for 60 grep -q '^working pid' "$T/$(basename "$1").log" || fail "$1 did not start: $(cat "$T/$(basename "$1").log")"
}
# has_names RECORDING PID NAME NOT: what of it is of PID has the one and not the other.
has_names() {
	awk -v pid="$2" -v has="$3" -v not="$4" '
		/^[^\t ]/ { of = $0 ~ " " pid "/" }
		of && /\[PreJIT\]/ && index($0, has "(") { n++ }
		of && /\[PreJIT\]/ && index($0, not "(") { wrong++ }
		END { printf "%d %d\n", n, wrong; exit !(n >= 20 && !wrong) }' "$1/perf_script.out" >counted ||
		fail "$1: process $2 has $(cat counted) frames of $3 and of $4"
}

start_program "$program"
one=$STARTED
start_program "$T/other"
two=$STARTED
cp other copy
start_program "$T/copy"
three=$STARTED
record both --no-download -p "$one,$two,$three" -F 499 -d 4
has_names both "$one" "$first" "$second"
has_names both "$two" "$second" "$first"
has_names both "$three" "$second" "$first"

# The names that were taken hold where there are neither files nor processes.
stop "$one"
stop "$two"
stop "$three"
cp -r both again
"$PROFCPU" postprocess --no-download again >err 2>&1 || fail "postprocess gave $?: $(cat err)"
cmp again/perf_script.out both/perf_script.out || fail "other names once the programs are gone"

# Another program is put in the place of one that runs: what is mapped has the names. Once it has ended, nothing has.
is_named() {
	"$PROFCPU" fold --names full "$1" >"$1.folded" 2>err || fail "fold gave $?: $(cat err)"
	at_least "$(share_of "$1.folded" "Regex[.]${first#::}[(]")" 5 || fail "$1: no names of the program that is mapped"
	! grep -q "[.]${second#::}(" "$1.folded" || fail "$1: names of the program that has its place"
}
cp "$program" app/moved
start moved app/moved 60 --only Regex
started_dotnet
moved=$STARTED
wait_for 60 grep -q '^working pid' moved.log || fail "the program did not start: $(cat moved.log)"
record early --record-only --jit-names=memory -p "$moved" -F 499 -d 3
sleep 2 # by which clocks may be apart
cp other app/new
mv app/new app/moved
record moved --no-download -p "$moved" -F 499 -d 3
is_named moved
cp -r early living
"$PROFCPU" postprocess --no-download living >err 2>&1 || fail "postprocess gave $?: $(cat err)"
is_named living
stop "$moved"
"$PROFCPU" postprocess --no-download early >said 2>&1 || fail "postprocess gave $?: $(cat said)"
"$PROFCPU" fold --names full early >early.folded 2>err || fail "fold gave $?: $(cat err)"
! grep -qE "[.](${first#::}|${second#::})[(]" early.folded || fail "names out of a file that was put there after the recording"
grep -q 'moved: another file has its place now' said || fail "nothing says that the file is another one: $(cat said)"

# What else the file is of, its host, is kept.
mv app/moved app/gone
"$PROFCPU" fold --offline --names full early >early.offline 2>err || fail "fold gave $?: $(cat err)"
at_least "$(share_of early.offline ';[[]moved[+]0x')" 20 || fail "the host's functions have lost their names"

unset DOTNET_TieredCompilation
# perf's copy of another program with the same host: here one without anything behind it.
start_wide wide-net-net10-single 60
record rec --record-only --jit-names=memory -p "$WIDE_PID" -F 499 -d 3
stop "$WIDE_PID"
"$PROFCPU" fold --names full rec >wanted 2>err || fail "fold gave $?: $(cat err)"
at_least "$(share_of wanted ';System[.][A-Za-z.]*[.<]')" 20 || fail "precompiled code of a single-file program has no names"
id=$(readelf -n "$program" 2>/dev/null | sed -n 's/.*Build ID: //p')
kept=home/.debug/.build-id/${id:0:2}/${id:2}
mkdir -p "$kept"
head -c "$(readelf -h "$program" | awk '/Start of section headers/ { at = $5 } /Size of section headers/ { each = $5 } /Number of section headers/ { n = $5 }
	END { print at + each * n }')" "$program" >"$kept/elf"
[ "$(stat -c %s "$kept/elf")" -lt "$(($(stat -c %s "$program") / 2))" ] || fail "there is no bundle behind the host"
HOME=$T/home "$PROFCPU" fold --names full rec >folded 2>err || fail "fold gave $?: $(cat err)"
cmp folded wanted || fail "other names where perf has kept another program with the same host"
