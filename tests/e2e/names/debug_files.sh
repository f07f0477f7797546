#!/usr/bin/env bash
# A stripped library gets the names of the unstripped one from its debug file. The file is beside it, in a cache (profcpu, .NET's
# debuggers, debuginfod, perf), or compressed in it. A damaged file, or one of another build, gives no names.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need gcc objcopy strip readelf nm xz
export HOME=$T/home
mkdir -p "$HOME" lib
unset XDG_CACHE_HOME DEBUGINFOD_CACHE_PATH

cat >parts.c <<'C'
#define F(n) __attribute__((noinline)) static int hidden_##n(int x) { for (volatile int i = 0; i < x; i++) x ^= n; return x + n; } \
	int shown_##n(int x) { return hidden_##n(x) * 3; }
F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8)
C
gcc -O1 -g -shared -fPIC -Wl,--build-id -o whole.so parts.c || fail "the library does not build"
cp whole.so lib/parts.so
objcopy --only-keep-debug whole.so parts.dbg && strip lib/parts.so || fail "cannot strip"
id=$(readelf -n whole.so | sed -n 's/.*Build ID: //p')
[ ${#id} = 40 ] || fail "no build id"

# Every fourth byte of .text, as file offsets.
read -r vaddr off size < <(readelf -SW whole.so | sed -n 's/.* \.text *PROGBITS *\([0-9a-f]*\) \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 \2 \3/p')
[ -n "$size" ] && [ "$vaddr" ] || fail "no .text"
for ((a = 0x$off; a < 0x$off + 0x$size; a += 4)); do printf '%x\n' "$a"; done >addresses
names() { "$BUILD/helpers/symbols_of" image "$1" <addresses || fail "symbols_of $1 gave $?"; }
names "$T/whole.so" >wanted
grep -q ' hidden_8+0x' wanted || fail "the whole library has no names"
names "$T/lib/parts.so" >stripped
grep -q hidden_ stripped && fail "the stripped library has names of hidden functions"
grep -q ' shown_8+0x' stripped || fail "the stripped library has lost its exports"

# at PLACE: checks that a debug file at PLACE gives the names of the unstripped library, and that a bad file gives none.
at() {
	mkdir -p "$(dirname "$1")"
	cp parts.dbg "$1"
	names "$T/lib/parts.so" >got
	diff wanted got >difference || fail "with $1: $(head -n 5 difference)"
	# A file that is cut, no ELF file, or of another build counts as absent.
	sed 's/hidden_/masked_/' parts.c >other.c
	gcc -O1 -g -shared -fPIC -Wl,--build-id -o other.so other.c && objcopy --only-keep-debug other.so "$1"
	names "$T/lib/parts.so" >got
	diff stripped got >difference || fail "with another build's $1: $(head -n 5 difference)"
	head -c "$(($(stat -c %s parts.dbg) / 2))" parts.dbg >"$1"
	names "$T/lib/parts.so" >got
	diff stripped got >difference || fail "with a cut $1: $(head -n 5 difference)"
	echo '<html>not found</html>' >"$1"
	names "$T/lib/parts.so" >got
	diff stripped got >difference || fail "with text in $1: $(head -n 5 difference)"
	rm "$1"
	echo "$1: named"
}
at lib/parts.so.dbg
at lib/parts.so.debug
at "$HOME/.cache/profcpu/symbols/_.debug/elf-buildid-sym-$id/_.debug"
at "$HOME/.dotnet/symbolcache/_.debug/elf-buildid-sym-$id/_.debug"
at "$HOME/.cache/debuginfod_client/$id/debuginfo"
at "$HOME/.debug/.build-id/${id:0:2}/${id:2}/debug"
export XDG_CACHE_HOME=$T/xdg
at "$T/xdg/profcpu/symbols/_.debug/elf-buildid-sym-$id/_.debug"
at "$T/xdg/debuginfod_client/$id/debuginfo"

# MiniDebugInfo as in distributions: the symbols that .dynsym lacks, compressed.
nm -D whole.so --format=posix --defined-only | cut -d ' ' -f 1 | sort >exports
nm whole.so --format=posix --defined-only | awk '$2 ~ /^[tT]$/ { print $1 }' | sort >functions
comm -13 exports functions >kept
grep -q '^hidden_8$' kept || fail "hidden_8 is not among the symbols to keep"
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=kept parts.dbg mini || fail "objcopy gave $?"
xz -k mini
objcopy --add-section .gnu_debugdata=mini.xz lib/parts.so lib/mini.so || fail "objcopy gave $?"
names "$T/lib/mini.so" >got
diff wanted got >difference || fail "with MiniDebugInfo: $(head -n 5 difference)"
echo "MiniDebugInfo: named"
# Damaged MiniDebugInfo gives no names, and a bomb is not unpacked to its end.
head -c "$(($(stat -c %s mini.xz) - 9))" mini.xz >cut.xz
objcopy --add-section .gnu_debugdata=cut.xz lib/parts.so lib/mini.so
names "$T/lib/mini.so" >got
diff stripped got >difference || fail "with cut MiniDebugInfo: $(head -n 5 difference)"
head -c 700M /dev/zero | xz -1 >bomb.xz
objcopy --add-section .gnu_debugdata=bomb.xz lib/parts.so lib/mini.so
"$BUILD/helpers/peak_kib" "$BUILD/helpers/symbols_of" image "$T/lib/mini.so" <addresses >got 2>peak || fail "with a bomb: exit $?: $(cat peak)"
diff stripped got >difference || fail "with a bomb: $(head -n 5 difference)"
[ "$(tail -n 1 peak)" -lt 400000 ] || fail "a bomb took $(tail -n 1 peak) KiB"

# Symbols in the file itself win over those of a debug file, as in perf.
cp whole.so lib/parts.so && cp other.so lib/parts.so.dbg
names "$T/lib/parts.so" >got
diff wanted got >difference || fail "a whole library: $(head -n 5 difference)"
