#!/usr/bin/env bash
# Names and offsets equal those of perf script, for addresses in system files, in programs with and without debug files, and
# in the kernel. The recordings for perf have a sample at each address.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need perf gcc objcopy strip readelf awk
[[ $(perf version) =~ ^perf\ version\ 6\.1\. ]] || skip "needs perf 6.1, whose rules profcpu follows"
perf_script=(perf --buildid-dir "$T/no-cache" script -F "ip,sym,symoff")

# offsets FILE STEP: file offsets in executable segments, STEP apart, and each slot of procedure linkage tables.
offsets() {
	readelf -lW "$1" | awk -v step="$2" '
		function hex(s, i, n) { n = 0; s = tolower(substr(s, 3)); for (i = 1; i <= length(s); i++) n = n * 16 + index("0123456789abcdef", substr(s, i, 1)) - 1; return n }
		$1 == "LOAD" && /E +0x/ { start = hex($2); end = start + hex($5); for (a = start; a < end; a += step) printf "%x\n", a }'
	readelf -SW "$1" | sed -n 's/.* \.plt[a-z.]* *PROGBITS *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2/p' | while read -r at bytes; do
		for ((a = 0x$at; a < 0x$at + 0x$bytes && a < 0x$at + 4096; a += 8)); do printf '%x\n' "$a"; done
	done
}

# names_by_perf: writes perf's names of the samples in p.data to $T/perf, without the base of probe_perfdata's addresses.
names_by_perf() {
	"${perf_script[@]}" -i p.data >perf.raw 2>perf.err </dev/null || fail "perf script gave $?: $(tail -n 3 perf.err)"
	sed 's/^ *10000//; s/^ *0*\([0-9a-f]\)/\1/' perf.raw >perf
}

# agree NAME: checks that $T/perf and $T/ours have the same names at 99.9 % of the addresses at least.
agree() {
	local lines differ
	lines=$(wc -l <ours)
	[ "$lines" -ge 10 ] || fail "$1: only $lines addresses"
	[ "$lines" = "$(wc -l <addresses)" ] || fail "$1: symbols_of has $lines of $(wc -l <addresses) addresses"
	[ "$lines" = "$(wc -l <perf)" ] || {
		diff <(cut -d ' ' -f 1 perf) addresses | head -n 20
		fail "$1: perf has $(wc -l <perf) of $lines addresses: $(head -n 3 perf.err)"
	}
	differ=$(paste -d '\n' perf ours | awk 'NR % 2 { p = $0; next } p != $0 { n++; if (n < 4) print p " | " $0 >"/dev/stderr" } END { print n + 0 }')
	echo "$1: $lines addresses, $differ differ"
	[ $((differ * 1000)) -le "$lines" ] || fail "$1: names differ from perf's"
}

check_file() { # FILE STEP
	offsets "$1" "$2" >addresses
	"$BUILD/helpers/probe_perfdata" p.data "$1" <addresses || fail "probe_perfdata gave $?"
	names_by_perf
	"$BUILD/helpers/symbols_of" image "$1" <addresses >ours || fail "symbols_of image $1 gave $?"
	agree "$1"
}

cat >shop.cc <<'EOF'
#include <stdexcept>
#include <cstdio>
namespace shop {
template <class T> struct Box { T v; explicit Box(T t); ~Box(); operator double() const; T operator()(T) const; };
template <class T> __attribute__((noinline)) Box<T>::Box(T t) : v(t) { puts("box"); }
template <class T> __attribute__((noinline)) Box<T>::~Box() { puts("gone"); }
template <class T> __attribute__((noinline)) Box<T>::operator double() const { if (v > 9) throw std::runtime_error("v"); return v; }
template <class T> __attribute__((noinline)) T Box<T>::operator()(T x) const { return v + x; }
}
namespace { __attribute__((noinline)) int hidden(int x) { return printf("%d", x); } }
int main(int c, char **) { shop::Box<int> b(c); shop::Box<double> d(c); auto f = [&](int x) { return hidden(x) + b(x); }; return f((double)b + (double)d); }
EOF
if command -v g++ >/dev/null; then
	g++ -O1 -g -o shop shop.cc || fail "g++"
	check_file "$T/shop" 1
	objcopy --only-keep-debug shop shop.debug
	strip -o shop-linked shop
	objcopy --add-gnu-debuglink=shop.debug shop-linked
	check_file "$T/shop-linked" 1
	strip -o shop-stripped shop
	check_file "$T/shop-stripped" 1
fi
printf 'int main(void) { return 0; }' >still.c
gcc -static -o still still.c && check_file "$T/still" 61
for f in /bin/bash /usr/bin/perf "$(gcc -print-prog-name=cc1)" "$(ldd /usr/bin/perf | awk '/libc\.so/ { print $3 }')" \
	"$(ldd /usr/bin/perf | awk '/libstdc/ { print $3 }')" "$PROFCPU"; do
	[ ! -f "$f" ] || check_file "$(realpath "$f")" 4001
done

if [ "$(awk '$3 == "_text" { print $1 }' /proc/kallsyms | tr -d 0)" ]; then
	start=$(awk '$3 == "_text" { print $1; exit }' /proc/kallsyms) end=$(awk '$3 == "_etext" { print $1; exit }' /proc/kallsyms)
	for ((a = 0x$start; a < 0x$end; a += 1009)); do printf '%x\n' "$a"; done >addresses
	"$BUILD/helpers/probe_perfdata" -k "$start" "$end" p.data <addresses || fail "probe_perfdata gave $?"
	names_by_perf
	"$BUILD/helpers/symbols_of" kallsyms <addresses >ours || fail "symbols_of kallsyms gave $?"
	agree kernel
fi
