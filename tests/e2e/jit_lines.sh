#!/usr/bin/env bash
# JIT-compiled .NET code has the source lines that its source says, by the runtime's memory and by its events, which agree on which IL
# each place comes from; with PDBs beside the assembly and in it, and from the recording alone.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_published lines-net10-{portable,embedded,other}
need_sampling

line_of() { grep -n "$1" "$TESTS/dotnet/lines/Program.cs" | cut -d : -f 1; }
burns=$(line_of 'the line that burns')
calls=$(line_of 'sum += Step(sum, i);')
begins=$(line_of 'return Burning.Burn(')

# check FOLDED: each sampled line of the loop is one of Step's, each call of it at its line
check() {
	awk -v burns="$burns" -v calls="$calls" -v begins="$begins" '
		match($0, /;Burning\.Step\([^;]*$/) {
			leaf = substr($0, RSTART + 1); n = $NF; sub(/ [0-9]+$/, "", leaf); all += n
			line = leaf; if (!sub(/^.*:Program\.cs:/, "", line)) { nowhere += n; next }
			if (line < burns - 2 || line > burns + 1) { print "Step is at line " line; bad = 1 }
			if (line != burns && line != burns - 1) next # before its frame is there and after
			loop += n
			if ($0 !~ ";Burning\\.Burn\\([^;]*:Program\\.cs:" calls ";Burning\\.Step") { print "called elsewhere: " $0; bad = 1 }
			if ($0 !~ ";Program\\.Main[^;]*:Program\\.cs:" begins ";Burning\\.Burn") { print "begun elsewhere: " $0; bad = 1 }
		}
		END { printf "%d samples of Step, %d in its loop, %d without a line\n", all, loop, nowhere
			exit bad || all < 100 || loop < 0.8 * all || nowhere > 0.01 * all }' "$1"
}

for type in portable embedded; do
	cp -r "$PUBLISHED/lines-net10-$type" "$type"
	for way in memory rundown; do
		record rec --jit-names="$way" --lines -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec "$type/lines.dll" 2
		"$PROFCPU" fold --names full --lines rec >folded 2>err || fail "fold gave $?"
		check folded >said || fail "$type, $way: $(head -n 5 said) $(cat err)"
		echo "$type, $way: $(tail -n 1 said)"
		rm -rf rec.gone && mv rec rec.gone
		mv "$type" away
		"$PROFCPU" fold --offline --names full --lines rec.gone 2>err | cmp folded - || fail "$type, $way: other lines elsewhere"
		[ ! -s err ] || fail "$type, $way: $(cat err)"
		mv away "$type"
	done
done

# A program that a command starts, and that is soon gone.
record short -F 999 -- sh -c 'dotnet exec portable/lines.dll 0.3; true'
"$PROFCPU" fold --names full short >folded || fail "fold gave $?"
at_least "$(share_of folded ';Burning[.]Step[(]')" 20 || fail "the code of a short-lived child has no names: $(cat collect.log)"

# Without --lines nothing of it is taken, and who asks for lines is told.
record plain --jit-names=memory -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec portable/lines.dll 1
"$PROFCPU" fold --names full --lines plain >folded 2>err || fail "fold gave $?"
grep -q 'compiled at run time: it was recorded without .profcpu collect --lines' err || fail "nothing is said: $(cat err)"
grep -q 'Step([^;]*:Program' folded && fail "lines that nobody took"
ls plain/symbols/*.methods >/dev/null 2>&1 && fail "methods are kept that nobody needs"
# Recorded only, and post-processed without lines first: they can still be had.
record later --jit-names=memory --lines --record-only -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec portable/lines.dll 2
"$PROFCPU" postprocess -q later || fail "postprocess gave $?"
"$PROFCPU" postprocess -q --lines later || fail "postprocess --lines gave $?"
"$PROFCPU" fold --offline --names full --lines later >folded || fail "fold gave $?"
check folded >said || fail "later: $(cat said)"
"$PROFCPU" postprocess --lines later >said 2>&1 || fail "postprocess --lines gave $?"
grep -q 'later has lines' said && fail "says it of outputs that have them: $(cat said)"
"$PROFCPU" postprocess later >said 2>&1 || fail "postprocess gave $?"
grep -q 'later has lines or inlined functions, which the outputs have with --lines and --inlines$' said ||
	fail "does not say that the outputs have no lines: $(cat said)"

# Another build's assembly in the place of the one that ran: no lines rather than wrong ones.
record replaced --jit-names=memory --lines --record-only -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec portable/lines.dll 1
cp "$PUBLISHED"/lines-net10-other/* portable
"$PROFCPU" postprocess -q --lines replaced 2>/dev/null || fail "postprocess gave $?"
"$PROFCPU" fold --offline --names full --lines replaced >folded 2>/dev/null || fail "fold gave $?"
grep -q 'Burning.Step' folded || fail "no samples"
grep -q ':Program.cs:' folded && fail "lines of another build"

# What memory has is what the runtime itself tells.
start many env DOTNET_ReadyToRun=0 dotnet exec embedded/lines.dll 60
service=$STARTED
sleep 5
for way in rundown memory; do # listening to events compiles more
	record "$way" -p "$service" --jit-names="$way" --lines --record-only -d 1
	awk -v pid="$service" '$1 == "module" { path[$2] = $5 } $1 == "il" { print $2, path[$4], $5, $6 }' "$way/symbols/$service.methods" |
		sort -u >"$way.il"
	echo "$way: $(wc -l <"$way.il") methods"
done
stop "$service"
join memory.il rundown.il >both
awk '{ n++; if ($2 == $5 && $3 == $6 && $4 == $7) same++; else if (shown++ < 5) print } END { print n + 0, same + 0; exit n < 1000 || same < n }' both >said ||
	fail "memory and events differ: $(cat said)"
echo "of $(tail -n 1 said | cut -d ' ' -f 1) methods that both know all have the same map"
