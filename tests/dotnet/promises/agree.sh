# shellcheck shell=bash
# A method has the same name from each source: perf map, jitdump, rundown, metadata, the runtime's memory.

# The same method has the same name in a perf map and in a rundown: start, size, text and tier of at least 5,000 methods.
# A dynamic method has no metadata. Only the map names the types that its signature contains by address, and their outer types.
# Leaves $T/map.
promise_rundown_map() {
	"$BUILD/helpers/jit_names" rundown "$PID" rundown || fail "no rundown"
	"$BUILD/helpers/jit_names" map "$PID" map </dev/null || fail "no perf map"
	awk -v least=5000 '
		function text(line) { sub(/^[^ ]+ [^ ]+ /, "", line); return line }
		function dynamic(line) {
			gsub(/[^ ,(<]+ \/\* MT: [0-9a-fx]+ \*\//, "BY-ADDRESS", line)
			gsub(/[^ ,(<]+\//, "", line)
			return line
		}
		function method(line) { sub(/\[[A-Za-z0-9]*\]$/, "", line); return line }
		FNR == NR { if ($3 != "stub") { size[$1] = $2; map[$1] = text($0) } next }
		!($1 in map) { alone++; if (alone < 5) print "not in the map:", $0; next }
		{
			both++
			sizes += size[$1] == $2
			ours = method(text($0)); theirs = method(map[$1])
			tiers += substr(text($0), length(ours) + 1) == substr(map[$1], length(theirs) + 1)
			if (ours == theirs) { same++; next }
			if (ours ~ / dynamicClass::/ && dynamic(ours) == dynamic(theirs)) { nearly++; next }
			if (other++ < 5) print "rundown:", text($0) "\nmap:    ", map[$1]
		}
		END {
			printf "%d in both: %d sizes, %d names, %d names of dynamic methods except types in their arguments, %d tiers alike; %d not in the map\n",
				both, sizes, same, nearly, tiers, alone
			exit !(both >= least && sizes == both && same + nearly == both && nearly <= both / 100 && !other && tiers >= 0.999 * both && alone <= both / 1000)
		}' map rundown || fail "names differ"
}

# metadata: names from assemblies' metadata equal the runtime's text in that map. At least 5,000 methods are compared, 1,000 of
# them of generic types. No method belongs to an assembly that was not read.
promise_metadata() {
	local framework version same generic differ not_read
	# The loaded assemblies: its own, and the shared frameworks of the version that it ran on.
	framework=$(dirname "$(readlink -f "$(command -v dotnet)")")/shared
	version=$(dotnet --list-runtimes | awk '$1 == "Microsoft.AspNetCore.App" && $2 ~ /^10\./ { v = $2 } END { print v }')
	"$BUILD/helpers/metadata_names" map "$APP/web-api.dll" "$framework"/Microsoft.*.App/"$version"/*.dll >compared ||
		fail "names differ: $(cat compared)"
	tail -n 1 compared
	read -r _ same _ generic _ differ _ _ _ not_read < <(tail -n 1 compared)
	[ "$same" -ge 5000 ] || fail "only $same methods were compared"
	[ "$generic" -ge 1000 ] || fail "only $generic of them belong to generic types"
	[ "$differ" = 0 ] || fail "$differ names differ"
	[ "$not_read" = 0 ] || fail "$not_read methods belong to assemblies that were not read"
}

# sources [memory]: perf map, rundown and the runtime's memory have the names of the jitdump, for at least 5,000 methods. The
# runtime can damage its perf map; the other sources then still have the name.
promise_sources() {
	local more=()
	wait_for 300 grep -q '^quiet' wide.log || fail "the program does not become quiet: $(cat wide.log)"
	wait_for 180 promises_is_idle # until no method waits for a higher tier
	"$BUILD/helpers/jit_names" rundown "$PID" rundown >out 2>&1 || fail "rundown: $(cat out)"
	if [ "${1:-}" = memory ]; then
		"$BUILD/helpers/clr_methods" "$PID" >memory 2>out || fail "memory: $(cat out)"
		more=(--memory memory)
	fi
	# Before the end of the process, which compiles more methods.
	cp "jit-$PID.dump" jitdump && cp "perf-$PID.map" map || fail "the runtime wrote no jitdump or map"
	"$TESTS/dotnet/same_names" "$BUILD/helpers/canonical" jitdump --map map --rundown rundown "${more[@]}" ||
		fail "names differ, or there are too few"
}

# memory_map LEAST: code read from the runtime's memory equals the perf map that the runtime writes at that moment. Start, size
# and name (without tier) agree for at least LEAST methods; at most 0.1 % are missing. The runtime writes damaged lines for names
# that are not ASCII: skip each of those and the line behind it. Code that is neither in memory nor in the runtime's next list
# was freed before the program was stopped. Leaves $T/memory.
promise_memory_map() {
	local least=$1 same wrong missing freed damaged
	"$BUILD/helpers/clr_methods" -m stopped "$PID" >memory 2>scan || fail "$(cat scan)"
	LC_ALL=C awk -v out=differ '
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
			last[$1] = $2 " " plain($0) # a later line replaces an earlier one
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
		}' memory stopped.after stopped >counts
	[ "$(wc -l <stopped.after)" -ge "$least" ] || fail "the runtime's second list of methods is too short"
	read -r same wrong missing freed damaged <counts
	echo "$same methods are the same, $wrong differ, $missing missing, $freed freed; $damaged damaged lines; $(cat scan)"
	[ ! -s differ ] || head -n 20 differ
	[ "$wrong" = 0 ] || fail "$wrong methods have another name or size"
	at_least "$(awk -v s="$same" -v m="$missing" 'BEGIN { print 100 * s / (s + m) }')" 99.9 || fail "$missing are missing"
	[ "$same" -ge "$least" ] || fail "only $same methods were compared"
}
# The list of memory_map has all kinds of code. Perhaps the program's dynamic methods were just freed; then later ones count.
promise_memory_kinds() {
	has_dynamic() { grep -q 'dynamicClass::Dynamic' memory || { "$BUILD/helpers/clr_methods" "$PID" >>memory; false; }; }
	grep -q 'dynamicClass::IL_STUB_PInvoke' memory || fail "no stub in IL"
	wait_for 10 has_dynamic || fail "no dynamic method"
	grep -q 'stub ReportStubBlock<' memory || fail "no stubs"
	grep -q '<JIT_CopiedWriteBarriers>' memory || fail "no write barriers"
	grep -q '::計算する(int32)$' memory || fail "no name in another script"
}
# memory_scans LEAST: a second scan of at least LEAST methods reports no unchanged method. Prints the cost of the scans.
promise_memory_scans() {
	"$BUILD/helpers/clr_methods" -n 3 -i 100 "$PID" >memory 2>scans || fail "$(cat scans)"
	cat scans
	[ "$(grep -c '^0x' memory)" -ge "$1" ] || fail "fewer methods than the program compiled"
	[ "$(sort memory | uniq -d | wc -l)" = 0 ] || fail "unchanged methods were reported twice"
}
