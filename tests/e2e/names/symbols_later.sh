#!/usr/bin/env bash
# A recording of stripped libraries, one of them called libcoreclr.so, has placed functions. With their debug files in the
# cache, postprocess gives them the names of the unstripped libraries, also on a machine without the libraries. Without
# debug files every output stays the same, byte for byte. collect and postprocess download them automatically.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc objcopy strip readelf nm python3
need_sampling
export HOME=$T/home
mkdir -p "$HOME" lib whole www

for name in libcoreclr.so libshop.so; do
	stem=${name%.so}
	cat >"$stem.c" <<-C
		#define BURN for (volatile unsigned i = 0; i < 40000; i++) x += i
		__attribute__((noinline, noclone)) static unsigned ${stem}_deep(unsigned x) { BURN; return x + 1; }
		__attribute__((noinline, noclone)) static unsigned ${stem}_other(unsigned x) { BURN; return x * 3; }
		__attribute__((noinline, noclone)) static unsigned ${stem}_middle(unsigned x) { x = ${stem}_deep(x); BURN; x += ${stem}_other(x); return x + 2; }
		unsigned ${stem}_shown(unsigned x) { BURN; return ${stem}_middle(x) + 5; }
	C
	gcc -O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -shared -fPIC -Wl,--build-id -o "whole/$name" "$stem.c" || fail "no $name"
	cp "whole/$name" lib/ && strip "lib/$name" && objcopy --only-keep-debug "whole/$name" "$stem.dbg" || fail "cannot strip $name"
done
gcc -O1 -g -fno-omit-frame-pointer -o app -xc - -Llib -lshop -l:libcoreclr.so -Wl,-rpath,"$T/lib" <<'C' || fail "no program"
unsigned libshop_shown(unsigned), libcoreclr_shown(unsigned);
int main(void) { for (unsigned x = 1;; x++) libshop_shown(libcoreclr_shown(x)); }
C
start app ./app
app=$STARTED
start_symbol_server www
serve www lib/libshop.so libshop.dbg
serve www lib/libcoreclr.so libcoreclr.dbg
functions() { # RECORDING: functions of the libraries, in the full form
	"$PROFCPU" fold "$1" 2>/dev/null | tr ';' '\n' | sed 's/ [0-9]*$//' | grep -E 'lib(shop|coreclr)' | sort -u
}
all=$(for stem in libcoreclr libshop; do for f in deep middle other shown; do echo "${stem}_$f"; done; done)

# Without a server functions are placed.
record plain -p "$app" -d 2 -F 999
[ -z "$(cat server.log)" ] || fail "requests were sent: $(cat server.log)"
functions plain >got
[ "$(grep -c '^\[libshop\.so+0x' got)" = 3 ] && [ "$(grep -c '^\[libcoreclr\.so+0x' got)" = 3 ] || fail "not placed: $(cat got)"
grep -q '^libshop_shown$' got || fail "the export has no name: $(cat got)"
grep -q '^stripped ' plain/symbols/names || fail "the recording has no 'stripped' lines"
cp -r plain placed
"$PROFCPU" postprocess -q placed || fail "postprocess gave $?"
for f in folded_stacks.out perf_script.out flamegraph.svg report.json symbols/names; do
	cmp plain/$f placed/$f || fail "$f differs after a second postprocess without debug files"
done
"$PROFCPU" symbols list plain >out 2>err || fail "list: exit $?: $(cat err)"
grep -qE "^dynsym +none +[0-9a-f]{40} +[1-9][0-9]* +[1-9][0-9]* +0 $T/lib/libshop.so$" out || fail "list: $(cat out)"

# named RECORDING: checks that all functions have the names of the unstripped libraries.
named() {
	functions "$1" >got
	[ "$(cat got)" = "$all" ] || fail "$1: not named: $(cat got)"
	"$PROFCPU" fold --names perf "$1" 2>/dev/null | tr ';' '\n' | sed 's/ [0-9]*$//' | grep -E '^lib(shop|coreclr)_' | sort -u >perf_form
	[ "$(cat perf_form)" = "$all" ] || fail "$1: not named in perf's form: $(cat perf_form)"
	grep -q '^stripped ' "$1/symbols/names" && fail "$1 still has 'stripped' lines"
	grep -q ' debug-file - libshop_deep$' "$1/symbols/names" || fail "$1: the names were not stored: $(cat "$1/symbols/names")"
}

# Fetch by hand, then get names without the program, the libraries and a server.
"$PROFCPU" symbols fetch --symbol-server "$SYMBOL_SERVER/ssqp" plain >out 2>err || fail "fetch: exit $?: $(cat out err)"
[ "$(grep -c '^fetched ' out)" = 2 ] && grep -qx 'next: profcpu postprocess plain' out || fail "fetch: $(cat out err)"
mv lib away
cp plain/prof.tar.gz .
"$PROFCPU" fold plain | cmp - <("$PROFCPU" fold prof.tar.gz) || fail "fold changes names"
"$PROFCPU" postprocess -q -o later prof.tar.gz || fail "postprocess of the archive: exit $?"
named later
"$PROFCPU" postprocess -q plain || fail "postprocess of the recording: exit $?"
named plain
cmp plain/folded_stacks.out later/folded_stacks.out || fail "stacks of the archive and of the recording differ"
# Later runs need no cache.
rm -rf "$XDG_CACHE_HOME"
cp later/prof.tar.gz later.tar.gz
"$PROFCPU" postprocess -q -o again later.tar.gz || fail "postprocess without the cache: exit $?"
for f in folded_stacks.out perf_script.out flamegraph.svg symbols/names; do
	cmp later/$f again/$f || fail "$f differs without the cache"
done
mv away lib

# The same samples by the unstripped libraries: every frame has the same name. They have the stripped ones' build ids.
mkdir -p usr && cp -r placed whole-names && rm whole-names/symbols/names
mv lib away && mkdir lib && cp whole/* lib/
"$PROFCPU" postprocess -q whole-names 2>err || fail "with whole libraries: exit $?: $(cat err)"
rm -r lib && mv away lib
if grep -q libshop_deep whole-names/symbols/names; then
	cmp whole-names/folded_stacks.out later/folded_stacks.out || fail "names differ from those of the unstripped libraries"
	echo "names equal those of the unstripped libraries"
else
	# If the kernel gives no build ids of maps, inodes identify the files.
	echo "the unstripped libraries are not the mapped files"
fi

# collect downloads them itself, reports that in one line, and gives names at once. postprocess does so later.
: >server.log
DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp record automatic -p "$app" -d 2 -F 999
named automatic
[ "$(grep -c "^profcpu: downloading debug files of 2 libraries from $SYMBOL_SERVER/ssqp, for at most 60 s; --no-download prevents it$" collect.log)" = 1 ] ||
	fail "the download is not reported: $(cat collect.log)"
[ "$(wc -l <server.log)" = 2 ] || fail "unexpected requests: $(cat server.log)"
rm -rf "$XDG_CACHE_HOME"
: >server.log
DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp record without --no-download -p "$app" -d 1 -F 999
[ ! -s server.log ] || fail "--no-download sends requests: $(cat server.log)"
for command in "fold" "flamegraph" "postprocess -q --offline" "postprocess -q --no-download"; do
	# shellcheck disable=SC2086 # a command with its options
	DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp "$PROFCPU" $command without >out 2>err || fail "$command: exit $?: $(cat err)"
	[ ! -s server.log ] || fail "$command sends requests: $(cat server.log)"
done
"$PROFCPU" postprocess -q --symbol-server "$SYMBOL_SERVER/ssqp" without || fail "postprocess: exit $?"
named without

# A server without the files, or an unreachable one, changes no names and takes little time.
rm -rf "$XDG_CACHE_HOME"
cp -r placed nothing
DOTNET_SYMBOL_SERVER="$SYMBOL_SERVER/none;http://127.0.0.1:1/x" "$PROFCPU" postprocess nothing >out 2>err || fail "no server: exit $?: $(cat err)"
grep -q '^profcpu: warning: no debug file for .*http://127.0.0.1:1/x cannot be reached$' err || fail "the unreachable server is not reported: $(cat err)"
cmp nothing/folded_stacks.out placed/folded_stacks.out || fail "names differ without debug files"
: >server.log
DOTNET_SYMBOL_SERVER="$SYMBOL_SERVER/none;http://127.0.0.1:1/x" "$PROFCPU" postprocess nothing >out 2>err || fail "no server: exit $?"
[ ! -s server.log ] && ! grep -q 'downloading' err || fail "requested again at once: $(cat err server.log)"
# postprocess works without a cache directory too.
rm -rf "$XDG_CACHE_HOME"
XDG_CACHE_HOME=/proc/nowhere DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp "$PROFCPU" postprocess nothing >out 2>err || fail "no cache: exit $?: $(cat err)"
grep -q 'debug files: not downloaded: cannot use the cache' err || fail "no cache: $(cat err)"
