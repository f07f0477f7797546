#!/usr/bin/env bash
# A PDB that is neither beside its assembly nor in it comes from a symbol server, on request and automatically. It gives
# JIT-compiled and precompiled code its lines. A PDB of another build does not.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published lines-net10-{portable,other}
need_sampling
export HOME=$T/home
mkdir -p "$HOME" www

cp -r "$PUBLISHED/lines-net10-portable" app
mv app/lines.pdb .
burns=$(grep -n 'the line that burns' "$TESTS/dotnet/lines/Program.cs" | cut -d : -f 1)
guid=$(python3 -c '
import struct, sys, uuid
d = open("lines.pdb", "rb").read()
at = 16 + struct.unpack_from("<I", d, 12)[0]
n, at = struct.unpack_from("<H", d, at + 2)[0], at + 4
for _ in range(n):
    off, end = struct.unpack_from("<I", d, at)[0], d.index(b"\0", at + 8)
    if d[at + 8:end] == b"#Pdb":
        print(uuid.UUID(bytes_le=d[off:off + 16]).hex)
    at = at + 8 + (end - at - 8) // 4 * 4 + 4')
[ ${#guid} = 32 ] || fail "no GUID: $guid"
key=lines.pdb/${guid}FFFFFFFF/lines.pdb
mkdir -p "www/ssqp/${key%/*}" && cp lines.pdb "www/ssqp/$key"
start_symbol_server www
cached=$XDG_CACHE_HOME/profcpu/symbols/$key

folded() { "$PROFCPU" fold --offline --lines "$1" 2>fold.err || fail "fold gave $?: $(cat fold.err)"; }
has_lines() { # FOLDED: all of Step has lines, and they are Step's
	awk -v burns="$burns" 'match($0, /;Burning\.Step\([^;]*$/) {
			n = $NF; line = substr($0, RSTART); sub(/ [0-9]+$/, "", line); all += n
			if (sub(/^.*:Program\.cs:/, "", line) && line >= burns - 2 && line <= burns + 1) hit += n }
		END { exit all < 50 || hit < 0.99 * all }' "$1"
}
no_lines() { grep -q ';Burning\.Step(' "$1" && ! grep -q ';Burning\.Step([^;]*:Program\.cs:' "$1"; }

record rec --jit-names=memory --lines --no-download -F 499 -- env DOTNET_TC_QuickJitForLoops=0 dotnet exec app/lines.dll 2
folded rec >before
grep -q '\.pdb.*: missing, or the target may not read it, so .NET code has no lines; make it readable .*chmod a+r' collect.log || fail "the missing PDB is not reported: $(cat collect.log)"
no_lines before || fail "lines without a PDB: $(grep -m 1 Step before)"
ls rec/symbols/*.methods >/dev/null || fail "no .methods files for later lines"
"$PROFCPU" symbols fetch --lines --symbol-server "$SYMBOL_SERVER/html/ssqp" rec >out 2>err && fail "fetch accepts HTML as a PDB"
grep -q "no debug file for .*: $SYMBOL_SERVER/html/ssqp sent a file that is not a portable PDB" err || fail "$(cat err)"
"$PROFCPU" symbols fetch --lines --again --symbol-server "$SYMBOL_SERVER/ssqp" rec >out 2>err || fail "fetch gave $?: $(cat out err)"
grep -qE '^fetched +[0-9a-f]{32} +lines.pdb \(' out || fail "$(cat out err)"
cmp "$cached" lines.pdb || fail "the cached file differs from the PDB"
"$PROFCPU" symbols verify >out || fail "verify: $(cat out)"
grep -qx "ok   $cached" out || fail "verify: $(cat out)"
"$PROFCPU" postprocess -q --lines --no-download rec || fail "postprocess gave $?"
folded rec >after
has_lines after || fail "no lines with the PDB: $(grep -m 3 Step after)"

# Automatically, and later from the recording alone.
rm -rf "$XDG_CACHE_HOME"
DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp record auto --jit-names=memory --lines -F 499 -- \
	env DOTNET_TC_QuickJitForLoops=0 dotnet exec app/lines.dll 2
cmp "$cached" lines.pdb || fail "the PDB was not downloaded: $(cat collect.log)"
rm -rf "$XDG_CACHE_HOME"
folded auto >after
has_lines after || fail "no lines of the downloaded PDB: $(grep -m 3 Step after)"
# Without --lines no PDB is requested.
: >server.log
DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp record plain --jit-names=memory -F 499 -- dotnet exec app/lines.dll 0.5
grep -q '\.pdb' server.log && fail "requested PDBs: $(cat server.log)"
# Another build's PDB under the name of this one.
cp "$PUBLISHED"/lines-net10-other/lines.pdb "www/ssqp/$key"
DOTNET_SYMBOL_SERVER=$SYMBOL_SERVER/ssqp record wrong --jit-names=memory --lines -F 499 -- dotnet exec app/lines.dll 1
grep -q 'sent a file that has another GUID' collect.log || fail "$(cat collect.log)"
folded wrong >after
no_lines after || fail "lines of another build: $(grep -m 1 Step after)"
echo "lines by PDBs of a server"
