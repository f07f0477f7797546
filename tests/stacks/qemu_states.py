"""qemu_states.py PROGRAM KNOWN PERF_DATA [STATES]

Runs a program of tests/stacks for AArch64 under qemu-user, stops it at instructions of its own functions through the GDB stub, and
writes the registers and a copy of the stack of each stop as a sample into PERF_DATA, as perf record --call-graph dwarf does on
such a machine. The program's output goes to KNOWN. Each stop is at another instruction.
"""
import os
import random
import socket
import struct
import subprocess
import sys
import time

STACK_BYTES = 8192
REGS = 33  # x0 to x29, lr, sp, pc
ARCH_FEATURE = 6
SAMPLE_TYPE = 0x1 | 0x2 | 0x4 | 0x20 | 0x100 | 0x1000 | 0x2000  # IP TID TIME CALLCHAIN PERIOD REGS_USER STACK_USER


class Stub:
    """A client of the GDB remote protocol."""

    def __init__(self, port):
        end = time.monotonic() + 20
        while True:
            try:
                self.s = socket.create_connection(('127.0.0.1', port), timeout=20)
                self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                break
            except OSError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        self.pending = b''

    def byte(self):
        if not self.pending:
            self.pending = self.s.recv(65536)
            if not self.pending:
                raise EOFError('the program ended')
        b, self.pending = self.pending[:1], self.pending[1:]
        return b

    def ask(self, command):
        data = command.encode()
        self.s.sendall(b'$%s#%02x' % (data, sum(data) & 255))
        while self.byte() != b'$':
            pass
        answer = b''
        while (b := self.byte()) != b'#':
            answer += b
        self.byte(), self.byte()
        self.s.sendall(b'+')
        return answer.decode()

    def expect(self, command, wanted='OK'):
        answer = self.ask(command)
        if answer != wanted:
            sys.exit(f'{command}: {answer}')


def own_names(program):
    """Functions that the program's known calls name."""
    qemu = subprocess.Popen(['qemu-aarch64-static', program], stdout=subprocess.PIPE, text=True)
    names = set()
    for line in qemu.stdout:
        kind, *rest = line.split()
        if kind == 'EDGE':
            names |= {rest[0], rest[2]} - {'-', '*'}
        elif kind == 'READY':
            break
    qemu.kill()
    qemu.wait()
    return names


def instructions(program):
    """Addresses of all instructions of these functions."""
    names = own_names(program)
    out = subprocess.run(['nm', '-S', program], capture_output=True, text=True, check=True).stdout
    found = [f for f in map(str.split, out.splitlines()) if len(f) == 4 and f[3].split('.')[0] in names]
    return [a for f in found for a in range(int(f[0], 16), int(f[0], 16) + int(f[1], 16), 4)]


def take_states(program, known, wanted):
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    qemu = subprocess.Popen(['qemu-aarch64-static', '-cpu', 'max', '-g', str(port), program], stdout=open(known, 'w'))
    try:
        stub = Stub(port)
        # The program is position-dependent, so addresses are those of its file.
        choices = instructions(program)
        random.Random(1).shuffle(choices)
        waiting = set(choices[:2 * wanted])
        for addr in waiting:
            stub.expect(f'Z0,{addr:x},4')
        states = []
        while len(states) < wanted and waiting:
            try:
                answer = stub.ask('c')
            except TimeoutError:
                break
            if answer[0] not in 'ST':
                sys.exit(f'the program ended: {answer}')
            regs = struct.unpack_from('<33Q', bytes.fromhex(stub.ask('g')[:2 * 8 * REGS]))
            stub.expect(f'z0,{regs[32]:x},4')
            waiting.discard(regs[32])
            if 'READY' not in open(known).read():
                continue
            stack = b''
            for at in range(regs[31], regs[31] + STACK_BYTES, 1024):
                answer = stub.ask(f'm{at:x},400')
                if answer[0] == 'E':
                    break
                stack += bytes.fromhex(answer)
            states.append((regs, stack))
        return qemu.pid, states
    finally:
        qemu.kill()
        qemu.wait()


def record(kind, misc, body):
    return struct.pack('<IHH', kind, misc, 8 + len(body)) + body


def text(s):
    data = s.encode() + b'\0'
    return data + bytes(-len(data) % 8)


def write(path, program, known, states):
    sample_id = struct.pack('<IIQ', 1000, 1000, 0)
    records = [record(3, 0x2000, struct.pack('<II', 1000, 1000) + text('known') + sample_id)]
    for line in open(known):
        if line.startswith('MAP'):
            _, _, where, _, off, _, _, name = (line.split() + ['//anon'])[:8]
            start, end = (int(x, 16) for x in where.split('-'))
            name = program if os.path.basename(name) == os.path.basename(program) else name
            records.append(record(10, 2, struct.pack('<IIQQQIIQQII', 1000, 1000, start, end - start, int(off, 16), 0, 0, 0, 0, 5, 2) +
                                  text(name) + sample_id))
    for i, (regs, stack) in enumerate(states):
        body = struct.pack('<QIIQQ', regs[32], 1000, 1000, 1000 + i, 1) + struct.pack('<QQQ', 2, 2**64 - 512, regs[32])
        body += struct.pack('<Q', 2) + struct.pack('<33Q', *regs)
        body += struct.pack('<Q', len(stack)) + stack + (struct.pack('<Q', len(stack)) if stack else b'')
        records.append(record(9, 2, body))
    data = b''.join(records)
    attr = bytearray(136)
    struct.pack_into('<IIQQQQ', attr, 0, 1, 136, 0, 1, SAMPLE_TYPE, 0)
    struct.pack_into('<Q', attr, 40, 1 << 18)  # sample_id_all
    struct.pack_into('<QI', attr, 80, (1 << REGS) - 1, STACK_BYTES)
    attrs_at, data_at = 104, 104 + 152
    features = bytearray(32)
    features[ARCH_FEATURE // 8] = 1 << ARCH_FEATURE % 8
    head = b'PERFILE2' + struct.pack('<QQ', 104, 152) + struct.pack('<6Q', attrs_at, 152, data_at, len(data), 0, 0) + features
    arch = text('aarch64')
    arch = struct.pack('<I', len(arch)) + arch
    at = data_at + len(data)
    with open(path, 'wb') as f:
        f.write(head + attr + struct.pack('<QQ', 0, 0) + data + struct.pack('<QQ', at + 16, len(arch)) + arch)


def main():
    program, known, out = sys.argv[1:4]
    wanted = int(sys.argv[4]) if len(sys.argv) > 4 else 300
    _, states = take_states(program, known, wanted)
    write(out, program, known, states)
    print(f'{len(states)} states')


main()
