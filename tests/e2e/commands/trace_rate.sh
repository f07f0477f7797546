#!/usr/bin/env bash
# `profcpu trace` on one CPU takes 200,000 events a second: it does not hold up a runtime that sends them, and the file has all bytes.
# Runs alone.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need python3 taskset
need_published wide-net-net10
RATE=200000
QUEUE_MAX=$((10 << 20)) # a small part of the runtime's buffer, which has 256 MB

cat >replay.py <<'PY'
# usage: replay.py PORT TRACE SECONDS: a runtime that makes the bytes of a trace at a steady rate. Prints the longest queue of bytes.
import select, socket, struct, sys, threading, time
data = memoryview(open(sys.argv[2], 'rb').read())
seconds = float(sys.argv[3])
port = socket.socket(socket.AF_UNIX)
port.bind(sys.argv[1])
port.listen(8)
print('listens', flush=True)
def replay(c):
    begin, sent, longest = time.monotonic(), 0, 0
    c.setblocking(False)
    while sent < len(data):
        made = min(len(data), int(len(data) * (time.monotonic() - begin) / seconds))
        longest = max(longest, made - sent)
        if made == sent:
            time.sleep(0.01)
            continue
        try:
            sent += c.send(data[sent:made])
        except BlockingIOError:
            select.select([], [c], [], 0.01)
    print(f'{longest} bytes waited, {time.monotonic() - begin:.2f} s', flush=True)
def answer(c):
    head = b''
    while len(head) < 20:
        more = c.recv(20 - len(head))
        if not more:
            return
        head += more
    size, commands, _ = struct.unpack('<HBB', head[14:18])
    while size > 20:
        more = c.recv(size - 20)
        if not more:
            return
        size -= len(more)
    if commands != 2:  # no session
        c.sendall(b'DOTNET_IPC_V1\0' + struct.pack('<HBBHI', 24, 0xff, 0xff, 0, 0x80131385))
        return
    c.sendall(b'DOTNET_IPC_V1\0' + struct.pack('<HBBHQ', 28, 0xff, 0, 0, 1))
    replay(c)
def run(c):
    with c:
        answer(c)
while True:
    threading.Thread(target=run, args=(port.accept()[0],), daemon=True).start()
PY

DOTNET_EnableEventPipe=1 DOTNET_EventPipeConfig=Microsoft-DotNETCore-SampleProfiler:0:5,Microsoft-Windows-DotNETRuntime:0xFFFFFFFFFFFFFFFF:5 \
	DOTNET_EventPipeOutputPath=$T/made.nettrace DOTNET_EventPipeCircularMB=500 \
	"$PUBLISHED/wide-net-net10/wide-net" 4 --threads 4 --except Collect >made.log 2>&1 || fail "wide-net gave $?: $(tail -n 5 made.log)"
events=$("$PROFCPU" events made.nettrace 2>err | wc -l)
at_least "$events" $((2 * RATE)) || fail "only $events events: $(cat err)"
read -r one other < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
[ "$other" ] || skip "needs two CPUs"
start replay taskset -c "$other" python3 replay.py port made.nettrace "$(awk "BEGIN { print $events / $RATE }")"
wait_for 10 grep -q listens replay.log || fail "$(cat replay.log)"
taskset -c "$one" "$PROFCPU" trace --diagnostic-port "$T/port,connect" --rundown off -o taken.nettrace 2>err || fail "trace gave $?: $(cat err)"
wait_for 10 grep -q waited replay.log || fail "$(cat replay.log)"
cmp made.nettrace taken.nettrace || fail "other bytes than were sent: $(cat err)"
queue=$(sed -n 's/ bytes waited.*//p' replay.log)
[ "$queue" -le $QUEUE_MAX ] || fail "$queue bytes waited, at most $QUEUE_MAX may: $(cat replay.log)"
echo "$events events, $(stat -c %s made.nettrace) bytes: $(tail -n 1 replay.log)"
