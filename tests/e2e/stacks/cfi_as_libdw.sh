#!/usr/bin/env bash
# Steps by CFI agree with libdw for each row of system files, of the runtime, and of programs built and linked in
# unusual ways. A full step gives all registers of the caller, and the short rule leads to the same place.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need gcc clang ld.gold objcopy strip dotnet perl

# agree ROWS FILE...: checks that nothing differs, that libdw knows every row, and that there are at least ROWS rows in
# total.
agree() {
	local least=$1 rows
	shift
	"$BUILD/helpers/cfi_as_libdw" "$@" >out || fail "$(grep -v ' 0 differ$' out | head -n 20)"
	grep -v ' 0 only here; 0 differ$' out && fail "libdw does not have the rows above"
	rows=$(sed 's/.* \([0-9]*\) rows;.*/\1/' out | awk '{ n += $1 } END { print n + 0 }')
	cat out
	[ "$rows" -ge "$least" ] || fail "only $rows rows in $*"
}
# has KIND...: checks that the last file has places of these kinds.
has() {
	local kind
	for kind in "$@"; do
		grep -qE "[, ][1-9][0-9]* $kind" out || fail "no $kind: $(cat out)"
	done
}

system=()
for f in libc.so.6 libm.so.6 libmvec.so.1 libstdc++.so.6 libcrypto.so.3 libpthread.so.0 ld-linux-x86-64.so.2; do
	for d in /lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu /lib64; do
		[ -f "$d/$f" ] && system+=("$d/$f") && break
	done
done
agree 40000 "${system[@]}" "$(command -v perl)"
has plain full plt ends
runtime=$(dirname "$(readlink -f "$(command -v dotnet)")")/shared/Microsoft.NETCore.App
mapfile -t clr < <(find "$runtime" -name '*.so')
agree 40000 "${clr[@]}"

cat >odd.c <<'END'
#include <alloca.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
__attribute__((noinline)) static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static int large(int n)
{
	char *p = alloca(n * 16 + 1), q[70000];
	int v[5] = {5, n, 3, 2, 1};
	memset(p, n, n * 16 + 1), qsort(v, 5, 4, compare), memcpy(q + 1, p, 9);
	return v[0] + p[n] + q[n + 1];
}
__attribute__((noinline)) int aligned(int n)
{
	_Alignas(64) char z[256];
	memset(z, n, 256), puts(z + 250);
	return z[n & 255] + large(n);
}
static void *thread(void *p) { return (void *)(long)aligned((int)(long)p); }
int main(int argc, char **argv)
{
	pthread_t t;
	pthread_create(&t, 0, thread, (void *)(long)argc), pthread_join(t, 0);
	return printf("%d %s\n", aligned(argc), argv[0]) < 0;
}
END
# build NAME COMPILER FLAG...
build() {
	local name=$1
	shift
	"$@" -Wno-array-bounds -o "$name" odd.c -lpthread 2>build.err || fail "$* does not build it: $(cat build.err)"
}
# odd NAME COMPILER FLAG...: checks that rows of a program built in this way agree with libdw.
odd() {
	build "$@"
	agree 15 "$1"
}
odd plain gcc -O2
odd unoptimized gcc -O0
odd drap gcc -O2 -mforce-drap
has full
odd static-pie gcc -O2 -fomit-frame-pointer -static-pie
odd no-header gcc -O2 -static -Wl,--no-eh-frame-hdr
odd ibt gcc -O2 -fcf-protection=full -Wl,-z,ibtplt,-z,lazy
odd gold gcc -O2 -fuse-ld=gold
has plt
odd clang clang -O2
odd clang-gold clang -O2 -fuse-ld=gold
odd debug-frame gcc -O2 -g -fno-asynchronous-unwind-tables
odd clang-debug-frame clang -O2 -g -fno-asynchronous-unwind-tables
odd compressed gcc -O2 -g -gz=zlib -fno-asynchronous-unwind-tables
objcopy --only-keep-debug compressed compressed.debug || fail "no debug file"
agree 10 compressed.debug
[ "$(sed 's/.* \([0-9]*\) FDEs.*/\1/' out)" -ge 4 ] || fail "the debug file lost FDEs: $(cat out)"

# Without section headers: e_shoff, e_shnum and e_shstrndx are 0.
for f in plain "$runtime"/*/libcoreclr.so; do
	cp "$f" headless || fail "no copy of $f"
	printf '\0\0\0\0\0\0\0\0' | dd of=headless bs=1 seek=40 conv=notrunc status=none
	printf '\0\0\0\0' | dd of=headless bs=1 seek=60 conv=notrunc status=none
	agree 15 headless
done
