#!/usr/bin/env bash
# libcurl is loaded only to download. If it is missing, profcpu says so, and all else works.
. "$(dirname "$0")/../lib.sh"
need_root
need_release # strace and the leak sanitizer exclude each other
need unshare strace
lib=$(ldconfig -p | awk '$1 == "libcurl.so.4" { print $NF; exit }')
[ -n "$lib" ] || skip "no libcurl.so.4"

strace -f -e trace=openat -o trace "$PROFCPU" --version >out 2>&1 || fail "--version: $(cat out)"
! grep -q libcurl trace || fail "--version loads libcurl: $(grep libcurl trace)"
: >empty
cat >hidden.sh <<'SH'
mount --bind empty "$1" || exit 99
"$2" flamegraph "$3" >svg && "$2" symbols fetch --symbol-server http://127.0.0.1:9/ "$2"
SH
printf 'a;b 1\n' >in
unshare -m sh hidden.sh "$lib" "$PROFCPU" in >out 2>err
code=$?
[ "$code" = 1 ] || fail "exit $code: $(cat out err)"
grep -q "<svg" svg || fail "no picture without libcurl: $(cat err)"
grep -qE '^profcpu: .*: .*shared library; install libcurl.so.4' err || fail "no remedy: $(cat err)"
