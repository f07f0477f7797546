#!/usr/bin/env bash
# Targets in another root choose paths at which the host has files that their root lacks: by links in a shared directory,
# or by the path of their program. An earlier process left a perf map. profcpu reads none of these files, now or later.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need_mounts
need gcc objcopy
[ "$(uname -m)" = x86_64 ] || skip "needs x86-64, because the program makes code for it"

umask 022 && mkdir -p host shared own root
mount -t tmpfs none root 2>/dev/null || skip "needs the right to mount"
T_MOUNTED+=("$T/root") # inodes of another file system say nothing
mkdir -p "root$T/"{shared,own} root/tmp
cat >contained.c <<'C'
#define _GNU_SOURCE
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
__attribute__((noinline)) static void debug_name(void (*made)(void)) { for (;;) made(); }
static int enter(const char *top, uid_t user)
{
	char from[4096], to[8192];

	snprintf(from, sizeof(from), "%s/shared", top);
	snprintf(to, sizeof(to), "root%s", from);
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) || mount("root", "root", NULL, MS_BIND, NULL) ||
	       mount(from, to, NULL, MS_BIND, NULL) || chdir("root") || syscall(SYS_pivot_root, ".", ".") || umount2(".", MNT_DETACH) ||
	       chdir("/") || setgroups(0, NULL) || setresgid(user, user, user) || setresuid(user, user, user);
}
/* contained PROGRAM TOP USER: runs PROGRAM in the root TOP/root. Without arguments: runs code that it makes. */
int main(int argc, char **argv)
{
	static const unsigned char code[] = {0xb9, 0, 0, 0, 4, 0xff, 0xc9, 0x75, 0xfc, 0xc3}; /* counts down from 2^26 */

	if (argc == 4)
		return chdir(argv[2]) || enter(argv[2], (uid_t)atoi(argv[3])) || execl(argv[1], argv[1], (char *)NULL);
	void *p = mmap((void *)0x700000000000, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	memcpy(p, code, sizeof(code));
	debug_name((void (*)(void))p);
}
C
gcc -static -O1 -g -Wl,--build-id -o contained contained.c && objcopy --only-keep-debug contained host/debug &&
	objcopy --strip-all contained shared/program && cp shared/program "root$T/own" && cp host/debug own/program.debug || fail "gcc"
echo "700000000000 1000 map_name" >host/map
gcc -static -O1 -Wl,--build-id=none -Ddebug_name=debug_name_of_host -o own/plain contained.c &&
	gcc -static -O1 -Wl,--build-id=none -Ddebug_name=name_of_target -o "root$T/own/plain" contained.c || fail "gcc"

# target USER PROGRAM: starts it; the host has a perf map for its PID.
target() {
	start target "$T/contained" "$T/$2" "$T" "$1"
	T_FILES+=("/tmp/perf-$STARTED.map")
	cp -p host/map "/tmp/perf-$STARTED.map" && chown "$1" "/tmp/perf-$STARTED.map" || fail "cp"
	wait_for_cpu "$STARTED" 300
	[ ! -e "/proc/$STARTED/root$T/host" ] && [ -e "/proc/$STARTED/root$T/shared" ] || fail "the target is not in its root"
}
recorded() { # [NAME]: of the program
	rm -rf now later
	record now -p "$STARTED" -F 499 -d 1
	record later -p "$STARTED" -F 499 -d 1 --record-only
	stop "$STARTED"
	"$PROFCPU" postprocess -q later >log 2>&1 || fail "postprocess: $(cat log)"
	grep -q "^${1-program};" now/folded_stacks.out && grep -q "^${1-program};" later/folded_stacks.out || fail "user $user: no samples"
}
files_of_host_are_hidden() { # [NAME]: of the program
	recorded "$@"
	grep -rlE 'map_name|debug_name' now later && fail "user $user: names of the host's files reached these files"
}
for user in 0 12345; do
	[ $user = 0 ] && chmod 600 host/* own/* || chmod 644 host/* own/*
	echo "user $user: links"
	target $user shared/program
	ln -sf "$T/host/debug" shared/program.debug && ln -sf "$T/host/map" "root/tmp/perf-$STARTED.map" &&
		chown -h "$user" shared/program.debug "root/tmp/perf-$STARTED.map" || fail "ln"
	files_of_host_are_hidden
	echo "user $user: the path of the program"
	target $user own/program
	files_of_host_are_hidden
	if [ $user = 0 ]; then # only private files are hidden then, because the results do not tell the process
		"$PROFCPU" postprocess -q now >log 2>&1 || fail "postprocess: $(cat log)"
		grep -rl debug_name now && fail "the names of a private file reached the results later"
	fi
	echo "user $user: another program of the host at that path"
	target $user own/plain
	files_of_host_are_hidden plain
	grep -q ';name_of_target;' now/folded_stacks.out || fail "the target's own program was not read: $(head -n 3 now/folded_stacks.out)"
	echo "user $user: its own files"
	target $user shared/program
	rm shared/program.debug && cp -p host/debug shared/program.debug && cp -p host/map "root/tmp/perf-$STARTED.map" &&
		chown "$user" shared/program.debug "root/tmp/perf-$STARTED.map" || fail "cp"
	recorded
	grep -q ';debug_name;map_name ' now/folded_stacks.out || fail "the target's own files were not read: $(head -n 3 now/folded_stacks.out)"
done
exit 0
