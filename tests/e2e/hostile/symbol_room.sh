#!/usr/bin/env bash
# An endless download does not fill the disk: some space stays free, one line reports it, and no part of the file is
# kept.
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
symbols bomb/ && fail "the download that fills the disk gave 0"
[ "$(cat err)" = "profcpu: warning: no debug file for one.so and 1 other: less than 64 MiB would stay free at \
$XDG_CACHE_HOME/profcpu/symbols; free some space, or set XDG_CACHE_HOME to another disk" ] || fail "wrong warning: $(cat err)"
[ "$(grep -c '^no room ' out)" = 2 ] || fail "not a line for each file: $(cat out)"
[ -z "$(ls "$XDG_CACHE_HOME/profcpu/symbols/.part")" ] || fail "files remain"
[ "$(room)" -gt $((before - 100)) ] || fail "$before KiB were free before, $(room) are now"
# Files that fit are downloaded while there is space.
symbols "" || fail "exit $?: $(cat out err)"
[ "$(grep -c '^fetched ' out)" = 2 ] || fail "the files were not downloaded: $(cat out)"
rm -r "$XDG_CACHE_HOME"
head -c 40M /dev/zero >small/ballast
: >server.log
symbols "" && fail "a full disk gave 0"
[ ! -s server.log ] || fail "requested a file without space for it: $(cat server.log)"
echo "$(cat err)"
