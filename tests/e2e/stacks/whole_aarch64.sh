#!/usr/bin/env bash
# A recording of AArch64 from elsewhere: stacks of programs that describe their own calls (tests/stacks/known.h). The
# samples are states of the programs under qemu-user (tests/stacks/qemu_states.py).
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need aarch64-linux-gnu-gcc-12 qemu-aarch64-static python3 nm

mkdir bin # programs without a build id, of unknown users: everybody must be able to read them
programs=(plain-O0 plain-gcc plain-pac edges-gcc)
"$TESTS/stacks/build" bin "${programs[@]/%/-aarch64}" >build.log 2>&1 || fail "the programs do not build: $(cat build.log)"
for name in "${programs[@]/%/-aarch64}"; do
	timeout 100 python3 "$TESTS/stacks/qemu_states.py" "$T/bin/$name" "$name.log" "$name.data" 200 >states 2>&1 || fail "$name: $(cat states)"
	"$PROFCPU" postprocess -q --no-download -o rec "$name.data" >out 2>&1 || fail "$name: postprocess: $(cat out)"
	python3 "$TESTS/stacks/check.py" --row "$name" profcpu --min 99.5 --images bin "$name.log" rec/perf_script.out >>rows 2>bad ||
		fail "$name: $(tail -n 1 rows) $(cat bad)"
	grep -q "\"by_libdw\": $(cut -d ' ' -f 1 states)," rec/report.json || fail "$name: libdw did not unwind all samples: $(cat rec/report.json)"
	cp -r rec again && mv "bin/$name" away
	"$PROFCPU" postprocess -q --offline again >out 2>&1 || fail "$name: postprocess without the program: $(cat out)"
	cmp rec/folded_stacks.out again/folded_stacks.out || fail "$name: stacks were not kept"
	mv away "bin/$name"
	rm -r rec again
done
cat rows

# Registers of an architecture that nobody knows are ignored.
sed 's/aarch64/riscv64/g' "$name.data" >other.data
"$PROFCPU" fold other.data >other.fold 2>err || fail "another architecture: $(cat err)"
grep -q ';' other.fold && awk 'NF && gsub(";", ";") > 1 { exit 1 }' other.fold || fail "unwound what it cannot know: $(head -n 3 other.fold)"
