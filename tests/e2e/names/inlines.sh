#!/usr/bin/env bash
# Inlined functions and lines are those that addr2line prints, from a program's own DWARF and from its debug file.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc g++ addr2line objcopy strip nm awk

cat >shop.cc <<'EOF'
#include <cmath>
namespace shop {
static inline __attribute__((always_inline)) double leaf(double x) { return std::sqrt(x) + 1; }
struct Box { double v; inline __attribute__((always_inline)) double grow(double x) { v += leaf(x); return v * 2; } };
__attribute__((noinline)) double spin(Box &b, double x)
{
	double s = 0;
	for (int i = 0; i < 100; i++)
		s += b.grow(x + i);
	return s;
}
}
extern "C" __attribute__((noinline)) int plain(int x) { return x * 7; }
int main(int c, char **) { shop::Box b{1.0}; return (int)shop::spin(b, c) + plain(c); }
EOF
g++ -O2 -g -fno-pie -no-pie -o shop shop.cc || fail "g++"
# Addresses in the functions, without the padding between them.
nm -S shop | awk '$3 ~ /[tT]/ && /spin|plain|main/ { print $1, $2 }' | while read -r at bytes; do
	for ((a = 0x$at; a < 0x$at + 0x$bytes; a += 3)); do printf '%x\n' "$a"; done
done >addresses
[ "$(wc -l <addresses)" -gt 50 ] || fail "too few addresses"
while read -r at; do # one by one, because earlier addresses change its output
	addr2line -a "$at" -e shop -i -f -s -C | sed 's/ (discriminator .*)//'
done <addresses >theirs
grep -q 'shop::Box::grow' theirs || fail "nothing was inlined"
"$BUILD/helpers/symbols_of" inlines "$T/shop" <addresses >ours
cmp theirs ours || { diff theirs ours | head -20; fail "differs from addr2line"; }

objcopy --only-keep-debug shop shop.debug && strip -o shop2 shop && objcopy --add-gnu-debuglink=shop.debug shop2 && rm shop
"$BUILD/helpers/symbols_of" inlines "$T/shop2" <addresses | cmp theirs || fail "differs with the debug file"

printf 'int main(void) { return 0; }' >bare.c && gcc -o bare bare.c && strip bare
"$BUILD/helpers/symbols_of" inlines "$T/bare" </dev/null 2>err && fail "found DWARF in a stripped program"
grep -q 'No such file' err || fail "$(cat err)"
