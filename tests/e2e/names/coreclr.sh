#!/usr/bin/env bash
# A recording of the web API places the functions of a real libcoreclr.so, which has no symbols. With a debug file of its
# build id on a symbol server, each function gets its name from that file.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need objcopy readelf awk
need_sampling
need_dotnet web-api
export HOME=$T/home DOTNET_CLI_HOME=$T/home
mkdir -p "$HOME" www

# Its debug file has a function coreclr_ADDR for each function in its unwind table.
start_web_api
lib=$(sed -n 's/.* \(\/.*\/libcoreclr\.so\)$/\1/p' "/proc/$API_PID/maps" | head -n 1)
[ -n "$lib" ] || fail "no libcoreclr.so is mapped"
readelf -SW "$lib" | grep -q ' \.symtab ' && skip "needs a libcoreclr.so without symbols"
text=$(readelf -SW "$lib" | sed -n 's/.* \.text *PROGBITS *0*\([0-9a-f]*\) .*/\1/p')
readelf -wF "$lib" 2>/dev/null | sed -n 's/.*pc=0*\([0-9a-f]*\)\.\..*/\1/p' | sort -u | while read -r addr; do
	printf -- '--add-symbol=coreclr_%s=.text:0x%x,local,function\n' "$addr" $((0x$addr - 0x$text))
done >symbols
[ "$(wc -l <symbols)" -gt 5000 ] || fail "only $(wc -l <symbols) functions"
objcopy --only-keep-debug "$lib" empty.dbg && objcopy @symbols empty.dbg coreclr.dbg || fail "objcopy gave $?"
start_symbol_server www
serve www "$lib" coreclr.dbg

start_load 60
sleep 1
record rec -p "$API_PID" -d 5 -F 999
stop "$LOAD_PID"
# leaves RECORDING: the weight of each leaf function of libcoreclr.so, by its address.
leaves() {
	"$PROFCPU" fold "$1" 2>/dev/null | sed -n 's/^.*;\([^;]*\) \([0-9]*\)$/\1 \2/p' |
		sed -n 's/^\[libcoreclr\.so+0x\([0-9a-f]*\)\] /\1 /p; s/^coreclr_\([0-9a-f]*\) /\1 /p' |
		awk '{ w[$1] += $2 } END { for (a in w) printf "%s %.0f\n", a, w[a] }' | sort
}
frames() { "$PROFCPU" fold "$1" 2>/dev/null | tr ';' '\n' | sed 's/ [0-9]*$//' | sort -u; }
frames rec >before
leaves rec >placed
grep -q '^\[libcoreclr\.so+0x' before || fail "no function of libcoreclr.so is placed"
[ "$(grep -c '^\[libcoreclr\.so+0x' before)" -ge 20 ] || fail "only $(grep -c '^\[libcoreclr\.so+0x' before) functions were sampled"
[ "$(wc -l <placed)" -ge 5 ] || fail "only $(wc -l <placed) functions are leaves"

DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp "$PROFCPU" postprocess rec >report 2>err || fail "postprocess: exit $?: $(cat err)"
grep -q '^profcpu: downloaded 1 debug file, ' err || fail "not downloaded: $(cat err)"
frames rec >after
leaves rec >named
grep '^\[libcoreclr\.so' after && fail "functions still have no names, see above"
diff placed named >difference || fail "leaf functions differ from the placed ones: $(head -n 5 difference)"
diff <(sed -n 's/^\[libcoreclr\.so+0x\(.*\)\]$/\1/p' before) <(sed -n 's/^coreclr_//p' after) >difference ||
	fail "functions differ from the placed ones: $(head -n 5 difference)"
# Nothing else has changed.
diff <(grep -v '^\[libcoreclr\.so' before) <(grep -v '^coreclr_' after) >difference || fail "other frames changed: $(head -n 5 difference)"
awk '$1 == "runtime"' report
echo "$(grep -c ^coreclr_ after) functions of libcoreclr.so are named"
