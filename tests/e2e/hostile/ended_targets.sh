#!/usr/bin/env bash
# Processes replace their own library by a link to a file that they may not read, and end. profcpu names them after that:
# later, or before it pinned them. It must not read the file, because it follows no link then. Programs keep their names.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need gcc setpriv nm mount objcopy

mkdir private && chmod 700 private
user=12345
mkdir theirs && mount -t tmpfs none theirs 2>/dev/null || skip "needs the right to mount"
T_MOUNTED+=("$T/theirs") # inodes of another file system say nothing
chown $user theirs
for name in public secret; do # the same code at the same place
	cat >lib.c <<C
long ${name}_name(long n) { long x = 1; for (volatile long i = 0; i < n; i++) x = x * 31 + i; return x; }
C
	gcc -O1 -g0 -shared -fPIC -Wl,--build-id=none -o $name.so lib.c || fail "gcc"
done
mv secret.so private && chmod 600 private/secret.so && chmod 644 public.so
cat >replaces.c <<'C'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
/* replaces DIR LIBRARY OTHER OFFSET STOP LOOPS: until the file STOP exists, children map copies of the library, put links to OTHER in their place, and run. */
int main(int argc, char **argv)
{
	char library[65536], path[300], link[310];
	int n = 0, fd = argc == 7 ? open(argv[2], O_RDONLY) : -1;
	ssize_t len = read(fd, library, sizeof(library));

	while (len > 0 && access(argv[5], F_OK)) {
		snprintf(path, sizeof(path), "%s/x%d.so", argv[1], n++);
		snprintf(link, sizeof(link), "%s.link", path);
		if (!fork()) {
			fd = open(path, O_CREAT | O_RDWR | O_TRUNC, 0755);
			if (write(fd, library, (size_t)len) != len)
				return 1;
			char *code = mmap(NULL, (size_t)len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

			if (symlink(argv[3], link) || rename(link, path))
				return 1;
			((long (*)(long))(void *)(code + strtol(argv[4], NULL, 16)))(atol(argv[6]));
			_exit(0);
		}
		wait(NULL);
	}
	return len <= 0;
}
C
gcc -O1 -o replaces replaces.c || fail "gcc"
offset=$(nm -D public.so | awk '/public_name/ { print $1 }')
runs() { # OTHER LOOPS: as another user
	rm -f stop
	start replaces setpriv --reuid=$user --regid=$user --clear-groups "$T/replaces" "$T/theirs" "$T/public.so" "$1" "$offset" "$T/stop" "$2"
	sleep 0.3
}
later() { # NAME OTHER
	runs "$2" 100000000
	"$PROFCPU" collect -q --record-only -p "$STARTED" -F 499 -d 2 -o "$1" >log 2>&1 || fail "collect: $(cat log)"
	touch stop
	wait "$STARTED"
	"$PROFCPU" postprocess -q "$1" >log 2>&1 || fail "postprocess: $(cat log)"
	rm -f theirs/*
}
echo "post-processing later"
later hidden.later "$T/private/secret.so"

echo "processes that end before they are pinned"
runs "$T/private/secret.so" 2000000
"$PROFCPU" collect -q -a -F 999 -d 2 -o hidden.short >log 2>&1 || fail "collect -a: $(cat log)"
touch stop
wait "$STARTED"
for dir in hidden.later hidden.short; do
	grep -q 'x[0-9]*\.so' "$dir/folded_stacks.out" || fail "$dir: no sample of the library: $(head -n 3 "$dir/folded_stacks.out")"
	grep -rlE secret_name "$dir" && fail "$dir has names of a file that the target may not read"
done

echo "a debug link"
gcc -O1 -Wl,--build-id=none -x c -o whole - <<'C' || fail "gcc"
#include <time.h>
__attribute__((noinline)) static long linked_name(long n) { long x = 1; for (volatile long i = 0; i < n; i++) x = x * 31 + i; return x; }
int main(void) { time_t end = time(0) + 2; long x = 0; while (time(0) < end) x += linked_name(100000); return x == 1; }
C
objcopy --only-keep-debug whole x.debug && objcopy -S --add-gnu-debuglink=x.debug whole theirs/x || fail "objcopy"
mkdir public && cp x.debug private && cp x.debug public && chmod 600 private/x.debug || fail "cp"
"$PROFCPU" collect -q --record-only -F 499 -o linked -- setpriv --reuid=$user --regid=$user --clear-groups "$T/theirs/x" >log 2>&1 ||
	fail "collect: $(cat log)"
cp -r linked unknown && rm unknown/symbols/users
for dir in linked unknown; do
	for place in private public; do
		ln -sf "$T/$place/x.debug" theirs/x.debug && chown -h $user theirs/x.debug && cp -r $dir $dir.$place || fail "ln"
		"$PROFCPU" postprocess -q $dir.$place >log 2>&1 || fail "postprocess: $(cat log)"
		grep -rl linked_name $dir.$place && fail "$dir: a link to a $place debug file was followed"
	done
	# The same file without a link shows that it would be read.
	rm theirs/x.debug && cp public/x.debug theirs && cp -r $dir $dir.own || fail "cp"
	"$PROFCPU" postprocess -q $dir.own >log 2>&1 || fail "postprocess: $(cat log)"
	at_least "$(share_of $dir.own/folded_stacks.out ';linked_name ')" 80 || fail "no names of a readable debug file"
done

echo "root's private program"
cat >program.c <<'C'
#include <time.h>
__attribute__((noinline)) static long private_name(long n) { long x = 1; for (volatile long i = 0; i < n; i++) x = x * 31 + i; return x; }
int main(void) { time_t end = time(0) + 2; long x = 0; while (time(0) < end) x += private_name(100000); return x == 1; }
C
gcc -O1 -Wl,--build-id -o private/program program.c || fail "gcc"
"$PROFCPU" collect -q --record-only -F 499 -o own -- private/program >log 2>&1 || fail "collect: $(cat log)"
"$PROFCPU" postprocess -q own || fail "postprocess"
at_least "$(share_of own/folded_stacks.out ';private_name ')" 80 || fail "root's own program lost its names: $(head -n 5 own/folded_stacks.out)"

echo "the debug file of a command of root"
objcopy --only-keep-debug private/program private/program.debug &&
	objcopy -S --add-gnu-debuglink=private/program.debug private/program private/stripped && chmod 600 private/program.debug || fail "objcopy"
"$PROFCPU" collect -q -F 499 -o command -- private/stripped >log 2>&1 || fail "collect: $(cat log)"
at_least "$(share_of command/folded_stacks.out ';private_name ')" 80 || fail "the command lost its debug file: $(head -n 3 command/folded_stacks.out)"
# Its parent has waited for this one, so its rights at its end are not known.
"$PROFCPU" collect -q -F 499 -o grandchild -- sh -c 'private/stripped; :' >log 2>&1 || fail "collect: $(cat log)"
grep -q private_name grandchild/folded_stacks.out && fail "a private debug file was read after the end of a process"

echo "a program that root runs in the home of a user"
mkdir home && gcc -O1 -Wl,--build-id -o home/program program.c && chmod 750 home && chown -R $user home || fail "gcc"
"$PROFCPU" collect -q -F 499 -o home.own -- home/program >log 2>&1 || fail "collect: $(cat log)"
at_least "$(share_of home.own/folded_stacks.out ';private_name ')" 90 || fail "it has no names: $(head -n 3 home.own/folded_stacks.out)"
exit 0
