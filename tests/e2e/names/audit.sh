#!/usr/bin/env bash
# Unnamed frames are counted as in perf_script.out, with known reasons. Another machine reports the same, byte for byte.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc strip python3 tar ldd
need_root
need_sampling
need_mounts

another_root
CHECKED=0
# audit RECORDING [KIND NAME REASON]...: what was said of it is in RECORDING.said. Its archive says the same elsewhere.
audit() {
	python3 "$TESTS/e2e/names/audit.py" "$@" || fail "the report of $*"
	python3 -m json.tool "$1/report.json" >/dev/null || fail "$1/report.json is no JSON"
	[ "$(stat -c %a "$1/report.json")" = 600 ] || fail "$1/report.json is not its owner's alone"
	[ "$(grep -cE '^(unnamed  |          ) *[<>]?[0-9.]+ %  .*: ' "$1.said")" -le 5 ] || fail "long: $(cat "$1.said")"
	tar -xzf "$1/prof.tar.gz" -C "$R/tmp" && rm "$R/tmp/prof/report.json"
	there postprocess /tmp/prof >there.said 2>/dev/null || fail "postprocess of $1 elsewhere gave $?"
	cmp "$1/report.json" "$R/tmp/prof/report.json" || {
		diff "$1/report.json" "$R/tmp/prof/report.json" | head -20
		fail "$1: report.json is another one elsewhere"
	}
	diff <(grep -A 99 '^samples' "$1.said" | grep -v '^written') <(grep -v '^written' there.said | sed "s,\(postprocess\|fetch\) /tmp/prof\`,\1 $1\`,g") || fail "$1: the report is another one elsewhere"
	rm -r "$R/tmp/prof"
	CHECKED=$((CHECKED + 1))
}
how=()
# record_and RECORDING COMMAND...: records the program, of which the rest is run before names are looked up.
record_and() {
	local rec=$1
	shift
	start app ./app
	record "$rec" --record-only "${how[@]}" -p "$STARTED" -F 999 -d 1
	stop "$STARTED"
	"$@"
	"$PROFCPU" postprocess --no-download "$rec" >"$rec.said" 2>&1 || fail "postprocess $rec: $(cat "$rec.said")"
}

# A library that is stripped, whole, gone, another one, and one without a build id.
cat >work.c <<'C'
#define BURN for (volatile unsigned i = 0; i < 40000; i++) x += i
__attribute__((noinline, noclone)) static unsigned hidden(unsigned x) { BURN; return x + 1; }
unsigned work_shown(unsigned x) { BURN; return hidden(x) + 5; }
C
cat >app.c <<'C'
#include <unistd.h>
unsigned work_shown(unsigned);
int main(void) { for (unsigned x = 1;; x++) { work_shown(x); for (int i = 0; i < 300; i++) getppid(); } }
C
flags=(-O1 -fno-omit-frame-pointer -fno-optimize-sibling-calls)
gcc "${flags[@]}" -shared -fPIC -Wl,--build-id -o whole.so work.c || fail "no library"
gcc "${flags[@]}" -shared -fPIC -Wl,--build-id=none -o nobody.so work.c || fail "no library"
cp whole.so libwork.so
gcc "${flags[@]}" -o app app.c -L. -lwork -Wl,-rpath,"$T" || fail "no program"
record_and whole true
audit whole native libwork.so - native app - kernel '[kernel.kallsyms]' -
grep -q '^unnamed .*libwork' whole.said && fail "what has a name is said to have none"
rm libwork.so && strip -o libwork.so whole.so
record_and stripped true
audit stripped stripped libwork.so no-debug-file
id=$(readelf -n libwork.so | sed -n 's/.*Build ID: //p')
grep -qE "^unnamed +[0-9.]+ %  libwork\.so: no debug file of build id $id; .profcpu symbols fetch stripped.," stripped.said || fail "stripped: $(cat stripped.said)"
grep -qE '^          stripped +[0-9]+ ' stripped.said || fail "no row for stripped code: $(cat stripped.said)"
record_and gone rm libwork.so
audit gone native libwork.so gone native app -
cp whole.so libwork.so
record_and replaced sh -c 'mv libwork.so old.so && cp app libwork.so'
audit replaced native libwork.so replaced
grep -qE '^unnamed .*libwork\.so: another file has its place now; ' replaced.said || fail "replaced: $(cat replaced.said)"
rm libwork.so && strip -o libwork.so nobody.so
record_and nobody true
audit nobody stripped libwork.so no-symbols
cp whole.so libwork.so

# A library that is not for us, with the file's own permissions.
if "$BUILD/helpers/can_sample" >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	rm libwork.so && cp whole.so libwork.so
	start app ./app
	record denied --record-only -p "$STARTED" -F 999 -d 1
	stop "$STARTED"
	chmod 0 libwork.so
	setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$PROFCPU" postprocess --no-download denied \
		>denied.said 2>&1 || fail "postprocess: $(cat denied.said)"
	audit denied native libwork.so denied
	chmod 644 libwork.so
fi

# Names of the kernel that are hidden: all its addresses are 0 for who may not see them.
sed 's/^[0-9a-f]*/0000000000000000/' /proc/kallsyms >zeros
start app ./app
record hidden --record-only -p "$STARTED" -F 999 -d 1
stop "$STARTED"
unshare -m sh -c 'mount --bind zeros /proc/kallsyms && exec "$@"' - "$PROFCPU" postprocess --no-download hidden >hidden.said 2>&1 ||
	fail "postprocess: $(cat hidden.said)"
audit hidden kernel '[kernel.kallsyms]' hidden native libwork.so -
grep -qE '^unnamed .*kernel names are hidden here; `profcpu postprocess hidden` as root or with CAP_SYSLOG' hidden.said &&
	grep -q 'the first is /proc/kallsyms; .*`profcpu postprocess hidden` as root or with CAP_SYSLOG, .*tries again' hidden.said || fail "hidden: $(cat hidden.said)"

# Stacks through code that has no frame pointers end early or nowhere.
cat >lost.c <<'C'
__attribute__((noinline, noclone)) static unsigned leaf(unsigned x) { for (volatile unsigned i = 0; i < 4000; i++) x += i; return x; }
__attribute__((noinline, noclone)) static unsigned inner(unsigned x)
{
	register unsigned long b __asm__("rbp") = x | 4096ul; /* what else the register may hold */
	__asm__ volatile("" : "+r"(b));
	x += leaf(x);
	__asm__ volatile("" : "+r"(b));
	return x + (unsigned)b;
}
int main(void) { for (unsigned x = 1;; x++) inner(x); }
C
gcc -O1 -fomit-frame-pointer -fno-optimize-sibling-calls -o app lost.c || fail "no program"
how=(--call-graph=fp)
record_and truncated true
how=()
audit truncated
python3 -c 'import json, sys; s = json.load(open("truncated/report.json"))["stacks"]; sys.exit(s["truncated"] <= s["complete"])' ||
	fail "no truncated stacks: $(cat truncated/report.json)"
record_and unwound true
audit unwound
python3 -c 'import json, sys; s = json.load(open("unwound/report.json"))["stacks"]; sys.exit(s["by"] != "unwinding" or s["complete"] < 100 * s["truncated"])' ||
	fail "stacks that are not whole: $(cat unwound/report.json)"
grep -qE '^stacks +[>]?[0-9.]+ % complete' unwound.said || fail "stacks: $(cat unwound.said)"
grep -qE '^stacks +[0-9.]+ % reach a function that starts threads, [0-9.]+ % end before it \(not unwound; by function names\)$' truncated.said || fail "stacks: $(cat truncated.said)"

# .NET: with names, without, and with a precompiled image that is another one now.
if command -v dotnet >/dev/null && "$TESTS/dotnet/publish" wide-net-net10 >publish.log 2>&1; then
	mkdir pub && cp -r "$PUBLISHED/wide-net-net10" pub/
	PUBLISHED=$T/pub
	start_wide wide-net-net10 60
	wait_for_cpu "$WIDE_PID" 1500
	record named --no-download -p "$WIDE_PID" -F 499 -d 2
	mv collect.log named.said
	record none --no-download --jit-names=none -p "$WIDE_PID" -F 499 -d 2
	mv collect.log none.said
	record r2r --record-only --jit-names=none -p "$WIDE_PID" -F 499 -d 2
	stop "$WIDE_PID"
	audit named r2r System.Private.CoreLib.dll -
	python3 - <<-'EOP' || fail "the way of names: $(cat named/report.json)"
		import json, sys
		p = json.load(open('named/report.json'))['processes'][0]
		sys.exit(not (p['dotnet'] and p['version'].startswith('10.') and p['way'] == 'memory' and p['jit']['named'] > 100))
	EOP
	audit none r2r System.Private.CoreLib.dll - jit wide-net jit-not-asked
	mv pub/wide-net-net10/System.Private.CoreLib.dll old.dll && cp old.dll pub/wide-net-net10/System.Private.CoreLib.dll
	"$PROFCPU" postprocess --no-download r2r >r2r.said 2>&1 || fail "postprocess r2r: $(cat r2r.said)"
	audit r2r r2r System.Private.CoreLib.dll replaced
elif [ "${CI:-}" = true ]; then
	fail "needs the .NET 10 SDK: $(cat publish.log)"
fi

echo "$CHECKED recordings have the reasons that were made"
