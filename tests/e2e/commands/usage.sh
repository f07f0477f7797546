#!/usr/bin/env bash
# Wrong usage of any command gives status 2, nothing on stdout, and one line that names the help. Options without effect
# are reported. Those of stackcollapse-perf.pl and flamegraph.pl are accepted, others are wrong usage.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"

# wrong MESSAGE COMMAND ARGUMENT...: checks that the line is MESSAGE.
wrong() {
	local message=$1 status=0
	shift
	timeout 20 "$PROFCPU" "$@" >out 2>err </dev/null || status=$?
	[ "$status" = 2 ] || fail "$*: exit $status: $(cat err)"
	[ "$(cat err)" = "profcpu: error: $message" ] || fail "$*: $(cat err)"
	[ ! -s out ] || fail "$*: output on stdout"
}
shows() { echo "; \`profcpu help $1\` shows the options"; }
see() { echo "; see \`profcpu help $1\`"; }

for command in collect postprocess fold flamegraph ps doctor; do
	wrong "'--nonsense' is not an option$(shows $command)" $command --nonsense
	wrong "'-nonsense' is not an option$(shows $command)" $command -nonsense
	wrong "'-z' is not an option$(shows $command)" $command -z
	"$PROFCPU" help $command | head -n 1 | grep -q "^usage: profcpu $command" || fail "no help for $command"
done
for command in postprocess fold flamegraph; do
	wrong "'-o' lacks its value$(shows $command)" $command -o
	wrong "'--output' lacks its value$(shows $command)" $command --output
	wrong "'--offline=x' takes no value$(shows $command)" $command --offline=x
	wrong "$command takes one input$(see $command)" $command one two
done
# Empty names, as of shell variables that are not set.
for command in collect postprocess fold flamegraph; do
	wrong "'-o' has an empty value$(shows $command)" $command -o ''
	wrong "'--output=' has an empty value$(shows $command)" $command --output=
done
wrong "'-dir' has an empty value$(shows postprocess)" postprocess -dir ''
for command in postprocess fold flamegraph 'symbols list'; do
	# shellcheck disable=SC2086 # two words
	wrong "${command% *}: the name of the input is empty$(see "${command% *}")" $command ''
done
wrong "a command is missing after --" collect -- ''
wrong "postprocess takes one input$(see postprocess)" postprocess
wrong "postprocess takes no argument 'two'$(see postprocess)" postprocess -dir one two
for letter in z t D; do
	wrong "'-$letter' is not an option$(shows postprocess)" postprocess -q$letter one
	wrong "'-$letter' is not an option$(shows postprocess)" postprocess -q${letter}x one
done
wrong "'--fo' is ambiguous$(shows flamegraph)" flamegraph --fo
wrong "'-d' lacks its value$(shows collect)" collect -a -d

# A single letter is a short option, never the start of a long one, because other tools use it differently. Some
# messages suggest an option.
stray() { # HINT COMMAND LETTER ARGUMENT...
	wrong "'$3' is not an option$1$(shows "$2")" "${@:2}"
}
threads=": -p PID records all threads of a process"
stray "$threads" collect -t 12504
stray "$threads" collect -t
stray "$threads" collect -t=12504
stray "$threads" collect -t12504
stray ": stacks are always recorded; see --call-graph" collect -g
wrong "'-g' is not an option: stacks are always recorded; see --call-graph$(shows collect)" collect -ag
for command in postprocess fold flamegraph; do
	wrong "'-g' is not an option: stacks are always read$(shows $command)" $command -g
done
"$PROFCPU" help collect | grep -q 'dwarf: as full' || fail "the help lacks --call-graph dwarf"
"$PROFCPU" symbols list "$T/nosuch" >out 2>err && fail "symbols list of no file: exit 0"
[ "$(cat err)" = "profcpu: error: cannot open $T/nosuch: No such file or directory" ] && [ ! -s out ] || fail "symbols list of no file: $(cat err out)"
wrong "--call-graph: 'lbr' is none of full, full,BYTES, dwarf, fp and no" collect --call-graph lbr
wrong "--call-graph: 'fp,8192' is none of full, full,BYTES, dwarf, fp and no" collect --call-graph=fp,8192
wrong "--keep-stacks: 'some' is none of none, failed and all" collect --keep-stacks some
wrong "--jit-names: 'perfmap' is none of auto, memory, rundown and none" collect --jit-names=perfmap
stray "" collect -n
stray "" collect -r
stray "" collect --d 1
stray "" fold -p
stray "" flamegraph -w 800
stray "" doctor -j
stray "" ps -d
for command in postprocess fold flamegraph; do
	stray ": give the input without an option" $command -i perf.data
done
# All spellings of a long option, with a separate or joined value; a value may look like such a letter.
pids="-p: needs process ids separated by commas, not 'x'"
times="-d: needs a time from 1ms to 366 days, such as 10, 0.5, 500ms or 2m, not 'x'"
for option in '-p x' -px '-pid x' '--pid x' -pid=x --pid=x '--pi x' '-pi x'; do
	# shellcheck disable=SC2086 # two words
	wrong "$pids" collect -title -t $option
done
for option in '-d x' '-duration x' '--duration x' -duration=x '--dur x'; do
	# shellcheck disable=SC2086 # two words
	wrong "$times" collect -pid 1 $option
done
wrong "--pid: needs a whole number from 1 to 2147483647, not 'x'" doctor -json -pid x

for size in 100 0K 1.5M 5MB M -1M 9223372036854775808B 8589934592G ''; do
	wrong "--max-size: needs a size with a unit, such as 512K, 100M or 2G, not '$size'" collect --max-size "$size"
done

# For a single word the line suggests its likely meaning.
commas="separate several processes by commas, without blanks: \`profcpu collect -p PID,PID\`"
wrong "'2' is not an option; $commas" collect -p 1 2
wrong "'4,5' is not an option; $commas" collect -p 1 -p 2,3 -d 5 4,5
wrong "',2' is not an option; $commas" collect -p 1 ,2
wrong "'2' is not an option; name a process with -p: \`profcpu collect -p 2\`" collect 2
wrong "'ls' is not an option; put a command after --: \`profcpu collect -- ls\`" collect -p 1 ls

for command in ps doctor version; do
	wrong "$command takes no argument 'x'$(see $command)" $command x
done
wrong "help takes no argument 'x'$(see help)" help fold x
wrong "no command 'nonsense'; \`profcpu help\` lists the commands" nonsense
wrong "no command 'nonsense'; \`profcpu help\` lists the commands" help nonsense
status=0
"$PROFCPU" >out 2>err || status=$?
[ "$status" = 2 ] || fail "no command: exit $status"
[ ! -s out ] || fail "no command: output on stdout"
"$PROFCPU" help | cmp - err || fail "no command: stderr is not the text of help"
for time in 0 0ms 0.0001 8785h -1 inf nan 1h30 10x 10sec; do
	wrong "-d: needs a time from 1ms to 366 days, such as 10, 0.5, 500ms or 2m, not '$time'" \
		collect -a "-d$time"
done
wrong "--names: 'short' is neither perf nor full" fold --names short

# Combinations without a meaning.
cp "$TESTS/golden/fold/cpp.txt" text
cp "$TESTS/golden/flamegraph/service.folded" folded
other="needs --names full: perf's form of names has only one spelling"
wrong "--raw-names $other" fold --raw-names text
wrong "--mangled $other" fold --mangled text
wrong "--inline and --offline exclude each other: --inline reads files of this machine" fold --inline --offline text
wrong "--record-only makes no outputs, so --title, --raw-names, --mangled, --inlines, --max-stack, --grades and --idle are not allowed; give them to \`profcpu postprocess\`" \
	collect -a --record-only --title x
for option in --off-cpu-min=5 --max-overhead=5 --idle; do
	wrong "${option%=*} is for waits; add --off-cpu to record them" collect "$option" -- true
done
wrong "--cp and --colors kind exclude each other: --cp keeps colours by name; choose other colours" flamegraph --cp --colors kind folded
for option in --event=cycles --tid --raw-names --mangled; do
	wrong "${option%=*} is for recordings, but folded is folded stacks; give the option to \`profcpu fold\`" \
		flamegraph "$option" folded
done

# without_effect NOTE OPTION COMMAND ARGUMENT...: checks that the option is accepted, changes nothing, and is reported in
# a line.
without_effect() {
	local note=$1 option=$2
	shift 2
	timeout 20 "$PROFCPU" "$@" >plain 2>/dev/null || fail "$*: exit $?"
	timeout 20 "$PROFCPU" "$@" "$option" >out 2>err || fail "$* $option: exit $?: $(cat err)"
	grep -qxF "profcpu: $note" err || fail "$* $option: $(cat err)"
	sed -i 's/ data-negate="."//' plain out # the script contains the option
	cmp plain out || fail "$* $option: the option changes the output"
}
without_effect "--context has no effect without --inline" --context fold text
without_effect "--context has no effect with --names full" --context fold --names full --inline text
without_effect "--mangled has no effect on text: text keeps its own names" --mangled fold --names full text
without_effect "--mangled has no effect on text: text keeps its own names" --mangled flamegraph text
without_effect "--srcline has no effect here: it is for the text of \`perf script -F +srcline\`; use --lines for a recording" --srcline \
	fold --names perf "$TESTS/golden/perf/6.1-g"
printf 'a;b 100\n' >one
without_effect "--negate has no effect: the input has one count on each line" --negate flamegraph one
"$PROFCPU" flamegraph --encoding bogus folded >out 2>err || fail "--encoding bogus: exit $?"
grep -q "^profcpu: --encoding: viewers may not know 'bogus'" err || fail "--encoding bogus is not reported: $(cat err)"
for encoding in utf-8 ISO-8859-1 windows-1252; do
	"$PROFCPU" flamegraph --encoding "$encoding" folded 2>err | head -n 1 | grep -q "encoding=\"$encoding\"" || fail "$encoding"
	[ ! -s err ] || fail "$encoding: $(cat err)"
done
exit 0
