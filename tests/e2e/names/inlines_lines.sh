#!/usr/bin/env bash
# Inlined functions and lines of a C++ library equal those of eu-addr2line -fi. Compares every sampled address, and every third
# address of its functions, for all shapes of DWARF. A recording contains them.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need g++ clang++ eu-addr2line llvm-symbolizer llvm-dwp dwz objcopy readelf strip nm awk sed

cat >shape.h <<'EOF'
#include <algorithm>
#include <cmath>
#include <vector>
namespace shape {
template <class T> struct Grid {
	std::vector<T> cells;
	explicit Grid(size_t n) : cells(n) {}
	inline T at(size_t i) const { return cells[i % cells.size()]; }
	inline void put(size_t i, T x) { cells[i % cells.size()] = mix(at(i), x); }
	static inline T mix(T a, T b) { return (T)std::sqrt((double)(a * a + b * b)) + 1; }
};
double blur(Grid<double> &g, int rounds);
long tally(Grid<long> &g, int rounds);
}
EOF
cat >blur.cc <<'EOF'
#include "shape.h"
namespace shape {
static inline double near(const Grid<double> &g, size_t i) { return Grid<double>::mix(g.at(i), g.at(i + 1)); }
double blur(Grid<double> &g, int rounds)
{
	auto step = [&g](size_t i) { g.put(i, near(g, i) / 3); };
	for (int r = 0; r < rounds; r++)
		for (size_t i = 0; i < g.cells.size(); i++)
			step(i);
	return g.at(7);
}
}
EOF
cat >tally.cc <<'EOF'
#include "shape.h"
namespace shape {
static bool less(long a, long b) { return a % 97 < b % 97; }
long tally(Grid<long> &g, int rounds)
{
	long sum = 0;
	for (int r = 0; r < rounds; r++) {
		g.put((size_t)r, r);
		std::sort(g.cells.begin(), g.cells.end(), less);
		for (long x : g.cells)
			sum += Grid<long>::mix(x, r);
	}
	return sum;
}
}
EOF
cat >main.cc <<'EOF'
#include "shape.h"
#include <cstdlib>
int main(int, char **argv)
{
	shape::Grid<double> a(1000);
	shape::Grid<long> b(1000);
	double sum = 0;
	for (int i = 0; i < atoi(argv[1]); i++)
		sum += shape::blur(a, 40) + (double)shape::tally(b, 12);
	return sum == 42;
}
EOF

# eu FILE: prints eu-addr2line's results for the addresses on stdin, "ADDR FUNCTION FILE:LINE ..." on one line each.
eu() {
	sed 's/^/0x/' | eu-addr2line -a -f -i -s -e "$1" | awk '
		/^0x[0-9a-f]+$/ { if (line) print line; sub(/^0x0*/, ""); line = $0; named = 0; next }
		!named { sub(/ inlined at .*/, ""); line = line " " $0; named = 1; next }
		{ sub(/ \(.*/, ""); split($0, p, ":"); file = p[1]; sub(/.*\//, "", file); line = line " " file ":" p[2]; named = 0 }
		END { print line }'
}
# llvm FILE: the same with LLVM.
llvm() {
	sed 's/^/0x/' | llvm-symbolizer --obj="$1" --no-demangle --inlines -s --output-style=LLVM -a | awk '
		/^0x[0-9a-f]+$/ { sub(/^0x0*/, ""); line = $0; named = 0; next }
		/^$/ { print line; next }
		!named { line = line " " $0; named = 1; next }
		{ split($0, p, ":"); line = line " " p[1] ":" p[2]; named = 0 }'
}
# same NAME FILE ADDRESSES [RESULTS]: checks that ours equal eu-addr2line's, or the earlier RESULTS. If they differ, LLVM
# must agree with us, because elfutils 0.188 contradicts itself. It prints "mix inlined at shape.h:9", and then a wrong
# function around it or none. For code in several ranges of DWARF 4, and for most code of clang, it prints only the
# outermost function.
same() {
	local name=$1 file=$2 addresses=$3 all differ
	if [ -n "${4:-}" ]; then
		cp "$4" "$name.theirs"
	else
		eu "$file" <"$addresses" >"$name.theirs"
	fi
	"$BUILD/helpers/symbols_of" -m inlines "$file" <"$addresses" >"$name.ours" || fail "$name: symbols_of gave $?"
	all=$(wc -l <"$addresses")
	[ "$(wc -l <"$name.theirs")" = "$all" ] || fail "$name: eu-addr2line lacks addresses"
	paste -d '\n' "$name.theirs" "$name.ours" | awk 'NR % 2 { theirs = $0; next } theirs != $0' >"$name.differ"
	differ=$(wc -l <"$name.differ")
	if [ "$differ" -gt 0 ] && [ -n "${4:-}" ]; then
		diff "$name.theirs" "$name.ours" | head
		fail "$name: differs from the earlier results"
	elif [ "$differ" -gt 0 ]; then
		cut -d ' ' -f 1 "$name.differ" | llvm "$file" >"$name.llvm"
		cmp "$name.differ" "$name.llvm" || {
			diff "$name.llvm" "$name.differ" | head
			fail "$name: differs from eu-addr2line and from LLVM"
		}
	fi
	case $name in
	dwarf5 | zlib | sampled) [ $((differ * 10)) -le "$all" ] || fail "$name: $differ of $all differ from eu-addr2line" ;;
	esac
	echo "$name: $all addresses, $differ of them agree only with LLVM"
	head -n 2 "$name.differ" | sed 's/^/    ours: /'
}
# addresses FILE: every third address of our functions in it.
addresses() {
	nm -S "$1" | awk 'NF == 4 && $3 ~ /[tTW]/ && /shape/ { print $1, $2 }' | sort -u | while read -r at bytes; do
		for ((a = 0x$at; a < 0x$at + 0x$bytes; a += 3)); do printf '%x\n' "$a"; done
	done | sort -u
}
# build NAME COMPILER FLAG...: NAME/libshape.so
build() {
	local name=$1 compiler=$2
	shift 2
	mkdir "$name" && cp shape.h blur.cc tally.cc "$name"
	(cd "$name" && "$compiler" -O2 -fPIC -fno-omit-frame-pointer "$@" -c blur.cc tally.cc &&
		"$compiler" -shared "$@" -o libshape.so blur.o tally.o) || fail "$name does not build"
	addresses "$name/libshape.so" >"$name/addresses"
	[ "$(wc -l <"$name/addresses")" -gt 200 ] || fail "$name: too few addresses"
}

build dwarf5 g++ -gdwarf-5
build dwarf4 g++ -gdwarf-4
build dwarf2 g++ -gdwarf-2
build types g++ -g -fdebug-types-section
build clang clang++ -gdwarf-5 -gdwarf-aranges # without these eu-addr2line finds no unit
build clang4 clang++ -gdwarf-4 -gdwarf-aranges
build zlib g++ -g -gz=zlib
for name in dwarf5 dwarf4 dwarf2 clang clang4 zlib; do
	same "$name" "$T/$name/libshape.so" "$name/addresses"
done
same types "$T/types/libshape.so" types/addresses dwarf5.ours # eu-addr2line fails with type units
grep -q 'mix.*near.*blur' dwarf5.ours || fail "nothing was inlined over several levels"
for how in zstd zlib-gnu; do
	objcopy --compress-debug-sections=$how dwarf5/libshape.so dwarf5/$how.so || fail "objcopy cannot compress by $how"
	same "$how" "$T/dwarf5/$how.so" dwarf5/addresses dwarf5.ours
done

# Split DWARF: beside its objects, in a package, and without both, where only lines remain.
build split g++ -gdwarf-5 -gsplit-dwarf
build split4 g++ -gdwarf-4 -gsplit-dwarf
build clangsplit clang++ -gdwarf-5 -gsplit-dwarf -gdwarf-aranges
build clangsplit4 clang++ -gdwarf-4 -gsplit-dwarf -gdwarf-aranges
while read -r name whole; do # the same code, in which the other tools find almost nothing
	same "$name" "$T/$name/libshape.so" "$name/addresses" "$whole.ours"
done <<<$'split dwarf5\nsplit4 dwarf4\nclangsplit clang\nclangsplit4 clang4'
for name in split split4; do
	(cd "$name" && llvm-dwp -e libshape.so -o libshape.so.dwp) || fail "llvm-dwp of $name"
	rm "$name"/*.dwo
	same "$name-package" "$T/$name/libshape.so" "$name/addresses" "$name.theirs"
	rm "$name/libshape.so.dwp"
	"$BUILD/helpers/symbols_of" -m inlines "$T/$name/libshape.so" <"$name/addresses" >alone
	grep -qE '^[0-9a-f]+ \?\? shape.h:[0-9]+$' alone || fail "$name: no lines without its .dwo: $(head -n 1 alone)"
done

# DWARF entries that two files share, and a separate debug file.
{ cp dwarf4/libshape.so one.so && cp dwarf4/libshape.so two.so && dwz -m shared.debug one.so two.so; } || fail "dwz"
readelf -S one.so | grep -q gnu_debugaltlink || fail "dwz made no shared file"
same dwz "$T/one.so" dwarf4/addresses dwarf4.ours
{ objcopy --only-keep-debug dwarf5/libshape.so lib.debug && strip -o lib.so dwarf5/libshape.so &&
	objcopy --add-gnu-debuglink=lib.debug lib.so; } || fail "objcopy"
same debuglink "$T/lib.so" dwarf5/addresses dwarf5.ours

# A recording: every sampled address, and the same frames on another machine.
g++ -O2 -g -fno-omit-frame-pointer -o app main.cc dwarf5/libshape.so -Wl,-rpath,"$T/dwarf5" || fail "app"
record rec --inlines --lines -F 999 -- ./app 2000
awk '/^image / { on = /libshape/ } on && $1 == "symbol" { start = $2 } on && $1 == "of" { for (i = 2; i <= NF; i++) print start, $i }' \
	rec/symbols/names | while read -r start off; do printf '%x\n' $((0x$start + 0x$off)); done | sort -u >sampled
[ "$(wc -l <sampled)" -gt 40 ] || fail "too few addresses were sampled: $(wc -l <sampled)"
same sampled "$T/dwarf5/libshape.so" sampled
"$PROFCPU" fold --inlines --lines rec >here || fail "fold gave $?"
grep -q 'shape::blur:blur.cc:[0-9]*;.*near_\[i\]:blur.cc:[0-9]*;shape::Grid<double>::at_\[i\]:shape.h:[0-9]* ' here ||
	fail "no inlined frames: $(grep -m 3 blur here)"
"$PROFCPU" fold --names perf --inlines rec >inlines || fail "fold gave $?"
grep -q ';shape::blur;.*near;shape::Grid<double>::mix' inlines || fail "no inlined frames in perf's form: $(grep -m 3 blur inlines)"
grep -qE '^\s+[0-9a-f]+ shape::Grid<double>::mix\+0x[0-9a-f]+ \(inlined\)$' rec/perf_script.out || fail "no inlined frames in perf_script.out"
# Without the options the frames do not change.
"$PROFCPU" fold rec >plain || fail "fold gave $?"
grep -q 'Grid<double>::mix' plain && fail "inlined functions without --inlines"
for file in dwarf5/libshape.so app; do mv "$file" "$file.gone"; done
mv rec moved
for options in "" "--inline --srcline" "--lines" "--inlines --lines" "--names perf --inlines"; do
	# shellcheck disable=SC2086
	"$PROFCPU" fold --offline $options moved >there 2>err || fail "fold --offline $options gave $?"
	[ ! -s err ] || fail "fold --offline $options printed $(cat err)"
	case $options in
	*inline\ * | *inlines\ *) cmp here there || fail "frames differ on another machine" ;;
	*perf*) cmp inlines there || fail "inlined functions differ on another machine" ;;
	esac
done

# A recording without lines: fold reports it, and postprocess adds them.
for file in dwarf5/libshape.so app; do mv "$file.gone" "$file"; done
record late -F 999 -- ./app 300
"$PROFCPU" fold --offline --inlines late >out 2>err || fail "fold --offline --inlines gave $?"
grep -q 'postprocess --inlines --lines' err || fail "missing lines are not reported: $(cat err)"
[ "$(wc -l <err)" = 1 ] || fail "more than one message: $(cat err)"
"$PROFCPU" postprocess -q --inlines --lines late || fail "postprocess gave $?"
"$PROFCPU" fold --offline --inlines late >out 2>err || fail "fold --offline --inlines gave $?"
[ ! -s err ] || fail "postprocess did not add lines: $(cat err)"
grep -q 'near_\[i\];shape' out || fail "postprocess did not add inlined functions"
# Older recordings, which contain no lines, are still read.
sed -i -e '/^text /d; /^lines/d; /^of /d; /^lineless$/d; 1s/2/1/' late/symbols/names
"$PROFCPU" fold --offline late >old 2>err || fail "an older store: exit $?"
[ ! -s err ] || fail "an older store: $(cat err)"
[ -s old ] || fail "an older store gives no stacks"
sed -i '1s/1/9/' late/symbols/names
"$PROFCPU" fold --offline late 2>err >/dev/null
grep -q 'has an unknown version' err || fail "a newer store: $(cat err)"
