#!/usr/bin/env bash
# Files of a target are small on disk but large in memory. In a control group of 64 MiB, profcpu records it, names it and
# folds the recording, and takes at most 48 MiB.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need gcc objcopy setpriv
# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"
OWN_MIB=48 FILES=30
chmod 755 .

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
__asm__(".text\n.globl spin\n.type spin,@function\nspin:\npush %rbp\nsub $4096,%rsp\nxor %ebp,%ebp\nmov $20000000,%eax\n"
	"1: dec %eax\njnz 1b\nadd $4096,%rsp\npop %rbp\nret\n.size spin,.-spin\n");
C
gcc -O0 -o main main.c -ldl || fail "the program does not build"
gcc -shared -fPIC -Wl,--build-id=sha1 -o spin.so spin.c || fail "the library does not build"

# attack NAME LIBRARY...: records the program with the libraries, names the recording and folds it.
attack() {
	local target name=$1
	shift
	start "$name" setpriv --reuid=65534 --regid=65534 --clear-groups ./main "$@"
	target=$STARTED
	sleep 1
	kill -0 "$target" || fail "$name: the program ended: $(cat "$name.log")"
	measure "$PROFCPU" collect -q -p "$target" -F 299 -d 6 -o "$name.rec"
	report "$name: collect"
	[ "$(report_number "$name.rec" samples)" -gt 100 ] || fail "$name: too few samples"
	measure "$PROFCPU" postprocess -q --offline "$name.rec"
	report "$name: postprocess"
	measure "$PROFCPU" fold "$name.rec" >"$name.folded"
	report "$name: fold"
	stop "$target"
}
report() {
	echo "$1: $MIB MiB"
	[ "$STATUS" = 0 ] || fail "$1: exit $STATUS: $(cat err)"
	[ "$MIB" -le "$OWN_MIB" ] || fail "$1 took $MIB MiB of $LIMIT_MIB: $(cat err)"
}

# 200 MiB of call frame information, packed to 200 KiB.
head -c $((200 << 20)) /dev/zero >zeros
objcopy --add-section .debug_frame=zeros spin.so unpacked.so && objcopy --compress-debug-sections=zlib unpacked.so packed.so ||
	fail "objcopy does not add a packed section"
rm zeros unpacked.so
libraries=()
for ((i = 0; i < FILES; i++)); do
	cp packed.so "packed$i.so"
	libraries+=("./packed$i.so")
done
attack packed "${libraries[@]}"
[ "$(report_number packed.rec file_size)" -gt 0 ] || fail "no stack lacks rules of such files: $(cat packed.rec/report.json)"
