#!/usr/bin/env bash
# Every frame of the test's programs, and of the kernel on the whole machine, has the name, offset and module of perf script,
# line by line. Names stored in a recording give the same text again without any lookup.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need perf gcc g++ gzip sort
need_sampling
need_root

# Keep perf from cached copies of images.
# -B: perf 6.1 stops at build ids of more than 20 bytes, which other programs here may have.
export HOME=$T
dump=$BUILD/helpers/script_dump

cat >work.cc <<'END'
#include <algorithm>
#include <cstdlib>
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
int main(int argc, char **argv)
{
	std::vector<std::string> v;
	std::vector<long> n(1000000, 3);
	long s = 0, rounds = argc > 1 ? atol(argv[1]) : 40;
	for (int i = 0; i < 100000; i++)
		v.push_back(std::string(i * 7919 % 61, 'x'));
	for (long i = 0; i < rounds; i++) {
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
while read -r go <go; do
./cxx & ./cxx-static & ./cxx-stripped &
gcc -O2 -E -x c++ work.cc >work.ii & seq 200000 | sort -R | gzip -c >work.gz &
for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; x=$(expr $i + 1); done
wait
echo ended >end
done
END

# Squeezes blanks, and drops names in the vdso, which perf lacks outside its cache.
squeezed() { # FILE
	sed -E 's/[ \t]+/ /g; s/ $//; s/^( [0-9a-f]+) .* (\(\[vdso\]\))/\1 - \2/' "$1"
}

same_names() { # NAME FILE SAMPLES
	local samples
	perf script -i "$2" -F comm,pid,tid,time,period,ip,sym,symoff,dso 2>perf.err </dev/null >perf.txt ||
		fail "$1: perf script gave $?: $(tail -n 3 perf.err)"
	rm -rf symbols
	mkdir symbols
	"$dump" "$2" store symbols >ours.txt 2>audit.txt || fail "$1: cannot be read: $(tail -n 1 audit.txt)"
	squeezed perf.txt >perf.squeezed
	squeezed ours.txt >ours.squeezed
	samples=$(grep -c '^$' perf.squeezed)
	[ "$samples" -ge "$3" ] || fail "$1: only $samples samples"
	if ! cmp -s perf.squeezed ours.squeezed; then
		diff perf.squeezed ours.squeezed | head -n 20
		fail "$1: $(diff perf.squeezed ours.squeezed | grep -c '^<') lines differ from perf script's"
	fi
	"$dump" "$2" offline symbols >again.txt 2>audit-again.txt || fail "$1: the stored names cannot be read"
	cmp ours.txt again.txt || fail "$1: names differ without this machine's files"
	cmp audit.txt audit-again.txt || fail "$1: the audit differs without this machine's files"
	"$dump" "$2" full store symbols >ours-full.txt 2>/dev/null
	"$dump" "$2" full offline symbols >again-full.txt 2>/dev/null
	cmp ours-full.txt again-full.txt || fail "$1: full names differ without this machine's files"
	echo "$1: $samples samples as perf script prints them"
}

# Record only programs of this test: two start before the recording, the others during it. Other programs may be in another
# root or have replaced files. perf reads the file that has the same path now, profcpu does not.
mkfifo go end
start before ./cxx 100000
before=$STARTED
start load bash load.sh
perf_record own.data -q -B -F 999 -g -p "$before,$STARTED" -- sh -c 'echo >go; read -r end <end'
stop "$before"
same_names "own programs" own.data 200
grep -q 'work::sum<long>' ours-full.txt || fail "the template's name is missing"
grep -q '\[cxx-stripped+0x[0-9a-f]*\]' ours-full.txt || fail "functions of the stripped program are not placed"

# All programs have the same kernel.
perf_record kernel.data -q -B -F 999 -a -e cpu-clock:k -g --kernel-callchains -- sh -c 'head -c 2G /dev/zero | cat >/dev/null'
same_names "kernel, the whole machine" kernel.data 100
