#!/usr/bin/env bash
# Pictures of small inputs equal the stored ones (BLESS=1 rewrites them) and are well-formed. They refer to nothing
# outside, and are written completely or not at all. Every option of flamegraph.pl has both spellings.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need xmllint
golden=$TESTS/golden/flamegraph

# draw NAME STATUS ARGUMENT...
draw() {
	local name=$1 want=$2 got=0
	shift 2
	"$PROFCPU" flamegraph "$@" >"$name.svg" 2>"$name.err" || got=$?
	[ "$got" = "$want" ] || fail "flamegraph $* gave $got: $(cat "$name.err")"
	xmllint --noout --nonet "$name.svg" || fail "$name is not well-formed"
}
# Differences from the stored picture, without script and style, which have their own tests.
body() {
	sed '/^<style>$/,/^<\/style>$/d; /^<script>/,/^\]\]><\/script>$/d' "$1"
}
same() { # NAME
	body "$1.svg" >"$1.body"
	if [ "${BLESS:-}" = 1 ]; then
		cp "$1.body" "$golden/$1.svg"
	fi
	diff "$golden/$1.svg" "$1.body" || fail "$1 differs from the stored picture"
}

draw service 0 --title "Orders & more" --subtitle "10 s" "$golden/service.folded"
same service
draw hot 0 --colors hot --width 800 --inverted --notes "a -- b" "$golden/service.folded"
same hot
draw change 0 --width=900 "$golden/change.folded"
same change
draw order 0 -flamechart -width 900 -countname ms "$golden/order.folded"
same order
draw hostile 1 --width 1000 "$golden/hostile.folded"
grep -q '1 of 9 lines' hostile.err || fail "the line without a count is not reported"
same hostile

# Equal input gives equal bytes: from a file, from stdin, in either spelling.
draw again 0 -title="Orders & more" -subtitle "10 s" "$golden/service.folded"
cmp service.svg again.svg || fail "a second drawing differs"
"$PROFCPU" flamegraph --title "Orders & more" --subtitle="10 s" <"$golden/service.folded" >again.svg || fail "stdin"
cmp service.svg again.svg || fail "the picture from stdin differs"
sort -r "$golden/service.folded" | "$PROFCPU" flamegraph --title "Orders & more" --subtitle "10 s" - >again.svg || fail "-"
cmp service.svg again.svg || fail "the order of lines changes the picture"
printf 'a 5\n' | "$PROFCPU" flamegraph --random --colors hot 2>/dev/null >one.svg
printf 'a 5\n' | "$PROFCPU" flamegraph --random --colors hot 2>/dev/null >two.svg
cmp -s one.svg two.svg && fail "--random is not random"

# Pictures refer to nothing outside: the only addresses are names of XML vocabularies.
for svg in *.svg; do
	xmllint --noout --nonet "$svg" || fail "$svg is not well-formed"
	grep -aoE '[a-z]+://[^"'"'"' ]*' "$svg" | grep -vxE 'http://www\.w3\.org/(2000/svg|1999/xhtml)|http://example\.org/x\).*' &&
		fail "$svg refers to something outside"
	grep -aE 'DOCTYPE|xlink|href=|@import|src=' "$svg" && fail "$svg refers to something outside"
done
# Names remain text.
[ "$(grep -c '<script' hostile.svg)" = 1 ] || fail "a name became a script"
LC_ALL=C grep -aq "$(printf '[\001\002\033]')" hostile.svg && fail "control characters came through"
iconv -f UTF-8 -t UTF-8 hostile.svg >/dev/null || fail "not UTF-8"

# Folded stacks do not name their unit. A recording does, and its target is the title, as in its own picture.
draw units 0 - <"$golden/service.folded"
grep -q '<title>all ([0-9,]* counts, 100%)' units.svg || fail "counts without a unit are drawn with one"
draw units 0 --countname ns - <"$golden/service.folded"
grep -q '<title>all ([0-9,]* ns, 100%)' units.svg || fail "--countname has no effect"
draw units 0 "$TESTS/golden/fold/cpp.txt"
grep -q '<title>all ([0-9.]* m\?s, 100%)' units.svg || fail "the weight of cpu-clock is not shown as time"
"$PROFCPU" postprocess -q "$TESTS/golden/perf/6.1-g" -o rec || fail "postprocess gave $?"
cp "$TESTS/golden/perf/6.1-g/perf.data" rec
for target in '' 'process 12 (webapp)'; do
	[ -z "$target" ] || printf '{"format": 1, "target": "%s", "finished": true}\n' "$target" >rec/manifest.json
	"$PROFCPU" postprocess -q rec || fail "postprocess gave $?"
	draw again 0 rec
	cmp rec/flamegraph.svg again.svg || fail "flamegraph of a recording is not its picture"
	grep -qF "<title>${target:-Flame Graph}</title>" again.svg || fail "the title is not $target"
done

# All options.
for colors in kind hot mem io wakeup chain java js perl red green blue aqua yellow purple orange; do
	draw options 0 --colors="$colors" "$golden/service.folded"
done
for bg in yellow blue green grey '#abcdef'; do
	draw options 0 --bgcolors "$bg" "$golden/service.folded"
	grep -q prefers-color-scheme options.svg && fail "a chosen background has a dark mode"
done
draw options 0 --title T --subtitle S --width 700 --height 20 --minwidth 0.5% --hash --inverted --reverse --countname ticks \
	--nametype Frame: --total 5000 --negate --factor 2.5 --notes N --fonttype Verdana --fontsize 11 --encoding ISO-8859-1 \
	"$golden/service.folded"
grep -q 'encoding="ISO-8859-1"' options.svg || fail "no encoding"
grep -q '5,000\|12,500 ticks' options.svg || fail "no total, factor and countname"
draw options 0 --encoding ISO-8859-1 --title 'Übung 函数' "$golden/service.folded"
xmllint --xpath 'string(//*[local-name()="title"])' options.svg | grep -q 'Übung 函数' || fail "characters were lost"
for bad in --width=0 --width=x --minwidth=wide --fontsize=-1 --factor=0 --colors=mauve --bgcolors=nice '--notes=<b>' \
	--encoding=UTF-16 --no-such-option; do
	got=0
	"$PROFCPU" flamegraph "$bad" "$golden/service.folded" >bad.svg 2>bad.err || got=$?
	[ "$got" = 2 ] || fail "$bad gave $got"
	if [ -s bad.svg ] || [ "$(wc -l <bad.err)" != 1 ]; then
		fail "$bad: $(cat bad.err)"
	fi
done

# --cp: the first picture's colours stay.
printf 'app;f 3\napp;g 4\n' | "$PROFCPU" flamegraph --cp >one.svg 2>/dev/null || fail "--cp"
grep -q '^f->rgb(' palette.map || fail "no palette.map"
sed -i 's/^f->.*/f->rgb(1,2,3)/' palette.map
echo 'old->rgb(9,9,9)' >>palette.map
printf 'app;f 3\napp;h 4\n' | "$PROFCPU" flamegraph --cp >two.svg 2>/dev/null || fail "--cp again"
grep -q 'fill="#010203"' two.svg || fail "palette.map was not used"
for name in f g h old; do
	grep -q "^$name->rgb" palette.map || fail "$name went missing from palette.map"
done
LC_ALL=C sort -c palette.map || fail "palette.map is not sorted"

# Written completely or not at all.
echo before >out.svg
"$PROFCPU" flamegraph -o out.svg "$golden/service.folded" || fail "-o"
xmllint --noout out.svg || fail "-o wrote no valid SVG"
[ "$(stat -c %a out.svg)" = "$(printf '%o' $((0666 & ~0$(umask))))" ] || fail "the file's mode does not follow the umask"
"$PROFCPU" flamegraph -o no/such/dir/out.svg "$golden/service.folded" 2>err && fail "wrote to a missing directory"
grep -q 'cannot write no/such/dir/out.svg' err || fail "the missing directory is not reported: $(cat err)"
"$PROFCPU" flamegraph "$golden/service.folded" >/dev/full 2>err && fail "accepts /dev/full"
[ "$(find . -name 'out.svg*' | wc -l)" = 1 ] || fail "temporary files remain"

# A last line without a newline may have lost digits: it is reported and drawn.
for text in 'main;a 100\nmain;b 5865' 'main;b 5865'; do
	# shellcheck disable=SC2059 # that is the text
	printf "$text" >cut.folded
	draw cut 0 cut.folded
	[ "$(grep -c '^profcpu: warning: cut.folded: the last line has no newline' cut.err)" = 1 ] || fail "a cut count: $(cat cut.err)"
	grep -q '<title>b (5,865 counts' cut.svg || fail "the last line is not in the picture"
done
printf 'main;a 100\nmain;b\n' >cut.folded
draw cut 1 cut.folded
grep -q 'no newline' cut.err && fail "a complete line is reported as cut"

# No stacks are an error; counts of 0 give a picture with a message.
for text in '' 'hello
world
'; do
	printf '%s' "$text" | "$PROFCPU" flamegraph >none.svg 2>err && fail "drew empty input"
	[ "$(wc -l <err)" = 1 ] || fail "not one line: $(cat err)"
done
grep -q 'no line ends in a count' err || fail "not folded stacks: $(cat err)"
for command in flamegraph fold; do
	"$PROFCPU" $command /dev/null 2>err >none && fail "$command accepted empty input"
	grep -q '^profcpu: error: cannot .* /dev/null: it is empty$' err || fail "empty input: $(cat err)"
done
draw zero 1 - <<<'a;b 0'
grep -q 'no samples' zero.svg || fail "an empty picture has no message"
"$PROFCPU" flamegraph does-not-exist 2>err && fail "drew a missing file"
grep -q does-not-exist err || fail "does not name the missing file"
exit 0
