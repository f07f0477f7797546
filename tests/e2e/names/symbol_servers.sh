#!/usr/bin/env bash
# `profcpu symbols fetch` from servers of both kinds gets the debug file of a stripped C++ library. Its functions then have the
# names of the unstripped one. Faults of servers never reach the cache, take little time, and do not stop other downloads.
# Runs beside others, from the start.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need g++ objcopy strip readelf python3
export HOME=$T/home
mkdir -p "$HOME" lib www

cat >shop.cc <<'CC'
#include <cstdio>
namespace shop {
template <class T> struct Box { T v; explicit Box(T t) : v(t) {} T grow(T by); };
template <class T> __attribute__((noinline)) T Box<T>::grow(T by) { for (volatile int i = 0; i < 3; i++) v += by; return v; }
static inline int doubled(int x) { return x > 1000 ? x : x * 2 + printf("%d", x); }
__attribute__((noinline)) static int hidden(int x) { return doubled(doubled(x)); }
}
int shop_main(int x) { shop::Box<int> a(x); shop::Box<double> b(x); return shop::hidden(a.grow(x)) + (int)b.grow(x); }
CC
build() { # NAME MARK
	g++ -O2 -g -shared -fPIC -fvisibility=hidden -DMARK="$2" -Wl,--build-id -Wl,--defsym,"mark_$2"=0 -o "whole-$1" shop.cc || fail "no $1"
	cp "whole-$1" "lib/$1" && strip "lib/$1" && objcopy --only-keep-debug "whole-$1" "$1.dbg" || fail "cannot strip $1"
}
build shop.so 1
build libcoreclr.so 2
build libother.so 3
start_symbol_server www
for name in shop.so libcoreclr.so libother.so; do serve www "lib/$name" "$name.dbg"; done
serve www lib/shop.so shop.so.dbg
id=$BUILD_ID cache=$XDG_CACHE_HOME/profcpu/symbols
file=$cache/_.debug/elf-buildid-sym-$id/_.debug

read -r off size < <(readelf -SW whole-shop.so | sed -n 's/.* \.text *PROGBITS *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p')
for ((a = 0x$off; a < 0x$off + 0x$size; a += 2)); do printf '%x\n' "$a"; done >addresses
names() { "$BUILD/helpers/symbols_of" image "$1" <addresses || fail "symbols_of $1 gave $?"; }
names "$T/whole-shop.so" >wanted
names "$T/lib/shop.so" >stripped
grep -q 'shop::Box<double>::grow+0x' wanted && ! grep -q 'shop::' stripped || fail "the library has unexpected names"
fresh() { rm -rf "$XDG_CACHE_HOME" && : >server.log; }
# is_cached CASE: checks that the cache has the debug file, and no part of another.
is_cached() {
	cmp -s "$file" shop.so.dbg || fail "$1: the debug file is not in the cache: $(cat out err)"
	names "$T/lib/shop.so" >now
	diff wanted now >difference || fail "$1: names differ: $(head -n 5 difference)"
	[ -z "$(ls "$cache/.part" 2>/dev/null)" ] || fail "$1: files remain in .part"
	echo "$1: $(cat out)"
}
fetch() { timeout 60 "$PROFCPU" symbols fetch "$@" >out 2>err; }

# Both kinds of servers, their kinds of responses, and redirects.
for way in "" hop/ gzip/ deflate/ flaky/; do
	fresh
	fetch --symbol-server "$SYMBOL_SERVER/${way}ssqp" lib/shop.so || fail "SSQP $way: exit $?: $(cat out err)"
	grep -q "^fetched  *$id shop.so (" out || fail "SSQP $way: $(cat out)"
	is_cached "SSQP $way"
done
[ "$(grep -c flaky server.log)" = 3 ] || fail "not three requests: $(cat server.log)"
fresh
DEBUGINFOD_URLS="$SYMBOL_SERVER/none $SYMBOL_SERVER/dbg" fetch lib/shop.so || fail "debuginfod: exit $?: $(cat out err)"
is_cached debuginfod
[ "$(cat server.log)" = "/none/buildid/$id/debuginfo 
/dbg/buildid/$id/debuginfo " ] || fail "unexpected requests: $(cat server.log)"
# A cached file is not requested again.
: >server.log
DEBUGINFOD_URLS="$SYMBOL_SERVER/dbg" fetch lib/shop.so || fail "again: exit $?"
[ ! -s server.log ] || fail "requested again: $(cat server.log)"
grep -q '^cached ' out || fail "again: $(cat out)"
"$PROFCPU" symbols list lib/shop.so whole-shop.so >out 2>err || fail "list: exit $?: $(cat err)"
grep -qE "^(none|dynsym) +cached +$id +- +- +- $T/lib/shop.so$" out || fail "list: $(cat out)"
grep -qE "^symtab +none +[0-9a-f]* +- +- +- $T/whole-shop.so$" out || fail "list: $(cat out)"
grep -qF "cache: $cache, 1 files" out || fail "list: $(cat out)"
"$PROFCPU" symbols list --json lib/shop.so | python3 -c '
import json, sys
d = json.load(sys.stdin)
i = d["images"][0]
assert i["debug_file"] == "cached" and i["build_id"] == sys.argv[1] and i["debug_path"] == sys.argv[2] and not i["stripped"], i
assert d["cache"]["files"] == 1 and d["cache"]["bytes"] > 1000, d' "$id" "$file" || fail "list --json"
"$PROFCPU" symbols verify >out || fail "verify: exit $?: $(cat out)"
grep -qx "ok   $file" out || fail "verify: $(cat out)"
"$PROFCPU" symbols verify lib/shop.so lib/shop.so >out || fail "verify FILE: exit $?"
[ "$(cat out)" = "ok   $file" ] || fail "verify lists the file twice: $(cat out)"
# A debug file beside the image, which its debug link names too, is listed once.
cp whole-shop.so linked.so && objcopy --only-keep-debug linked.so linked.so.debug && strip linked.so && objcopy --add-gnu-debuglink=linked.so.debug linked.so
"$PROFCPU" symbols verify linked.so >out || fail "verify a link: exit $?"
[ "$(sort out)" = "$(printf 'ok   %s\n' "$file" "$T/linked.so.debug" | sort)" ] || fail "verify a link: $(cat out)"
rm linked.so.debug
# Control characters in the name of a library do not reach the terminal.
odd=$(printf 'odd\033]0;x\007.so')
cp linked.so "$odd"
for verb in list verify; do
	"$PROFCPU" symbols $verb "$odd" >out || fail "$verb of an odd name: exit $?"
	grep -qF 'odd\x1b]0;x\x07.so' out || [ $verb = verify ] || fail "$verb: $(cat -v out)"
	grep -q "$(printf '\033')" out && fail "$verb prints control characters"
done
cp other.so "$file" 2>/dev/null || cp libother.so.dbg "$file"
"$PROFCPU" symbols verify >out && fail "verify accepts a wrong file"
grep -qx "bad  $file: it has another build id" out || fail "verify: $(cat out)"
names "$T/lib/shop.so" >now
diff stripped now >difference || fail "a wrong file in the cache gives names"
# A download replaces a wrong file in the cache.
fetch --symbol-server "$SYMBOL_SERVER/ssqp" lib/shop.so || fail "over a wrong file: exit $?: $(cat out err)"
is_cached "over a wrong file"

# Several servers: the first one that has the file is used.
fresh
DOTNET_SYMBOL_SERVER="$SYMBOL_SERVER/none;$SYMBOL_SERVER/ssqp" fetch lib/shop.so || fail "two servers: exit $?"
is_cached "two servers"
fresh
fetch --symbol-server "$SYMBOL_SERVER/html/ssqp" --symbol-server "$SYMBOL_SERVER/ssqp/" lib/shop.so || fail "two options: exit $?: $(cat out err)"
is_cached "two options"

# failure WAY WHY: checks for one line with WHY, exit 1 and an empty cache. The files of another server are downloaded
# nevertheless.
failure() {
	local way=$1 why=$2
	shift 2
	fresh
	local begin=$SECONDS status=0
	DEBUGINFOD_URLS=$SYMBOL_SERVER/dbg timeout 60 "$PROFCPU" symbols fetch --symbol-server "$SYMBOL_SERVER/$way/ssqp" "$@" \
		lib/shop.so lib/libother.so >out 2>err || status=$?
	[ "$status" = 0 ] || fail "$way, and a server that has the files: exit $status: $(cat out err)"
	[ "$(grep -c ^fetched out)" = 2 ] || fail "$way: the other server's files were not downloaded: $(cat out err)"
	fresh
	status=0
	fetch --symbol-server "$SYMBOL_SERVER/$way/ssqp" "$@" lib/shop.so lib/libother.so || status=$?
	[ "$status" = 1 ] || fail "$way: exit $status: $(cat out err)"
	grep -qE "^profcpu: warning: no debug file for shop.so( and 1 other)?: $SYMBOL_SERVER/$way/ssqp $why$" err || fail "$way: $(cat err)"
	[ "$(wc -l <err)" = 1 ] || fail "$way: more than one line: $(cat err)"
	[ ! -e "$cache/_.debug" ] || fail "$way: the cache has files"
	[ -z "$(ls "$cache/.part" 2>/dev/null)" ] || fail "$way: files remain in .part"
	[ $((SECONDS - begin)) -lt 50 ] || fail "$way took $((SECONDS - begin)) s"
	echo "$way: $why ($((SECONDS - begin)) s)"
}
failure html 'sent a file that is not an ELF file'
failure half 'closed the connection early'
failure cut 'sent a file that (is not an ELF file|has no symbols|has no build id)'
failure large 'sends more than 2048 MiB'
failure circle 'redirects too often'
failure away 'redirects to a URL that is not allowed'
failure busy 'answers with status 503'
failure refused 'refuses it \(status 403\)'
failure hangup 'closed the connection early'
# A wrong build id: the server sends the file of another library.
mkdir -p www/wrong
cp -r www/ssqp www/wrong/
cp libcoreclr.so.dbg "www/wrong/ssqp/_.debug/elf-buildid-sym-$id/_.debug"
rm -r "www/wrong/ssqp/_.debug/elf-buildid-sym-$(readelf -n lib/libother.so | sed -n 's/.*Build ID: //p')"
fresh
fetch --symbol-server "$SYMBOL_SERVER/wrong/ssqp" lib/shop.so lib/libother.so && fail "a wrong build id gave 0"
grep -q "^profcpu: warning: no debug file for shop.so: $SYMBOL_SERVER/wrong/ssqp sent a file that has another build id$" err || fail "wrong: $(cat err)"
grep -q '^absent .*libother.so: no server has it' out || fail "wrong: $(cat out)"
# Wrong or absent files are not requested again soon, except with --again.
: >server.log
fetch --symbol-server "$SYMBOL_SERVER/wrong/ssqp" lib/shop.so lib/libother.so
[ ! -s server.log ] || fail "requested again: $(cat server.log)"
fetch --again --symbol-server "$SYMBOL_SERVER/wrong/ssqp" lib/shop.so lib/libother.so
[ "$(wc -l <server.log)" = 2 ] || fail "--again does not request again: $(cat server.log)"

# Slow servers end at the time limit, a file that unpacks to 10 GiB at the size limit.
for way in drip silent; do
	fresh
	begin=$SECONDS
	fetch --timeout 3 --symbol-server "$SYMBOL_SERVER/$way/ssqp" lib/shop.so && fail "$way gave 0"
	[ $((SECONDS - begin)) -le 8 ] || fail "$way took $((SECONDS - begin)) s"
	grep -q "^profcpu: warning: no debug file for shop.so: .* did not send it in time$" err || fail "$way: $(cat err)"
done
fresh
DEBUGINFOD_TIMEOUT=2 DEBUGINFOD_URLS=$SYMBOL_SERVER/drip/dbg fetch lib/shop.so && fail "a drip of debuginfod gave 0"
grep -q 'drip/dbg is too slow$' err || fail "DEBUGINFOD_TIMEOUT: $(cat err)"
fresh
DEBUGINFOD_MAXSIZE=300000000 DEBUGINFOD_URLS=$SYMBOL_SERVER/bomb/dbg fetch lib/shop.so && fail "a bomb gave 0"
grep -q 'bomb/dbg sends more than 286 MiB$' err || fail "DEBUGINFOD_MAXSIZE: $(cat err)"
fresh
printf 'X-Team: profilers\n' >headers
DEBUGINFOD_HEADERS_FILE=$T/headers DEBUGINFOD_URLS=$SYMBOL_SERVER/dbg fetch lib/shop.so || fail "headers: exit $?"
grep -q ' profilers$' server.log || fail "no header: $(cat server.log)"

# A closed port and an unknown host: one line for all files.
fresh
fetch --symbol-server http://127.0.0.1:1/x lib/shop.so lib/libother.so && fail "a closed port gave 0"
[ "$(cat err)" = "profcpu: warning: no debug file for shop.so and 1 other: http://127.0.0.1:1/x cannot be reached" ] ||
	grep -q 'could not be reached' err || fail "a closed port: $(cat err)"
fetch --symbol-server http://127.0.0.1:1/x lib/shop.so && fail "a port that was closed before gave 0"
grep -q 'recently' err && fail "a server that was unreachable before was not tried: $(cat err)"
fresh
fetch --timeout 20 --symbol-server http://does-not-exist.invalid/x lib/shop.so && fail "an unknown host gave 0"
grep -q 'does-not-exist.invalid/x ' err || fail "an unknown host: $(cat err)"

# A password in an address is sent and not shown.
fresh
fetch --symbol-server "http://me:secret@127.0.0.1:1/x" lib/shop.so
grep -q secret out err && fail "a password is shown"

# Proxies come from curl's environment.
fresh
http_proxy=$SYMBOL_SERVER no_proxy='' fetch --symbol-server http://symbols.invalid/ssqp lib/shop.so || fail "proxy: exit $?: $(cat out err)"
grep -q '^PROXY /ssqp/' server.log || fail "proxy: $(cat server.log)"
is_cached proxy

# Privacy: without a configured server only files of .NET are requested from Microsoft's (here a proxy that logs requests).
fresh
unset DOTNET_SYMBOL_SERVER
https_proxy=$SYMBOL_SERVER no_proxy='' fetch --timeout 10 lib/shop.so lib/libother.so || fail "private: exit $?: $(cat out err)"
[ "$(grep -c '^no server .*no server is allowed for it' out)" = 2 ] || fail "private: $(cat out)"
[ ! -s server.log ] || fail "requests were sent: $(cat server.log)"
https_proxy=http://127.0.0.1:1 fetch --timeout 10 lib/shop.so lib/libcoreclr.so && fail "libcoreclr.so was not requested"
[ "$(grep -c 'https://msdl.microsoft.com/download/symbols ' err)" = 1 ] || fail "libcoreclr.so: $(cat err)"
export DOTNET_SYMBOL_SERVER=
fetch lib/libcoreclr.so || fail "no server at all: exit $?: $(cat err)"
grep -q '^no server .*libcoreclr.so' out || fail "no server at all: $(cat out)"

# A hundred libraries need fewer descriptors.
fresh
mkdir many
python3 - "$id" <<'PYTHON'
import sys
whole, build_id = open("lib/shop.so", "rb").read(), bytes.fromhex(sys.argv[1])
for i in range(100):
    with open(f"many/{i}.so", "wb") as f:
        f.write(whole.replace(build_id, build_id[:18] + bytes([build_id[18] ^ 1, i])))
PYTHON
(ulimit -n 40 && fetch --symbol-server "$SYMBOL_SERVER/ssqp" many/*.so lib/shop.so) || fail "many: exit $?: $(cat err)"
[ "$(grep -c '^absent ' out)" = 100 ] && grep -q '^fetched .*shop.so' out || fail "many: $(cat out)"

# Errors on the command line.
refuses "$PROFCPU" symbols fetch --symbol-server ftp://x lib/shop.so
refuses "$PROFCPU" symbols fetch
refuses "$PROFCPU" symbols
refuses "$PROFCPU" symbols fetch headers
refuses "$PROFCPU" symbols fetch "$T/not-there"
DEBUGINFOD_URLS="what" refuses "$PROFCPU" symbols fetch lib/shop.so
refuses "$PROFCPU" symbols fetch --symbol-server http://// lib/shop.so
XDG_CACHE_HOME=/proc refuses "$PROFCPU" symbols fetch --symbol-server "$SYMBOL_SERVER/ssqp" lib/shop.so

# A process: the libraries that it has mapped.
fresh
g++ -o mapper -xc++ - -Llib -l:shop.so -Wl,-rpath,"$T/lib" <<<'#include <unistd.h>
int main() { sleep(300); }' -Wl,--no-as-needed,-l:shop.so || fail "the program does not build"
start mapper ./mapper
wait_for 10 grep -q shop.so "/proc/$STARTED/maps" || fail "the program has not mapped shop.so"
fetch --symbol-server "$SYMBOL_SERVER/ssqp" "$STARTED" || true
grep -q "^fetched  *$id shop.so" out || fail "a library of a process: $(cat out err)"

# Two runs at once download the same files, and both succeed.
fresh
fetch --symbol-server "$SYMBOL_SERVER/ssqp" lib/shop.so lib/libcoreclr.so &
first=$!
"$PROFCPU" symbols fetch --symbol-server "$SYMBOL_SERVER/ssqp" lib/shop.so lib/libcoreclr.so >out2 2>err2 || fail "the second of two: $(cat out2 err2)"
wait $first || fail "the first of two: $(cat out err)"
is_cached "two at once"
