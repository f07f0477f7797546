#!/usr/bin/env bash
# prof.tar.gz in a root without the program, its libraries and the kernel's symbols gives byte-identical results.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need tar ldd
need_root
need_sampling
need_mounts

# A copy of the program that is removed afterwards, so that nothing can be looked up in it.
mkdir "$T/app"
cp "$BUILD/examples/shares" "$T/app/shares"
start shares "$T/app/shares" -t 2 30
record "$T/rec" -p "$STARTED" -F 499 -d 3
stop "$STARTED"
rm -r "$T/app"
[ -s "$T/rec/prof.tar.gz" ] || fail "no prof.tar.gz"

another_root
cp "$T/rec/prof.tar.gz" "$R/tmp/prof.tar.gz"
mkdir "$R/tmp/rec"

# From the archive itself, and from its content without derived files.
tar -xzf "$T/rec/prof.tar.gz" -C "$R/tmp/rec" --strip-components=1
rm -f "$R"/tmp/rec/{flamegraph.svg,folded_stacks.out,perf_script.out,report.json,prof.tar.gz}
there postprocess /tmp/rec >"$T/there.log" 2>&1 || fail "postprocess gave $?: $(cat "$T/there.log")"
diff <(grep -A 99 '^samples' "$T/collect.log" | grep -v '^written') <(grep -A 99 '^samples' "$T/there.log" | grep -v '^written') ||
	fail "the report differs in another root"
for file in folded_stacks.out perf_script.out flamegraph.svg report.json; do
	cmp "$T/rec/$file" "$R/tmp/rec/$file" || fail "$file differs in another root"
done

# An archive without the names of some files: any machine without these files gives the same result.
"$PROFCPU" collect -q --record-only -F 999 -o "$T/dd" -- dd if=/dev/zero of=/dev/null bs=1M count=3000 2>/dev/null || fail "collect: exit $?"
unshare -m sh -c 'mount --bind /dev/null /proc/kallsyms && "$0" postprocess -q "$1"' "$PROFCPU" "$T/dd" 2>"$T/err" || fail "exit $?: $(cat "$T/err")"
grep -q 'cannot read .*/proc/kallsyms' "$T/err" || fail "without the kernel's names: $(cat "$T/err")"
cp "$T/dd/prof.tar.gz" "$R/tmp/dd.tar.gz"
there fold /tmp/dd.tar.gz >"$T/there.folded" || fail "fold of an archive without all names gave $?"
cmp "$T/dd/folded_stacks.out" "$T/there.folded" || { diff "$T/dd/folded_stacks.out" "$T/there.folded" | head -20 | cut -c1-300; fail "stacks of an archive without all names differ in another root"; }
"$PROFCPU" postprocess -q "$T/dd" 2>"$T/err" || fail "exit $?: $(cat "$T/err")"
[ ! -s "$T/err" ] || fail "with the kernel's names: $(cat "$T/err")"
at_least "$(share_of "$T/dd/folded_stacks.out" 'read_zero')" 50 || fail "the kernel's names are lost: $(cat "$T/dd/folded_stacks.out")"

for options in '' '--names perf' --pid --tid --kernel --addrs --all; do
	# shellcheck disable=SC2086 # no option at all is one case
	"$PROFCPU" fold $options "$T/rec" >"$T/here.folded" || fail "fold $options here gave $?"
	# shellcheck disable=SC2086
	there fold $options /tmp/rec >"$T/there.folded" || fail "fold $options there gave $?"
	cmp "$T/here.folded" "$T/there.folded" || fail "fold $options differs in another root"
	# shellcheck disable=SC2086
	there fold $options /tmp/prof.tar.gz >"$T/there.folded" || fail "fold $options of the archive gave $?"
	cmp "$T/here.folded" "$T/there.folded" || fail "fold $options of the archive differs"
done
grep -q ';main;run_paths;work;alpha;alpha_leaf ' "$T/here.folded" || fail "no names: $(head -n 3 "$T/here.folded")"
