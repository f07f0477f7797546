#!/usr/bin/env bash
# Files of a target are small on disk but large in memory. In a control group of 64 MiB, profcpu records it, names it and
# folds the recording, and takes at most 48 MiB.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need gcc objcopy readelf setpriv strip xz
# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"
OWN_MIB=48 FILES=12

# Calls spin() of each library for a moment, again and again.
cat >main.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
	void (*spin[64])(void);
	int n = argc - 1;
	for (int i = 0; i < n; i++) {
		void *library = dlopen(argv[i + 1], RTLD_NOW);
		if (!library || !(spin[i] = (void (*)(void))dlsym(library, "spin")))
			return puts(dlerror());
	}
	for (;;)
		for (int i = 0; i < n; i++)
			spin[i]();
}
C
# Nothing but call frame information leads to its caller: the frame pointer is 0, and the stack has no return address nearby.
cat >spin.c <<'C'
__asm__(".text\n.globl spin\n.type spin,@function\nspin:\ncall work\nret\n.size spin,.-spin\n"
	".type work,@function\nwork:\npush %rbp\nsub $4096,%rsp\nxor %ebp,%ebp\nmov $20000000,%eax\n"
	"1: dec %eax\njnz 1b\nadd $4096,%rsp\npop %rbp\nret\n.size work,.-work\n");
C
gcc -O0 -o main main.c -ldl || fail "the program does not build"
gcc -shared -fPIC -Wl,--build-id=sha1 -o spin.so spin.c || fail "the library does not build"

# attack NAME: records the program with copies of NAME.so, names the recording and folds it.
attack() {
	local target i name=$1 libraries=()
	for ((i = 0; i < FILES; i++)); do
		cp --sparse=always "$name.so" "$name$i.so"
		libraries+=("./$name$i.so")
	done
	start "$name" setpriv --reuid=65534 --regid=65534 --clear-groups ./main "${libraries[@]}"
	target=$STARTED
	sleep 1
	kill -0 "$target" || fail "$name: the program ended: $(cat "$name.log")"
	measure "$PROFCPU" collect -q -p "$target" -F 299 -d 4 -o "$name.rec"
	report "$name: collect"
	[ "$(report_number "$name.rec" samples)" -gt 20 ] || fail "$name: too few samples"
	measure "$PROFCPU" postprocess -q --no-download "$name.rec"
	report "$name: postprocess"
	measure "$PROFCPU" fold --lines "$name.rec" >"$name.folded"
	report "$name: fold"
	stop "$target"
}
report() {
	echo "$1: $MIB MiB"
	[ "$STATUS" = 0 ] || fail "$1: exit $STATUS: $(cat err)"
	[ "$MIB" -le "$OWN_MIB" ] || fail "$1 took $MIB MiB of $LIMIT_MIB: $(cat err)"
}

# 30 MiB of call frame information, packed to 30 KiB.
head -c $((30 << 20)) /dev/zero >zeros
objcopy --add-section .debug_frame=zeros spin.so unpacked.so && objcopy --compress-debug-sections=zlib unpacked.so packed.so ||
	fail "objcopy does not add a packed section"
rm zeros unpacked.so
attack packed
[ "$(report_number packed.rec file_size)" -gt 0 ] || fail "no stack lacks rules of such files: $(cat packed.rec/report.json)"
rm packed*.so

# 24 MiB of names of symbols, as a hole. With more memory, they are read.
le64() { # NUMBER
	local i
	# shellcheck disable=SC2059 # it is made here
	for ((i = 0; i < 64; i += 8)); do
		printf "\\x$(printf %02x $(($1 >> i & 255)))"
	done
}
put() { dd of=sparse.so bs=1 seek="$1" conv=notrunc status=none; } # OFFSET
cp spin.so sparse.so
chmod u+w sparse.so
read -r section at bytes < <(readelf -SW sparse.so | sed -n 's/^ *\[ *\([0-9]*\)\] \.strtab *STRTAB *[0-9a-f]* \([0-9a-f]*\) \([0-9a-f]*\) .*/\1 0x\2 0x\3/p')
headers=$(readelf -hW sparse.so | sed -n 's/.*Start of section headers: *\([0-9]*\).*/\1/p')
[ -n "$bytes" ] && [ -n "$headers" ] || fail "the library has no names: $(readelf -SW sparse.so)"
dd if=spin.so bs=1 skip=$((at)) count=$((bytes)) status=none | put $((1 << 20))
le64 $((1 << 20)) | put $((headers + 64 * section + 24))
le64 $((24 << 20)) | put $((headers + 64 * section + 32))
truncate -s $((32 << 20)) sparse.so
attack sparse
grep -q 'its symbols need more memory than is left for symbols' sparse.rec/report.json ||
	fail "the report does not say why names are missing: $(cat sparse.rec/report.json)"
! grep -q ';work ' sparse.folded || fail "the names of symbols were read in spite of the limit"
"$PROFCPU" postprocess -q --no-download sparse.rec 2>err || fail "postprocess with more memory: exit $?: $(cat err)"
grep -q ';work ' sparse.rec/folded_stacks.out || fail "with more memory, names are still missing: $(head -n 3 sparse.rec/folded_stacks.out)"
rm sparse*.so

# Packed symbols (MiniDebugInfo) of 55 MiB. Their file is a library with symbols.
head -c $((55 << 20)) /dev/zero >zeros
objcopy --add-section .pad=zeros spin.so padded.so && xz -9 -c padded.so >padded.xz && strip -o stripped.so spin.so &&
	objcopy --add-section .gnu_debugdata=padded.xz stripped.so mini.so || fail "objcopy does not add packed symbols"
rm zeros padded.so
attack mini
rm mini*.so stripped.so

# A line table of 8 million rows: 8 MB in the file, 128 MiB in memory.
cat >lines.s <<'S'
	.section .debug_abbrev,"",@progbits
	.byte 1,0x11,0,0x11,1,0x12,7,0x10,0x17,0,0,0 # a unit: low_pc, high_pc, stmt_list
	.section .debug_info,"",@progbits
	.long 2f-1f
1:	.value 5
	.byte 1,8
	.long 0
	.byte 1
	.quad spin,4096
	.long 0
2:	.section .debug_line,"",@progbits
	.long 4f-3f
3:	.value 5
	.byte 8,0
	.long 10
	.byte 1,1,1,1,1,1, 0,0,0,0 # each opcode is a row; no files
	.byte 0,9,2
	.quad spin
	.fill 8000000,1,2
	.byte 0,1,1
4:	.section .note.GNU-stack,"",@progbits
S
gcc -shared -fPIC -Wl,--build-id=sha1 -o lines.so spin.c lines.s || fail "the library with lines does not build"
attack lines
grep -q ';work[ :;]' lines.folded || fail "names are missing: $(head -n 3 lines.folded)"
