#!/usr/bin/env bash
# Unnamed frames are counted as in perf_script.out, with known reasons. Another machine reports the same, byte for byte.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc strip python3 tar ldd setpriv
need_root
need_sampling
need_mounts

another_root
CHECKED=0
# audit RECORDING [KIND NAME REASON]...: checks the report. Messages about it are in RECORDING.out. Its archive gives the
# same report in another root.
audit() {
	python3 "$TESTS/e2e/names/audit.py" "$@" || fail "the report of $*"
	python3 -m json.tool "$1/report.json" >/dev/null || fail "$1/report.json is no JSON"
	[ "$(stat -c %a "$1/report.json")" = 600 ] || fail "$1/report.json is readable for others"
	[ "$(grep -cE '^(unnamed  |          ) *[<>]?[0-9.]+ %  .*: ' "$1.out")" -le 5 ] || fail "more than 5 rows of unnamed frames: $(cat "$1.out")"
	tar -xzf "$1/prof.tar.gz" -C "$R/tmp" && rm "$R/tmp/prof/report.json"
	there postprocess /tmp/prof >there.out 2>/dev/null || fail "postprocess of $1 in another root gave $?"
	cmp "$1/report.json" "$R/tmp/prof/report.json" || {
		diff "$1/report.json" "$R/tmp/prof/report.json" | head -20
		fail "$1: report.json differs in another root"
	}
	diff <(grep -A 99 '^samples' "$1.out" | grep -v '^written') <(grep -v '^written' there.out | sed "s,\(postprocess\|fetch\) /tmp/prof\`,\1 $1\`,g") || fail "$1: the report differs in another root"
	rm -r "$R/tmp/prof"
	CHECKED=$((CHECKED + 1))
}
options=()
# record_and RECORDING COMMAND...: records the program, and runs COMMAND before the lookup of names.
record_and() {
	local rec=$1
	shift
	start app ./app
	record "$rec" --record-only "${options[@]}" -p "$STARTED" -F 999 -d 1
	stop "$STARTED"
	"$@"
	"$PROFCPU" postprocess --no-download "$rec" >"$rec.out" 2>&1 || fail "postprocess $rec: $(cat "$rec.out")"
}

# A library that is whole, stripped, removed or replaced, and one without a build id.
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
gcc "${flags[@]}" -shared -fPIC -Wl,--build-id=none -o no-id.so work.c || fail "no library"
cp whole.so libwork.so
gcc "${flags[@]}" -o app app.c -L. -lwork -Wl,-rpath,"$T" || fail "no program"
record_and whole true
audit whole native libwork.so - native app - kernel '[kernel.kallsyms]' -
grep -q '^unnamed .*libwork' whole.out && fail "a named library is listed as unnamed"
rm libwork.so && strip -o libwork.so whole.so
record_and stripped true
audit stripped stripped libwork.so no-debug-file
id=$(readelf -n libwork.so | sed -n 's/.*Build ID: //p')
grep -qE "^unnamed +[0-9.]+ %  libwork\.so: no debug file of build id $id; .profcpu symbols fetch stripped.," stripped.out || fail "stripped: $(cat stripped.out)"
grep -qE '^          stripped +[0-9]+ ' stripped.out || fail "no row for stripped code: $(cat stripped.out)"
# The remedy works: it tries also a server that was unreachable before, and says what to do if no server has the file.
fetches() { # STATUS PATTERN OPTION...: the result of symbols fetch
	local want=$1 pattern=$2 status=0
	shift 2
	"$PROFCPU" symbols fetch "$@" stripped >fetch.out 2>&1 || status=$?
	[ "$status" = "$want" ] || fail "symbols fetch: exit $status, not $want: $(cat fetch.out)"
	grep -qE "$pattern" fetch.out || fail "symbols fetch: $(cat fetch.out)"
}
post() { "$PROFCPU" postprocess "$@" stripped >stripped.out 2>&1 || fail "postprocess: $(cat stripped.out)"; }
post --symbol-server http://127.0.0.1:1/x
fetches 0 '^no server .*libwork.so: no server is allowed for it; name one with --symbol-server'
for _ in 1 2; do
	fetches 1 'no debug file for libwork.so: http://127.0.0.1:1/x could not be reached|cannot be reached' --symbol-server http://127.0.0.1:1/x
done
if command -v python3 >/dev/null; then
	mkdir www
	start_symbol_server www
	post --symbol-server "$SYMBOL_SERVER/ssqp"
	fetches 0 '^absent .*libwork.so: no server has it; install it, or name another server' --symbol-server "$SYMBOL_SERVER/ssqp"
	serve www whole.so whole.so
	fetches 0 '^fetched .*libwork.so' --again --symbol-server "$SYMBOL_SERVER/ssqp"
	grep -qx 'next: profcpu postprocess stripped' fetch.out || fail "no next step: $(cat fetch.out)"
	post
	grep -q 'libwork.so' stripped.out && fail "the fetched file gives no names: $(cat stripped.out)"
	rm -rf "$XDG_CACHE_HOME"
fi
record_and gone rm libwork.so
audit gone native libwork.so gone native app -
cp whole.so libwork.so
record_and replaced sh -c 'mv libwork.so old.so && cp app libwork.so'
audit replaced native libwork.so replaced
grep -qE '^unnamed .*libwork\.so: another file has its place now; ' replaced.out || fail "replaced: $(cat replaced.out)"
rm libwork.so && strip -o libwork.so no-id.so
record_and no-id true
audit no-id stripped libwork.so no-symbols
# A debug file that the program's user may not read.
rm libwork.so && strip -o libwork.so whole.so
cp whole.so libwork.so.debug && chmod 600 libwork.so.debug
start app setpriv --reuid=65534 --regid=65534 --clear-groups ./app
record refused --record-only -p "$STARTED" -F 999 -d 1
stop "$STARTED"
"$PROFCPU" postprocess --no-download refused >refused.out 2>&1 || fail "postprocess: $(cat refused.out)"
audit refused stripped libwork.so debug-denied
grep -q "^unnamed .*libwork\.so: access is denied to its debug file of build id $id; let everybody read .*, then .profcpu postprocess refused.$" refused.out || fail "refused: $(cat refused.out)"
chmod 644 libwork.so.debug # as it says
"$PROFCPU" postprocess --no-download refused >refused.out 2>&1 || fail "postprocess: $(cat refused.out)"
grep -q 'libwork.so' refused.out && fail "the readable debug file gives no names: $(cat refused.out)"
rm libwork.so libwork.so.debug && cp whole.so libwork.so

# A library that this user may not read.
if "$BUILD/helpers/can_sample" >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	rm libwork.so && cp whole.so libwork.so
	start app ./app
	record denied --record-only -p "$STARTED" -F 999 -d 1
	stop "$STARTED"
	chmod 0 libwork.so
	setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search "$PROFCPU" postprocess --no-download denied \
		>denied.out 2>&1 || fail "postprocess: $(cat denied.out)"
	audit denied native libwork.so denied
	chmod 644 libwork.so
fi

# Hidden names of the kernel: without the right to see them all addresses are 0.
sed 's/^[0-9a-f]*/0000000000000000/' /proc/kallsyms >zeros
start app ./app
record hidden --record-only -p "$STARTED" -F 999 -d 1
stop "$STARTED"
unshare -m sh -c 'mount --bind zeros /proc/kallsyms && exec "$@"' - "$PROFCPU" postprocess --no-download hidden >hidden.out 2>&1 ||
	fail "postprocess: $(cat hidden.out)"
audit hidden kernel '[kernel.kallsyms]' hidden native libwork.so -
grep -qE '^unnamed .*kernel names are hidden here; `profcpu postprocess hidden` as root or with CAP_SYSLOG' hidden.out &&
	grep -q 'the first is /proc/kallsyms; .*`profcpu postprocess hidden` as root or with CAP_SYSLOG, .*tries again' hidden.out || fail "hidden: $(cat hidden.out)"

# Stacks by frame pointers are truncated in code without frame pointers.
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
options=(--call-graph=fp)
record_and truncated true
options=()
audit truncated
python3 -c 'import json, sys; s = json.load(open("truncated/report.json"))["stacks"]; sys.exit(s["truncated"] <= s["complete"])' ||
	fail "no truncated stacks: $(cat truncated/report.json)"
record_and unwound true
audit unwound
python3 -c 'import json, sys; s = json.load(open("unwound/report.json"))["stacks"]; sys.exit(s["by"] != "unwinding" or s["complete"] < 100 * s["truncated"])' ||
	fail "incomplete stacks: $(cat unwound/report.json)"
grep -qE '^stacks +[>]?[0-9.]+ % complete' unwound.out || fail "stacks: $(cat unwound.out)"
grep -qE '^stacks +[0-9.]+ % reach a function that starts threads, [0-9.]+ % end before it \(not unwound; by function names\)$' truncated.out || fail "stacks: $(cat truncated.out)"

# .NET: with names, without, and with a replaced precompiled image.
if command -v dotnet >/dev/null && "$TESTS/dotnet/publish" wide-net-net10 >publish.log 2>&1; then
	mkdir pub && cp -r "$PUBLISHED/wide-net-net10" pub/
	PUBLISHED=$T/pub
	start_wide wide-net-net10 60
	wait_for_cpu "$WIDE_PID" 1500
	record named --no-download -p "$WIDE_PID" -F 499 -d 2
	mv collect.log named.out
	record none --no-download --jit-names=none -p "$WIDE_PID" -F 499 -d 2
	mv collect.log none.out
	record r2r --record-only --jit-names=none -p "$WIDE_PID" -F 499 -d 2
	stop "$WIDE_PID"
	audit named r2r System.Private.CoreLib.dll -
	python3 - <<-'EOP' || fail "report.json has another source of names: $(cat named/report.json)"
		import json, sys
		p = json.load(open('named/report.json'))['processes'][0]
		sys.exit(not (p['dotnet'] and p['version'].startswith('10.') and p['way'] == 'memory' and p['jit']['named'] > 100))
	EOP
	audit none r2r System.Private.CoreLib.dll - jit wide-net jit-not-asked
	mv pub/wide-net-net10/System.Private.CoreLib.dll old.dll && cp old.dll pub/wide-net-net10/System.Private.CoreLib.dll
	"$PROFCPU" postprocess --no-download r2r >r2r.out 2>&1 || fail "postprocess r2r: $(cat r2r.out)"
	audit r2r r2r System.Private.CoreLib.dll replaced
elif [ "${CI:-}" = true ]; then
	fail "needs the .NET 10 SDK: $(cat publish.log)"
fi

echo "$CHECKED recordings have the expected reasons"
