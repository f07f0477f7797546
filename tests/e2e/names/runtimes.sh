#!/usr/bin/env bash
# The remedy for unnamed JIT-compiled code is that of the process's runtime, and it works when followed.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need node awk

# advice DIR: the line of the report about unnamed JIT-compiled code.
advice() { grep -E '^(unnamed)? +[<>]?[0-9.]+ %  JIT-compiled code of process' collect.log || fail "no advice: $(cat collect.log)"; }
# says PATTERN: the advice holds it, and nothing about another runtime.
says() {
	advice | grep -qE "$1" || fail "advice: $(advice)"
	advice | grep -qE "jit-names|\.NET${2:+|$2}" && fail "advice about another runtime: $(advice)"
	return 0
}
# share_of DIR FUNCTION: percentage of the samples in it.
share_of() { awk -v f="$2" '{ all += $NF } index($0, f) { hit += $NF } END { print all ? 100 * hit / all : 0 }' "$1/folded_stacks.out"; }

cat >hot.js <<'JS'
function knownHot(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
for (let s = 0;;) s += knownHot(100000);
JS
start node node hot.js
wait_for_cpu "$STARTED" 700
record plain -F 499 -d 1 -p "$STARTED"
stop "$STARTED"
says 'node --perf-basic-prof' 'jcmd'
option=$(advice | grep -o 'node --[a-z-]*' | head -1)
# shellcheck disable=SC2086 # a command and its option
start node $option hot.js
T_FILES+=("/tmp/perf-$STARTED.map")
wait_for_cpu "$STARTED" 700
record advised -F 499 -d 1 -p "$STARTED"
stop "$STARTED"
at_least "$(share_of advised 'knownHot')" 60 || fail "knownHot has $(share_of advised knownHot) % with $option: $(cat collect.log)"

need java javac jcmd # of version 17 or later
cat >Hot.java <<'J'
public class Hot {
	static int knownHot(int n) { int x = 0; for (int i = 0; i < n; i++) x = (x * 31 + i) % 1000003; return x; }
	public static void main(String[] args) {
		long end = System.nanoTime() + Integer.parseInt(args[0]) * 1000000000L;
		int s = 0;
		while (System.nanoTime() < end) s += knownHot(100000);
		System.out.println(s);
	}
}
J
javac Hot.java 2>javac.log || fail "javac: $(cat javac.log)"
start java java -cp . Hot 100
java=$STARTED
T_FILES+=("/tmp/perf-$java.map")
wait_for_cpu "$java" 1500
record late -F 499 -d 1 -p "$java"
advice >java.advice
says "jcmd $java Compiler.perfmap. before it ends, then .profcpu postprocess late" node
at_least 10 "$(share_of late knownHot)" || fail "java wrote names without being told to"
eval "$(grep -oE 'jcmd [0-9]+ Compiler.perfmap' java.advice)" >jcmd.log 2>&1 || fail "jcmd: $(cat jcmd.log)"
"$PROFCPU" postprocess --no-download late >collect.log 2>&1 || fail "postprocess: $(cat collect.log)"
at_least "$(share_of late knownHot)" 60 || fail "knownHot has $(share_of late knownHot) % after jcmd: $(cat collect.log)"
stop "$java"

# The other half of the advice: options for a program that ends early.
mapfile -t options < <(grep -oE -e '-XX:[+]\w+' java.advice)
[ ${#options[@]} = 3 ] || fail "options: ${options[*]}"
record options -F 499 -- java "${options[@]}" -cp . Hot 2
T_FILES+=("/tmp/perf-$(sed -n 's/^image jit - 0 0 0 0 \([0-9]*\) .*/\1/p' options/symbols/names | head -1).map")
at_least "$(share_of options knownHot)" 60 || fail "knownHot has $(share_of options knownHot) % with ${options[*]}: $(cat collect.log)"
at_least "$(share_of options 'JavaMain;')" 60 || fail "stacks are not whole with ${options[*]}: $(cat collect.log)"
