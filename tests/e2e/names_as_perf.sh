#!/usr/bin/env bash
# Every frame of a machine-wide recording has the name, offset and module that perf script prints, line by line; and the names
# that a recording keeps give the same text again where nothing may be looked up.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need perf gcc g++ gzip sort
need_sampling
need_root

# perf looks for copies of images there: only the files themselves are to be read.
# -B: perf 6.1 stops at build ids of more than 20 bytes, which other programs here may have.
export HOME=$T
dump=$BUILD/helpers/script_dump

cat >work.cc <<'END'
#include <algorithm>
#include <string>
#include <vector>
namespace work {
namespace {
struct by_length {
	bool operator()(const std::string &a, const std::string &b) const { return a.size() < b.size(); }
};
}
template <class T> __attribute__((noinline)) T sum(const std::vector<T> &v)
{
	T s = 0;
	for (T x : v)
		s = s * 31 + x;
	return s;
}
}
int main()
{
	std::vector<std::string> v;
	std::vector<long> n(1000000, 3);
	long s = 0;
	for (int i = 0; i < 100000; i++)
		v.push_back(std::string(i * 7919 % 61, 'x'));
	for (int i = 0; i < 40; i++) {
		std::sort(v.begin(), v.end(), work::by_length());
		std::reverse(v.begin(), v.end());
		s += work::sum(n);
	}
	return s == 1;
}
END
g++ -O2 -fno-omit-frame-pointer -o cxx work.cc || fail "the C++ program does not build"
g++ -O2 -static -o cxx-static work.cc || fail "the static program does not build"
g++ -O2 -Wl,--build-id=none -s -o cxx-stripped work.cc || fail "the stripped program does not build"
cat >load.sh <<'END'
./cxx & ./cxx-static & ./cxx-stripped &
gcc -O2 -E -x c++ work.cc >work.ii & seq 200000 | sort -R | gzip -c >work.gz &
for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; x=$(expr $i + 1); done
wait
END

# With single blanks, and without the names where perf is known to have none: JIT code of .NET, and the vdso when it is not
# in perf's cache.
squeezed() { # FILE
	sed -E 's/[ \t]+/ /g; s/ $//; s/^( [0-9a-f]+) .* (\(\[vdso\]\)|\(\/memfd:doublemapper.*)$/\1 - \2/' "$1"
}
perf record -q -B -F 999 -a -g -o perf.data -- bash load.sh >rec.txt 2>&1 || fail "perf record does not run: $(tail -n 3 rec.txt)"
perf script -i perf.data -F comm,pid,tid,time,period,ip,sym,symoff,dso 2>/dev/null </dev/null >perf.txt
mkdir symbols
"$dump" perf.data store symbols >ours.txt 2>said.txt || fail "perf.data is not read: $(tail -n 1 said.txt)"
squeezed perf.txt >perf.squeezed
squeezed ours.txt >ours.squeezed
samples=$(grep -c '^$' perf.squeezed)
[ "$samples" -ge 200 ] || fail "only $samples samples"
if ! cmp -s perf.squeezed ours.squeezed; then
	bad=$(diff perf.squeezed ours.squeezed | grep -c '^<')
	diff perf.squeezed ours.squeezed | head -n 20
	# Other processes of the machine may replace their files between both readings.
	[ "$bad" -le $(($(wc -l <perf.squeezed) / 1000)) ] || fail "$bad lines are not what perf script prints"
fi
"$dump" perf.data offline symbols >again.txt 2>said-again.txt || fail "the kept names are not read"
cmp ours.txt again.txt || fail "names differ without this machine's files"
cmp said.txt said-again.txt || fail "the audit differs without this machine's files"
"$dump" perf.data full store symbols >ours-full.txt 2>/dev/null
"$dump" perf.data full offline symbols >again-full.txt 2>/dev/null
cmp ours-full.txt again-full.txt || fail "full names differ without this machine's files"
grep -q 'work::sum<long>' ours-full.txt || fail "the template's name is missing"
grep -q '\[cxx-stripped+0x[0-9a-f]*\]' ours-full.txt || fail "functions of the stripped program are not placed"
echo "$samples samples as perf script prints them"
