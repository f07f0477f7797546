#!/usr/bin/env bash
# The same method has the same name from the perf map and from a rundown, on .NET 8, 9 and 10: start, size, text and tier of all methods of a
# service without precompiled code. Of a dynamic method, which has no metadata, only the map names the types that its signature holds by
# address, and the types that others are nested in.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need dotnet awk
need_dotnet web-api

# same RUNDOWN MAP: what they say of the addresses that both have.
same() {
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
			printf "%d in both: %d sizes, %d names, %d names of dynamic methods but for types in their arguments, %d tiers alike; %d not in the map\n",
				both, sizes, same, nearly, tiers, alone
			exit !(both >= least && sizes == both && same + nearly == both && nearly <= both / 100 && !other && tiers >= 0.999 * both && alone <= both / 1000)
		}' "$2" "$1"
}

# compare PID NAME
compare() {
	local pid=$1 name=$2
	"$BUILD/helpers/jit_names" rundown "$pid" "$T/$name.rundown" || fail "$name: no rundown"
	"$BUILD/helpers/jit_names" map "$pid" "$T/$name.map" </dev/null || fail "$name: no perf map"
	same "$T/$name.rundown" "$T/$name.map" || fail "$name: names differ"
}

start_web_api DOTNET_ReadyToRun=0
start_load 2 / /cpu /wait
wait "$LOAD_PID"
compare "$API_PID" net10

"$ROOT/tests/dotnet/publish" web-api-net8 web-api-net9 >"$T/publish.log" 2>&1 || skip "needs the .NET 8 and 9 runtimes: $(tail -n 1 "$T/publish.log")"
for version in 8 9; do
	start "net$version" env DOTNET_ReadyToRun=0 "$ROOT/build/publish/web-api-net$version/web-api"
	wait_for 30 grep -q '^listening on' "$T/net$version.log" || fail "it did not start: $(cat "$T/net$version.log")"
	API_PORT=$(sed -n 's/^listening on .*:\([0-9]*\) pid .*/\1/p' "$T/net$version.log")
	service=$STARTED
	start_load 2 / /cpu /wait
	wait "$LOAD_PID"
	compare "$service" "net$version"
	stop "$service"
done
