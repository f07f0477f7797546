#!/usr/bin/env bash
# JIT code that is read from the memory of a .NET runtime is what the runtime itself lists in a perf map that it writes at that moment: each
# method's start, size and name (tier aside). Of a program with all shapes of managed code, as services are delivered and configured.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet web-api wide-net

# compare NAME LEAST PID: the program PID against its runtime, at least LEAST methods. Where a method's name is not of ASCII letters the
# runtime writes damaged lines: those and the one behind them are passed over. What is not in memory and not in the list that the runtime
# writes after that either was freed before the program was stopped.
compare() {
	local name=$1 least=$2 pid=$3 same wrong missing freed damaged
	"$BUILD/helpers/clr_methods" -m "$T/$name.map" "$pid" >"$T/$name.memory" 2>"$T/$name.log" || fail "$name: $(cat "$T/$name.log")"
	LC_ALL=C awk -v out="$T/$name.differ" '
		function plain(name) {
			sub(/^[^ ]* [^ ]* /, "", name)
			sub(/\[(Unknown|MinOptJitted|Optimized|QuickJitted|OptimizedTier1|OptimizedTier1OSR|InstrumentedTier|InstrumentedTierOptimized)\]$/, "", name)
			return name
		}
		FILENAME == ARGV[1] { size[$1] = $2; text[$1] = plain($0); next }
		FILENAME == ARGV[2] { after[$1] = after[$1] "\n" $2 " " plain($0) "\n"; next }
		!/^0x[0-9a-f]+ [0-9a-f]+ [ -~]+$/ { damaged++; next }
		/^0x[0-9a-f]+ [0-9a-f]+ stub/ { next }
		{
			last[$1] = $2 " " plain($0) # what is written later took the place of what was there
		}
		END {
			for (addr in last) {
				bytes = last[addr]; sub(/ .*/, "", bytes)
				name = last[addr]; sub(/^[^ ]* /, "", name)
				if (!(addr in text) && !index(after[addr], "\n" last[addr] "\n")) { freed++; continue }
				if (!(addr in text)) { missing++; kind = "missing" }
				else if (text[addr] != name) { wrong++; kind = "another name: " text[addr] }
				else if (size[addr] != bytes) { wrong++; kind = "another size: " size[addr] }
				else { same++; continue }
				print addr, bytes, name ": " kind >out
			}
			print same + 0, wrong + 0, missing + 0, freed + 0, damaged + 0
		}' "$T/$name.memory" "$T/$name.map.after" "$T/$name.map" >"$T/$name.counts"
	[ "$(wc -l <"$T/$name.map.after")" -ge "$least" ] || fail "$name: the runtime did not list its methods once more"
	read -r same wrong missing freed damaged <"$T/$name.counts"
	echo "$name: $same methods are the same, $wrong others, $missing missing, $freed freed; $damaged damaged lines; $(cat "$T/$name.log")"
	[ ! -s "$T/$name.differ" ] || head -n 20 "$T/$name.differ"
	[ "$wrong" = 0 ] || fail "$name: $wrong methods have another name or size"
	at_least "$(awk -v s="$same" -v m="$missing" 'BEGIN { print 100 * s / (s + m) }')" 99.9 || fail "$name: $missing are missing"
	[ "$same" -ge "$least" ] || fail "$name: only $same methods were compared"
}

# compare_app NAME LEAST COMMAND...: a program that tells "working pid" or "listening on" once it has begun.
compare_app() {
	local name=$1 least=$2
	shift 2
	start "$name-app" env "$@"
	wait_for 60 grep -qE '^(working|listening on) .*pid' "$T/$name-app.log" || fail "$name did not start: $(cat "$T/$name-app.log")"
	sleep 4 # of work
	compare "$name" "$least" "$STARTED"
	stop "$STARTED"
}

# While it unloads collectible assemblies a runtime that is asked to list its methods crashes now and then.
quietly=(--except Collect)
wide=$ROOT/build/examples/wide-net/wide-net.dll
compare_app shared 1000 dotnet "$wide" 60 "${quietly[@]}"
for setting in ${CLR_MEMORY_SETTINGS:-DOTNET_EnableWriteXorExecute=0}; do
	compare_app "${setting%=*}" 1000 "$setting" dotnet "$wide" 60 "${quietly[@]}"
done
compare_app all_compiled 3000 DOTNET_ReadyToRun=0 DOTNET_TieredPGO=0 dotnet "$ROOT/build/examples/web-api/web-api.dll"
grep -q 'dynamicClass::IL_STUB_PInvoke' "$T/shared.memory" || fail "no stub in IL"
grep -q 'dynamicClass::Dynamic' "$T/shared.memory" || fail "no dynamic method"
grep -q 'stub ReportStubBlock<' "$T/shared.memory" || fail "no stubs"
grep -q '<JIT_CopiedWriteBarriers>' "$T/shared.memory" || fail "no write barriers"
grep -q '::計算する(int32)$' "$T/shared.memory" || fail "no name in another script"

# Many methods: what it costs, and that a second scan tells nothing of what stayed.
start many dotnet "$wide" 120 --threads 0 --methods 50000
wait_for 90 grep -q '^working' "$T/many.log" || fail "the program with many methods did not start: $(cat "$T/many.log")"
"$BUILD/helpers/clr_methods" -n 3 -i 100 "$STARTED" >"$T/many.memory" 2>"$T/many.scans" || fail "$(cat "$T/many.scans")"
cat "$T/many.scans"
stop "$STARTED"
[ "$(grep -c '^0x' "$T/many.memory")" -ge 50000 ] || fail "fewer methods than were made"
[ "$(sort "$T/many.memory" | uniq -d | wc -l)" = 0 ] || fail "what stayed was told twice"

# As programs are delivered (the long test has more ways, which take the compiler minutes), and runtimes whose layout we know.
publish() { "$TESTS/dotnet/publish" "$1" >"$T/publish.log" 2>&1; }
for kind in ${CLR_MEMORY_KINDS-single}; do
	publish "wide-net-net10-$kind" || skip "cannot publish: $(cat "$T/publish.log")"
	compare_app "$kind" 500 "$ROOT/build/publish/wide-net-net10-$kind/wide-net" 60 "${quietly[@]}"
done
for name in ${CLR_MEMORY_OLDER:-wide-net-net8 wide-net-net9}; do
	publish "$name" || skip "cannot publish: $(cat "$T/publish.log")"
	compare_app "$name" 500 "$ROOT/build/publish/$name/wide-net" 60 "${quietly[@]}"
done
