#!/usr/bin/env bash
# A server that sends without end does not fill the disk: some of it stays free, one line says so, and nothing of it is kept.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc objcopy strip readelf python3
mkdir small www lib
mount -t tmpfs -o size=96m none small 2>/dev/null || skip "needs the right to mount"
T_MOUNTED+=("$T/small")
for name in one.so two.so; do
	echo 'int f(int x) { return x; }' | gcc -g -shared -fPIC -Wl,--build-id "-Wl,--defsym,mark_$name=0" -o "lib/$name" -xc - || fail "no $name"
	objcopy --only-keep-debug "lib/$name" "$name.dbg" && strip "lib/$name" || fail "cannot strip $name"
done
start_symbol_server www
for name in one.so two.so; do serve www "lib/$name" "$name.dbg"; done
export XDG_CACHE_HOME=$T/small/cache
room() { df --output=avail -k small | tail -n 1; }
symbols() { timeout 60 "$PROFCPU" symbols fetch --symbol-server "$SYMBOL_SERVER/$1ssqp" lib/one.so lib/two.so >out 2>err; }

before=$(room)
[ "$before" -gt 90000 ] || fail "the disk is too small: $before KiB"
symbols bomb/ && fail "what fills the disk gave 0"
[ "$(cat err)" = "profcpu: warning: no debug file of one.so and 1 other: less than 64 MiB would stay free where \
$XDG_CACHE_HOME/profcpu/symbols is; make room, or set XDG_CACHE_HOME to where there is some" ] || fail "it says: $(cat err)"
[ "$(grep -c '^no room ' out)" = 2 ] || fail "of each file it says: $(cat out)"
[ -z "$(ls "$XDG_CACHE_HOME/profcpu/symbols/.part")" ] || fail "something is left"
[ "$(room)" -gt $((before - 100)) ] || fail "$before KiB were free before, $(room) are now"
# What fits comes, as long as there is room.
symbols "" || fail "exit $?: $(cat out err)"
[ "$(grep -c '^fetched ' out)" = 2 ] || fail "the files did not come: $(cat out)"
rm -r "$XDG_CACHE_HOME"
head -c 40M /dev/zero >small/ballast
: >server.log
symbols "" && fail "a full disk gave 0"
[ ! -s server.log ] || fail "a server was asked for what there is no room for: $(cat server.log)"
echo "$(cat err)"
