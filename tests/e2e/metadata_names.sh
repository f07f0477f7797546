#!/usr/bin/env bash
# Names from assemblies' metadata are the text that the runtime writes into its perf map: each method of a web API of which nothing
# is precompiled, so that thousands are compiled and written.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_dotnet web-api

start_web_api DOTNET_PerfMapEnabled=3 DOTNET_ReadyToRun=0 "DOTNET_PerfMapJitDumpPath=$T"
# The first answer takes long, as all that it needs is compiled before.
wait_for 120 "$BUILD/examples/load" -d 2 "$API_PORT" /cpu /wait || fail "the web API gave no answer"
stop "$API_PID"

# What it had loaded: its own assembly and the shared frameworks of the version that it ran on.
framework=$(dirname "$(readlink -f "$(command -v dotnet)")")/shared
version=$(dotnet --list-runtimes | awk '$1 == "Microsoft.AspNetCore.App" && $2 ~ /^10\./ { v = $2 } END { print v }')
"$BUILD/helpers/metadata_names" "$T/perf-$API_PID.map" "$ROOT/build/examples/web-api/web-api.dll" \
	"$framework"/Microsoft.*.App/"$version"/*.dll >"$T/compared" || fail "names differ: $(cat "$T/compared")"
tail -n 1 "$T/compared"
read -r _ same _ generic _ differ _ _ _ elsewhere < <(tail -n 1 "$T/compared")
[ "$same" -ge 5000 ] || fail "only $same methods were compared"
[ "$generic" -ge 1000 ] || fail "only $generic of them are generic types'"
[ "$differ" = 0 ] || fail "$differ names differ"
[ "$elsewhere" = 0 ] || fail "$elsewhere methods are of assemblies that were not looked into"
