#!/usr/bin/env bash
# A target has a page of a file in its memory, and the server of that file takes the kernel's request but never answers.
# SIGKILL does not end a process that reads this page. profcpu ends all the same, with everything else recorded, and what
# it wrote to is closed. The same holds for a locked file, and for build ids of files that are exchanged.
# Runs alone: ps and perf wait for such a process too.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need_release # with sanitizers, a thread asks
need python3
[ -w /dev/fuse ] || skip "needs /dev/fuse"
: >no_reads
start busy "$BUILD/examples/shares" 300
BUSY=$STARTED
wait_for_cpu "$BUSY" 300

# serve DIR: a new server, which is $SERVER. It ends by itself, so that nothing waits for ever if this test fails.
serve() {
	mkdir "$1"
	start "server.$1" timeout 150 "$BUILD/helpers/fuse_mount" "$T/$1" "$BUILD/examples/shares" "$T/no_reads"
	SERVER=$STARTED
	T_MOUNTED+=("$T/$1")
	wait_for 10 grep -q mounted "server.$1.log" || fail "no FUSE file system: $(cat "server.$1.log")"
}
# map_page DIR: a target with a page of the file. Its code is anonymous, so profcpu looks at each mapped file to see whether
# it is .NET. Without readahead, the kernel waits for the page itself.
map_page() {
	serve "$1"
	start "target.$1" python3 -c 'import ctypes, mmap, os, sys
page = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
page.madvise(mmap.MADV_RANDOM)
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("554889e5ffc9ebfc"))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()' "$T/$1/program"
	TARGET=$STARTED
	wait_for_cpu "$TARGET" 300
}
# stuck: the PIDs of processes that wait for such a page.
stuck() {
	cat /proc/[0-9]*/stat 2>/dev/null | awk '$2 == "(ask)" && $3 == "D" { print $1 }'
}
# reads_page -p|-a TRY: whether profcpu left a process that waits for the page. Another profcpu may have been first.
reads_page() {
	local target=
	map_page "page$1$2"
	stuck | sort >before
	[ "$1" = -a ] || target=$TARGET
	rm -rf "rec$1"
	# The shell waits until all have closed the pipe.
	# shellcheck disable=SC2086 # a word or none
	out=$(timeout -s KILL 60 "$PROFCPU" collect $1 $target -F 499 -d 2 -o "rec$1" 2>&1) || fail "collect $1 gave $?: $out"
	[ -s "rec$1/folded_stacks.out" ] || fail "collect $1 has no outputs: $out"
	stuck | sort >after
	stop "$TARGET"
	stop "$SERVER"
	comm -13 before after | grep -q .
}
for who in -p -a; do
	for ((i = 0; i < 4; i++)); do
		reads_page "$who" "$i" && break
	done
	[ "$i" -lt 4 ] || fail "collect $who did not read the page: $out"
done
grep -q alpha_leaf rec-a/folded_stacks.out || fail "the other process is not there"
map_page stacks
timeout -s KILL 60 "$PROFCPU" stacks -p "$TARGET" >log 2>&1 || fail "stacks gave $?: $(cat log)"
grep -q '^1 thread, running$' log || fail "stacks lacks the thread that runs: $(cat log)"
stop "$TARGET"
stop "$SERVER"

# A target keeps the lock of the file in whose code it runs: it writes to it from memory that does not come.
for hole in 0 9000000; do
	serve "locked$hole"
	cp "$PROFCPU" library
	truncate -s "+$hole" library
	start locking python3 -c 'import ctypes, mmap, os, sys, threading
page = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE, mmap.PROT_READ)
fd = os.open(sys.argv[2], os.O_RDWR)
code = mmap.mmap(fd, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("554889e5ffc9ebfc"))
threading.Thread(target=lambda: os.pwrite(fd, memoryview(page)[:64], 1 << 20)).start()
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()' "$T/locked$hole/program" library
	LOCKING=$STARTED
	wait_for_cpu "$LOCKING" 200
	status=0
	timeout -s KILL 60 "$PROFCPU" collect -a -q -F 499 -d 1 -o "locked$hole.out" >log 2>&1 || status=$?
	stop "$SERVER"
	stop "$LOCKING"
	[ "$status" = 0 ] || fail "a locked file: collect gave $status: $(cat log)"
done

# A target keeps its /tmp locked: one thread lists it into memory that does not come, another one waits to create a file.
# Then each lookup of a name that the kernel does not know waits, such as of a perf map. The processes that wait for both
# end when the lock does.
serve directory
start directory unshare -m sh -c 'mount --bind "$0" /mnt && mount -t tmpfs none /tmp && cd / && exec python3 -c "$1"' "$T/directory" '
import ctypes, mmap, os, threading, time
page = mmap.mmap(os.open("/mnt/program", os.O_RDONLY), 4096, mmap.MAP_PRIVATE)
os.setresuid(65534, 65534, 65534)
syscall, here = ctypes.CDLL(None).syscall, os.open("/tmp", os.O_RDONLY)
listing = ctypes.c_char.from_buffer(page)
threading.Thread(target=lambda: syscall(217, here, ctypes.byref(listing), 4096)).start() # getdents64
time.sleep(0.3)
threading.Thread(target=lambda: os.open("/tmp/new", os.O_CREAT)).start()
time.sleep(0.3)
print("child", os.fork(), flush=True)
code = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes.fromhex("554889e5ffc9ebfc"))
ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()'
DIRECTORY=$STARTED
wait_for 60 grep -q '^child [1-9]' directory.log || fail "no child: $(cat directory.log)"
CHILD=$(sed -n 's/^child \([1-9][0-9]*\)$/\1/p' directory.log)
wait_for_cpu "$CHILD" 100
timeout -s KILL 60 "$PROFCPU" collect --record-only -q -p "$BUSY,$DIRECTORY,$CHILD" -F 499 -d 1 -o directory.out >log 2>&1 ||
	fail "a locked directory: collect gave $?: $(cat log)"
stuck | sort >before
status=0
timeout -s KILL 60 "$PROFCPU" postprocess directory.out >log 2>&1 || status=$?
stuck | sort >after
stop "$SERVER"
pkill -9 -P "$DIRECTORY"
stop "$DIRECTORY"
comm -13 before after >left
[ "$(wc -l <left)" -ge 2 ] || fail "not two lookups wait: $(cat left log)"
while read -r pid; do
	wait_for 10 [ ! -e "/proc/$pid" ] || fail "process $pid still waits, though the lock is gone"
done <left
[ "$status" = 0 ] || fail "a locked directory: postprocess gave $status: $(cat log)"
grep -q 'lookup of its perf map did not end' log || fail "no lookup met the lock: $(cat log)"
grep -q 'processes lack names' log || fail "the report does not count the process: $(cat log)"
grep -q alpha_leaf directory.out/folded_stacks.out || fail "the other process is not there"

# A target keeps its own directory of /proc locked, or the one of its threads. Then each lookup of a new name there waits.
for place in "" /task; do
	serve "proc$(basename "$place")"
	# In a new mount of /proc, the kernel has no names in memory yet.
	start "proc" unshare -m sh -c 'mount -t proc none /proc && exec python3 -c "$@"' sh 'import ctypes, mmap, os, sys, threading, time
page = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE)
syscall, here = ctypes.CDLL(None).syscall, os.open("/proc/self" + sys.argv[2], os.O_RDONLY)
listing = ctypes.c_char.from_buffer(page)
threading.Thread(target=lambda: syscall(217, here, ctypes.byref(listing), 4096)).start() # getdents64
time.sleep(0.3)
threading.Thread(target=lambda: os.open("/proc/self" + sys.argv[2] + "/new", os.O_CREAT)).start()
time.sleep(0.3)
while True: pass' "$T/proc$(basename "$place")/program" "$place"
	LOCKED=$STARTED
	wait_for_cpu "$LOCKED" 300
	rm -rf proc.out waits.out
	for run in "collect -a -q -F 499 -d 1 -o $T/proc.out" "collect -a -q --off-cpu --record-only -d 1 -o $T/waits.out" ps doctor; do
		status=0
		# shellcheck disable=SC2086 # words
		timeout -s KILL 60 nsenter -m -t "$LOCKED" "$PROFCPU" $run >log 2>&1 || status=$?
		[ "$status" = 0 ] || break
	done
	# The names that this needs may be in the kernel's memory; without them, it is refused.
	alone=0
	timeout -s KILL 60 nsenter -m -t "$LOCKED" \
		"$PROFCPU" collect -p "$LOCKED" -d 1 -o "$T/alone$(basename "$place")" >alone.log 2>&1 || alone=$?
	stop "$SERVER"
	stop "$LOCKED"
	[ "$status" = 0 ] || fail "locked /proc/PID$place: $run gave $status: $(cat log)"
	[ "$alone" = 0 ] || { [ "$alone" = 1 ] && grep -q "process $LOCKED: it waits in execve or for its memory" alone.log; } ||
		fail "locked /proc/PID$place: collect -p gave $alone: $(cat alone.log)"
	grep -q alpha_leaf proc.out/folded_stacks.out || fail "the other process is not there"
done

# A target locks all of /proc during the recording. Then no process can be asked, and the recording still ends.
serve all
start all unshare -m sh -c 'mount -t proc none /proc && exec python3 -c "$@"' sh 'import ctypes, mmap, os, sys, threading, time
page = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE)
syscall, here = ctypes.CDLL(None).syscall, os.open("/proc", os.O_RDONLY)
listing = ctypes.c_char.from_buffer(page)
print("begun", flush=True)
while not os.path.exists(sys.argv[2]): time.sleep(0.05)
threading.Thread(target=lambda: syscall(217, here, ctypes.byref(listing), 4096)).start() # getdents64
time.sleep(0.3)
threading.Thread(target=lambda: os.open("/proc/new", os.O_CREAT)).start()
time.sleep(0.3)
print("locked", flush=True)
while True: time.sleep(1)' "$T/all/program" "$T/lock"
ALL=$STARTED
wait_for 60 grep -q begun all.log || fail "the process did not begin: $(cat all.log)"
start recorder timeout -s KILL 60 nsenter -m -t "$ALL" "$PROFCPU" collect -a --off-cpu -q -F 99 -d 5 -o "$T/all.out"
RECORDER=$STARTED
wait_for 20 [ -s all.out/perf.data ] || fail "no recording: $(cat recorder.log)"
: >lock
wait_for 20 grep -q locked all.log || fail "no lock: $(cat all.log)"
start new sleep 60 # the kernel knows no name of a new process
status=0
wait "$RECORDER" || status=$?
stop "$SERVER"
stop "$ALL"
[ "$status" = 0 ] || fail "locked /proc: collect gave $status: $(cat recorder.log)"
grep -q '^shares' all.out/folded_stacks.out || fail "the other process is not there: $(cat recorder.log)"

# A user other than root folds a text with a path in a locked directory. The output does not wait for the lock.
serve text
mkdir -m 1777 locked_dir
start text python3 -c 'import ctypes, mmap, os, sys, threading, time
page = mmap.mmap(os.open(sys.argv[1], os.O_RDONLY), 4096, mmap.MAP_PRIVATE)
syscall, here = ctypes.CDLL(None).syscall, os.open(sys.argv[2], os.O_RDONLY)
listing = ctypes.c_char.from_buffer(page)
threading.Thread(target=lambda: syscall(217, here, ctypes.byref(listing), 4096)).start() # getdents64
time.sleep(0.3)
threading.Thread(target=lambda: os.open(sys.argv[2] + "/new", os.O_CREAT)).start()
time.sleep(0.3)
print("locked", flush=True)
while True: time.sleep(1)' "$T/text/program" "$T/locked_dir"
TEXT=$STARTED
wait_for 20 grep -q locked text.log || fail "no lock: $(cat text.log)"
printf 'prog 123/123 1.000000: 1 cycles: \n\t    555555551234 foo+0x4 (%s/locked_dir/lib.so)\n\n' "$T" >stack.txt
chmod 755 "$T"
cp "$PROFCPU" profcpu
start fold timeout -s KILL 60 setpriv --reuid 65534 --regid 65534 --clear-groups "$T/profcpu" fold --inline "$T/stack.txt"
FOLD=$STARTED
# Without CAP_SYS_PTRACE a thread of profcpu waits, so the process ends with the lock.
wait_for 20 grep -q '^prog;foo 1$' fold.log || fail "a path in a locked directory: no output: $(cat fold.log)"
stop "$SERVER"
stop "$TEXT"
status=0
wait "$FOLD" || status=$?
[ "$status" = 0 ] || fail "a path in a locked directory: fold gave $status: $(cat fold.log)"

# Files are exchanged while their build ids are read. The target soon waits for the server, too.
for ((i = 0; i < 4; i++)); do
	serve "files$i"
	start flipping python3 -c 'import ctypes, mmap, os, sys
mapped = ctypes.CDLL(None).mmap
mapped.argtypes = [ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_size_t]
fds = [os.open(path, os.O_RDONLY) for path in sys.argv[1:]]
room = mmap.mmap(-1, 60 << 13, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
base = ctypes.addressof(ctypes.c_char.from_buffer(room))
while True:
    for fd in fds:
        for i in range(60):
            mapped(base + (i << 13), 4096, 5, 0x12, fd, 0)' "$T/files$i/program" "$BUILD/examples/shares"
	FLIPPING=$STARTED
	wait_for_cpu "$FLIPPING" 200
	status=0
	timeout -s KILL 60 "$PROFCPU" collect -a -q --record-only -F 499 -d 0.5 -o "flipped$i" >log 2>&1 || status=$?
	stop "$SERVER"
	stop "$FLIPPING"
	[ "$status" = 0 ] || fail "files that change: collect gave $status: $(cat log)"
done
exit 0
