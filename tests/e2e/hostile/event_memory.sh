#!/usr/bin/env bash
# Processes that look like .NET send events without end. In a control group of 64 MiB, the recorder keeps the samples of a
# neighbour, takes at most 48 MiB and says why names are missing. The files of names are limited.
# Runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need_root
need_sampling
need setpriv
need python3
# shellcheck source=tests/e2e/memory_group.sh
. "$TESTS/e2e/memory_group.sh"
OWN_MIB=48

cat >events.py <<'PY'
# usage: events.py PROCESSES MODE: block (one that never ends), stacks, pending (methods without a module), methods
import ctypes, mmap, os, signal, socket, struct, sys, threading
mode = sys.argv[2]
open("libcoreclr.so", "wb").write(os.urandom(65536))
file = open("libcoreclr.so", "rb")
"".encode("utf-16le")  # loads it, which another user may not
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
prctl = ctypes.CDLL(None).prctl
prctl(4, 1)  # PR_SET_DUMPABLE: setuid cleared it
def begin(name): return b'\5\5\1' + struct.pack('<III', 4, 4, len(name)) + name + b'\6'
TRACE = (b'Nettrace' + struct.pack('<I', 20) + b'!FastSerialization.1' +
         begin(b'Trace') + struct.pack('<8HQQIIII', *[0] * 8, 0, 10**9, 8, os.getpid(), 1, 1) + b'\6')
def u16(s): return s.encode('utf-16le') + b'\0\0'
def blob(kind, payload):
    b = struct.pack('<IIQQIIQ', kind, 1, 1, 1, 0, 0, 1000) + b'\0' * 32 + struct.pack('<I', len(payload)) + payload
    return struct.pack('<I', len(b)) + b + b'\0' * (-len(b) % 4)
class Stream:
    def __init__(self, c): self.c, self.at = c, len(TRACE)
    def head(self, name, size):
        h = begin(name) + struct.pack('<I', size)
        h += b'\0' * (-(self.at + len(h)) % 4)
        return h
    def put(self, name, body):
        b = self.head(name, len(body)) + body + b'\6'
        self.at += len(b)
        self.c.sendall(b)
    def events(self, name, blobs): self.put(name, struct.pack('<HH', 20, 0) + b'\0' * 16 + blobs)
def flood(c):
    s = Stream(c)
    if mode == 'block':
        c.sendall(s.head(b'StackBlock', 8 << 20))
        for i in range(7): c.sendall(b'z' * (1 << 20))
    elif mode == 'stacks':
        for i in range(256):
            s.put(b'StackBlock', struct.pack('<II', i * 8, 8) + (struct.pack('<I', 65000) + b's' * 65000) * 8)
    elif mode == 'methods':
        def kind(number, event):
            return blob(0, struct.pack('<I', number) + u16('Microsoft-Windows-DotNETRuntime') + struct.pack('<I', event) +
                        u16('x') + struct.pack('<QIII', 0, 1, 4, 0))
        s.events(b'MetadataBlock', kind(1, 143) + kind(2, 152) + kind(3, 154))
        s.events(b'EventBlock', blob(3, struct.pack('<QQQI', 5, 0, 0, 0) + u16('asm')) +
                 blob(2, struct.pack('<QQII', 7, 5, 0, 0) + u16('/x/asm.dll')))
        method = blob(1, struct.pack('<QQQIII', 1, 7, 4096, 16, 1, 0x9) + u16('T' * 20000) + u16('m') + u16('void  ()'))
        while True: s.events(b'EventBlock', method * 20)
    else:
        kind = struct.pack('<I', 1) + u16('Microsoft-Windows-DotNETRuntimeRundown') + struct.pack('<I', 144) + u16('x')
        s.events(b'MetadataBlock', blob(0, kind + struct.pack('<QIII', 0, 1, 4, 0)))
        method = blob(1, struct.pack('<QQQIII', 1, 99, 4096, 16, 1, 0x12) + u16('T' * 10000) + u16('m') + u16('s'))
        while True: s.events(b'EventBlock', method * 13)
def serve(c):
    try:
        head = b''
        while len(head) < 20: head += c.recv(20 - len(head))
        size, command = struct.unpack('<H', head[14:16])[0], head[16] << 8 | head[17]
        rest = b''
        while len(rest) < size - 20: rest += c.recv(65536)
        c.sendall(b'DOTNET_IPC_V1\0' + struct.pack('<HBBHQ', 28, 0xff, 0, 0, 1))
        if command == 0x0201: return c.close()
        c.sendall(TRACE)
        # The list of all methods, which no real provider sends, is empty, except for methods that wait.
        if mode != 'pending' and b'p\0r\0o\0f\0c\0p\0u\0' in rest: return c.sendall(b'\1')
        flood(c)
        threading.Event().wait()
    except OSError: pass
for i in range(int(sys.argv[1])):
    if os.fork(): continue
    prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    code = mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC)
    start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
    port = socket.socket(socket.AF_UNIX)
    port.bind("/tmp/dotnet-diagnostic-%d-%s-socket" % (os.getpid(), start))
    port.listen(64)
    os.write(1, b"%s %d\n" % (os.fsencode(port.getsockname()), os.getpid()))  # lines stay whole
    while True: threading.Thread(target=serve, args=port.accept()[:1], daemon=True).start()
signal.pause()
PY

start neighbour setpriv --reuid=65533 --regid=65533 --clear-groups "$BUILD/helpers/workload" deep 20 100
neighbour=$STARTED

# flood PROCESSES MODE [OPTION...]: records such processes and the neighbour. The log is in $2.err, profcpu's largest memory in $MIB.
flood() {
	start "fakes.$2" python3 events.py "$1" "$2"
	all_listen() { [ "$(wc -l <"fakes.$2.log")" -ge "$1" ]; }
	wait_for 30 all_listen "$1" "$2" || fail "only $(wc -l <"fakes.$2.log") fakes: $(cat "fakes.$2.log")"
	mapfile -t -O ${#T_FILES[@]} T_FILES < <(cut -d ' ' -f 1 "fakes.$2.log")
	sleep 1
	measure "$PROFCPU" collect --record-only --no-download --jit-names=rundown -q -d 4 -o "$2" "${@:3}" \
		-p "$(cut -d ' ' -f 2 "fakes.$2.log" | paste -sd ,),$neighbour"
	mv err "$2.err"
	stop "$STARTED"
	[ "$STATUS" = 0 ] || fail "$2: exit $STATUS: $(cat "$2.err")"
	echo "$1 x $2: $MIB MiB"
	[ "$MIB" -le "$OWN_MIB" ] || fail "$2: profcpu took $MIB MiB of $LIMIT_MIB"
	"$PROFCPU" fold --offline "$2" >"$2.folded" || fail "fold of $2: exit $?"
	grep -q '^workload;' "$2.folded" || fail "$2: no sample of the neighbour: $(head -n 3 "$2.folded")"
}
flood 20 block
grep -q 'too little memory is left for its events' block.err || fail "no reason: $(cat block.err)"
flood 3 stacks
grep -q 'too little memory is left for its events' stacks.err || fail "no reason: $(cat stacks.err)"
flood 1 pending
! grep -q Traceback "$T"/fakes.*.log || fail "a fake failed: $(cat "$T"/fakes.*.log)"
# The files of names keep to the limit of the recording.
flood 3 methods --max-size 8M
bytes=$(cat methods/symbols/*.methods | wc -c)
echo "methods: $bytes bytes"
[ "$bytes" -ge 2000000 ] && [ "$bytes" -le 8388608 ] || fail "methods: $bytes bytes of names with --max-size 8M"
grep -q 'more than their share of the disk, or of --max-size' methods.err || fail "no reason: $(cat methods.err)"
exit 0
