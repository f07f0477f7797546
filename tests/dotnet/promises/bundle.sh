# shellcheck shell=bash
# All single-file programs have the same build id, that of their host, so it identifies only the host. Precompiled code has the
# names of the file that ran, whichever other files have that id.

bundle_first=::RunSingleMatch bundle_second=::RunSimpleMatch # in the program, in $T/other
bundle_other() { # makes $T/other
	need readelf python3
	need_sampling
	[ -e other ] || "$TESTS/dotnet/other_bundle" "$APP/wide-net" other || fail "no other bundle"
	export DOTNET_TieredCompilation=0 # precompiled code stays in use
}

# bundle_start NAME FILE: starts FILE in its own mount namespace, always at the same path; sets $STARTED.
bundle_start() {
	# shellcheck disable=SC2016 # for that shell
	start "$1" unshare --mount sh -c 'mount --bind "$1" "$2" && exec "$2" 60 --only Regex' - "$2" "$T/app/wide"
	started_dotnet
	wait_for 60 grep -q '^working pid' "$1.log" || fail "$1 did not start: $(cat "$1.log")"
}
# bundle_has RECORDING PID NAME NOT: the process has frames named NAME and none named NOT.
bundle_has() {
	awk -v pid="$2" -v has="$3" -v not="$4" '
		/^[^\t ]/ { of = $0 ~ " " pid "/" }
		of && /\[PreJIT\]/ && index($0, has "(") { n++ }
		of && /\[PreJIT\]/ && index($0, not "(") { wrong++ }
		END { printf "%d %d\n", n, wrong; exit !(n >= 20 && !wrong) }' "$1/perf_script.out" >counted ||
		fail "$1: process $2 has $(cat counted) frames of $3 and of $4"
}

# Three containers run different programs at the same path. Each has its own names, also after processes and files are gone.
promise_containers() {
	local one two three
	need unshare
	need_mounts
	bundle_other
	mkdir app && touch app/wide && cp other copy
	bundle_start first "$APP/wide-net"
	one=$STARTED
	bundle_start second "$T/other"
	two=$STARTED
	bundle_start third "$T/copy"
	three=$STARTED
	record both --no-download -p "$one,$two,$three" -F 499 -d 4
	bundle_has both "$one" "$bundle_first" "$bundle_second"
	bundle_has both "$two" "$bundle_second" "$bundle_first"
	bundle_has both "$three" "$bundle_second" "$bundle_first"
	stop "$one"
	stop "$two"
	stop "$three"
	cp -r both again
	"$PROFCPU" postprocess --no-download again >err 2>&1 || fail "postprocess gave $?: $(cat err)"
	cmp again/perf_script.out both/perf_script.out || fail "names differ after the programs are gone"
}

bundle_is_named() {
	"$PROFCPU" fold "$1" >"$1.folded" 2>err || fail "fold gave $?: $(cat err)"
	at_least "$(share_of "$1.folded" "Regex[.]${bundle_first#::}[(]")" 5 || fail "$1: no names of the mapped program"
	! grep -q "[.]${bundle_second#::}(" "$1.folded" || fail "$1: names of the program that replaced it"
}
# Another file replaces a running program. The mapped file gives the names. After the program's end there are none, and profcpu
# reports why; the functions of the host keep theirs.
promise_replaced() {
	local moved
	bundle_other
	mkdir -p place
	cp "$APP/wide-net" place/moved
	start moved place/moved 60 --only Regex
	started_dotnet
	moved=$STARTED
	wait_for 60 grep -q '^working pid' moved.log || fail "the program did not start: $(cat moved.log)"
	record early --record-only --jit-names=memory -p "$moved" -F 499 -d 3
	sleep 2 # tolerance between the clocks of files and records
	cp other place/new
	mv place/new place/moved
	record moved --no-download -p "$moved" -F 499 -d 3
	bundle_is_named moved
	cp -r early living
	"$PROFCPU" postprocess --no-download living >err 2>&1 || fail "postprocess gave $?: $(cat err)"
	bundle_is_named living
	stop "$moved"
	"$PROFCPU" postprocess --no-download early >out 2>&1 || fail "postprocess gave $?: $(cat out)"
	"$PROFCPU" fold early >early.folded 2>err || fail "fold gave $?: $(cat err)"
	! grep -qE "[.](${bundle_first#::}|${bundle_second#::})[(]" early.folded || fail "names from a file that is newer than the recording"
	grep -q 'moved: another file has its place now' out || fail "no message that the file was replaced: $(cat out)"
	mv place/moved place/gone
	"$PROFCPU" fold --offline early >early.offline 2>err || fail "fold gave $?: $(cat err)"
	at_least "$(share_of early.offline ';[[]moved[+]0x')" 20 || fail "the host's functions have lost their names"
}

# kept_by_perf LEAST: perf's cache may contain another program with the same host, here the host alone. It changes no name:
# LEAST % of the samples have names of the framework's precompiled code.
promise_kept_by_perf() {
	local id kept program=$APP/wide-net
	need readelf
	program_ends
	"$PROFCPU" fold "$REC" >wanted 2>err || fail "fold gave $?: $(cat err)"
	at_least "$(share_of wanted ';System[.][A-Za-z.]*[.<]')" "$1" || fail "precompiled code of a single-file program has no names"
	id=$(readelf -n "$program" 2>/dev/null | sed -n 's/.*Build ID: //p')
	kept=home/.debug/.build-id/${id:0:2}/${id:2}
	mkdir -p "$kept"
	head -c "$(readelf -h "$program" | awk '/Start of section headers/ { at = $5 } /Size of section headers/ { each = $5 } /Number of section headers/ { n = $5 }
		END { print at + each * n }')" "$program" >"$kept/elf"
	[ "$(stat -c %s "$kept/elf")" -lt "$(($(stat -c %s "$program") / 2))" ] || fail "the program has no bundle after its host"
	HOME=$T/home "$PROFCPU" fold "$REC" >folded 2>err || fail "fold gave $?: $(cat err)"
	cmp folded wanted || fail "names differ if perf's cache has another program with the same host"
}
