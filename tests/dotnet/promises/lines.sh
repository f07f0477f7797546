# shellcheck shell=bash
# Source lines of JIT-compiled and of precompiled code, of the program tests/dotnet/lines.

lines_source=$TESTS/dotnet/lines/Program.cs
lines_of() { grep -n "$1" "$lines_source" | cut -d : -f 1; }
lines_burns=$(lines_of 'the line that burns')

# lines_record DIR SECONDS OPTION...: records the program in the copy app, whose loop stays in its first compiled code.
lines_copy() { [ -e app ] || cp -r "$APP" app; }
lines_record() {
	local dir=$1 seconds=$2
	shift 2
	need_sampling
	lines_copy
	record "$dir" "$@" -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec app/lines.dll "$seconds"
	mv collect.log "$dir.log"
}

# lines_check FOLDED: each sampled line of the loop belongs to Step, and each call of it is at its line. There are at least 100
# samples, at most 1 % of them without a line.
lines_check() {
	awk -v burns="$lines_burns" -v calls="$(lines_of 'sum += Step(sum, i);')" -v begins="$(lines_of 'return Burning.Burn(')" '
		match($0, /;Burning\.Step\([^;]*$/) {
			leaf = substr($0, RSTART + 1); n = $NF; sub(/ [0-9]+$/, "", leaf); all += n
			line = leaf; if (!sub(/^.*:Program\.cs:/, "", line)) { nowhere += n; next }
			if (line < burns - 2 || line > burns + 1) { print "Step is at line " line; bad = 1 }
			if (line != burns && line != burns - 1) next # in the prologue or epilogue
			loop += n
			if ($0 !~ ";Burning\\.Burn\\([^;]*:Program\\.cs:" calls ";Burning\\.Step") { print "wrong line of the call: " $0; bad = 1 }
			if ($0 !~ ";Program\\.Main[^;]*:Program\\.cs:" begins ";Burning\\.Burn") { print "wrong line of the caller: " $0; bad = 1 }
		}
		END { printf "%d samples of Step, %d in its loop, %d without a line\n", all, loop, nowhere
			exit bad || all < 100 || loop < 0.8 * all || nowhere > 0.01 * all }' "$1"
}

# jit WAY: JIT-compiled code has its lines from memory or rundown. The recording alone, moved, without the program, gives the
# same lines.
promise_jit() {
	lines_record "$1" 2 --jit-names="$1" --lines
	"$PROFCPU" fold --lines "$1" >folded 2>err || fail "fold gave $?"
	lines_check folded >out || fail "$(head -n 5 out) $(cat err)"
	tail -n 1 out
	mv "$1" "$1.gone" && mv app away
	"$PROFCPU" fold --offline --lines "$1.gone" 2>err | cmp folded - || fail "lines differ without the program"
	[ ! -s err ] || fail "$(cat err)"
	mv away app
}

# short_child LEAST: a short-lived program that a command starts has names.
promise_short_child() {
	need_sampling
	lines_copy
	local seconds
	for seconds in 0.3 0.3 0.6 1.2 2.4; do # on a busy machine, the start of the runtime takes longer
		rm -rf short
		record short -F 999 -- sh -c "dotnet exec app/lines.dll $seconds; true"
		"$PROFCPU" fold short >folded || fail "fold gave $?"
		at_least "$(share_of folded ';Burning[.]Step[(]')" "$1" && return
	done
	fail "the code of a short-lived child has no names: $(cat collect.log)"
}

# Without --lines no lines are recorded, and a later --lines gets a message.
promise_only_on_request() {
	lines_record plain 1 --jit-names=memory
	"$PROFCPU" fold --lines plain >folded 2>err || fail "fold gave $?"
	grep -q 'JIT-compiled code has no lines: it was recorded without .profcpu collect --lines' err || fail "no message: $(cat err)"
	grep -q 'Step([^;]*:Program' folded && fail "lines that were not recorded"
	ls plain/symbols/*.methods >/dev/null 2>&1 && fail "a list of methods is kept without need"
	return 0
}

# After --record-only, post-processing without lines does not lose them, and postprocess reports if the outputs have none.
promise_shown_later() {
	lines_record later 2 --jit-names=memory --lines --record-only
	"$PROFCPU" postprocess -q later || fail "postprocess gave $?"
	"$PROFCPU" postprocess -q --lines later || fail "postprocess --lines gave $?"
	"$PROFCPU" fold --offline --lines later >folded || fail "fold gave $?"
	lines_check folded >out || fail "$(cat out)"
	"$PROFCPU" postprocess --lines later >out 2>&1 || fail "postprocess --lines gave $?"
	grep -q 'later: has lines' out && fail "the message is printed although the outputs have lines: $(cat out)"
	"$PROFCPU" postprocess later >out 2>&1 || fail "postprocess gave $?"
	grep -q 'later: has lines or inlined functions; show them with --lines and --inlines$' out ||
		fail "missing lines in the outputs are not reported: $(cat out)"
}

# replaced OTHER: if another build replaces the assembly that ran, there are no lines rather than wrong ones.
promise_replaced() {
	lines_record replaced 2 --jit-names=memory --lines --record-only
	cp "$PUBLISHED/$1"/* app || fail "needs $1"
	"$PROFCPU" postprocess -q --lines replaced 2>/dev/null || fail "postprocess gave $?"
	"$PROFCPU" fold --offline --lines replaced >folded 2>/dev/null || fail "fold gave $?"
	rm -r app
	grep -q 'Burning.Step' folded || fail "no samples: $(cat replaced.log) $(head -n 5 folded)"
	grep -q ':Program.cs:' folded && fail "lines of another build"
	return 0
}

# memory_is_events LEAST: memory and events give the same IL map for at least LEAST methods that both know.
promise_memory_is_events() {
	local service way
	need_sampling
	start many env DOTNET_ReadyToRun=0 dotnet exec "$APP/lines.dll" 60
	service=$STARTED
	sleep 1 && wait_for_cpu "$service" 3000
	for way in rundown memory; do # listening to events compiles more
		record "$way-il" -p "$service" --jit-names="$way" --lines --record-only -d 1
		awk -v pid="$service" '$1 == "module" { path[$2] = $5 } $1 == "il" { print $2, path[$4], $5, $6 }' "$way-il/symbols/$service.methods" |
			sort -u >"$way.il"
		echo "$way: $(wc -l <"$way.il") methods"
	done
	join memory.il rundown.il >both
	awk -v least="$1" '{ n++; if ($2 == $5 && $3 == $6 && $4 == $7) same++; else if (shown++ < 5) print }
		END { print n + 0, same + 0; exit n < least || same < n }' both >out || fail "memory and events differ: $(cat out)"
	echo "$(tail -n 1 out | cut -d ' ' -f 1) methods have the same map from memory and from events"
}

# as_runtime FRAMES POINTS: lines equal those of System.Diagnostics.StackTrace and System.Reflection.Metadata, by IL, from a PDB
# beside the assembly or in it. More than FRAMES frames and POINTS points are compared.
promise_as_runtime() {
	[[ $PROGRAM != *-embedded ]] || [ ! -e "$APP/lines.pdb" ] || fail "the embedded PDB is a file"
	dotnet exec "$APP/lines.dll" >theirs || fail "lines.dll gave $?"
	[ "$(grep -c '^frame' theirs)" -gt "$1" ] || fail "too few frames"
	[ "$(grep -c '^point' theirs)" -gt "$2" ] || fail "too few points"
	"$BUILD/helpers/managed_lines" "$APP/lines.dll" <theirs >ours || fail "managed_lines gave $?"
	cmp theirs ours || {
		diff theirs ours | head
		fail "lines differ from the runtime's"
	}
	echo "$(wc -l <ours) places have the runtime's lines"
}

# other_pdb OTHER: another build's PDB is not used.
promise_other_pdb() {
	mkdir mixed
	cp "$APP/lines.dll" "$PUBLISHED/$1/lines.pdb" mixed || fail "needs $1"
	"$BUILD/helpers/managed_lines" mixed/lines.dll </dev/null 2>err && fail "another build's PDB was used"
	grep -q 'No such file' err || fail "$(cat err)"
}

# precompiled_as_runtime LEAST: addresses in precompiled code have the runtime's lines. At least LEAST are compared.
promise_precompiled_as_runtime() {
	# Each instance of a generic method has its own code, and the runtime does not report which instance a frame belongs to.
	DOTNET_TieredCompilation=0 "$APP/lines" >out || fail "lines gave $?"
	grep '^frame' out | sed 's/^frame/native/' | sort -u >theirs
	"$BUILD/helpers/managed_lines" "$APP/lines.dll" <theirs >ours || fail "managed_lines gave $?"
	paste -d ' ' theirs ours |
		awk -v least="$1" '$10 == "unknown" { next } { n++ } $5 != $10 { print; bad = 1 } END { print n; exit bad || n < least }' >same ||
		fail "lines differ from the runtime's: $(cat same)"
	echo "$(tail -n 1 same) places in precompiled code have the runtime's lines"
}

# A recording of precompiled code shows its lines, also without the program.
promise_precompiled_recorded() {
	local line hot
	need_sampling
	cp -r "$APP" r2r
	record rec -F 499 --lines -- env DOTNET_TieredCompilation=0 r2r/lines 3
	"$PROFCPU" fold --lines rec >folded || fail "fold gave $?"
	hot=$(sed -n 's/.*;Burning\.Step([^;]*):Program\.cs:\([0-9]*\) [0-9]*$/\1/p' folded | sort -u | tr '\n' ' ')
	[ -n "$hot" ] || fail "no lines of precompiled code: $(grep -m 3 Burning folded)"
	for line in $hot; do
		[ $((line - lines_burns)) -ge -3 ] && [ $((line - lines_burns)) -le 2 ] || fail "line $line is not in Step"
	done
	mv r2r gone
	"$PROFCPU" fold --offline --lines rec 2>err | cmp folded || fail "lines differ without the program"
	[ ! -s err ] || fail "$(cat err)"
}
