"""check.py [--row PROGRAM TOOL] [--images DIR] [--examples N] [--cut-ok] [--min PERCENT] KNOWN [SCRIPT]

Compares the user stacks in the text of perf script (perf's own, or perf_script.out of profcpu) with the possible stacks that a
program of tests/stacks prints (known.h describes KNOWN). Functions are looked up by address in the images' symbol tables. The
tool's names for them are compared too, and do not affect the stack. Prints one row, separated by tabs:

	PROGRAM TOOL SAMPLES EXACT MAIN CUT MISSING WRONG KERNEL KERNEL-EXACT MISNAMED WORST FUNCTION

SAMPLES	taken in user code
EXACT	have each frame of the call path from the thread's start to the sampled function, and no other
MAIN	have all frames from main or a thread's function on, with only some or none of the library's frames that called these
CUT	are right from the sampled function on, but end earlier
MISSING	have frames of a path in their order, but lack some
WRONG	all others
KERNEL	taken in the kernel, with a user stack
MISNAMED	exact ones of SAMPLES in which the tool has another name for a function of the program
WORST	the smallest percentage of exact ones in a FUNCTION of the program, of those with at least 20 samples

Examples that are not exact go to stderr. With --cut-ok MAIN and CUT count as exact for --min. Exit status 1: fewer than PERCENT,
or fewer than 100 samples.
"""
import argparse
import bisect
import collections
import os
import re
import struct
import subprocess
import sys

KERNEL_START = 1 << 63


def fail(text):
    sys.exit(f'check.py: {text}')


class Image:
    """Functions and sections of an ELF file by vaddr."""

    def __init__(self, path):
        data = open(path, 'rb').read()
        if data[:4] != b'\x7fELF' or data[4] not in (1, 2):
            fail(f'{path} is no ELF file')
        wide = data[4] == 2
        phoff, shoff = struct.unpack_from('<QQ' if wide else '<II', data, 32 if wide else 28)
        phentsize, phnum, shentsize, shnum, shstrndx = struct.unpack_from('<5H', data, 54 if wide else 42)
        segments = [struct.unpack_from('<IIQQQQQQ' if wide else '<8I', data, phoff + i * phentsize) for i in range(phnum)]
        # type, offset, vaddr and size in the file
        at = (0, 2, 3, 5) if wide else (0, 1, 2, 4)
        self.loads = [tuple(s[i] for i in at[1:]) for s in segments if s[0] == 1]
        sections = [struct.unpack_from('<IIQQQQIIQQ' if wide else '<10I', data, shoff + i * shentsize) for i in range(shnum)]

        def text(table, at):
            at += sections[table][4]
            return data[at:data.index(b'\0', at)].decode()

        self.plts = [(s[3], s[3] + s[5]) for s in sections if text(shstrndx, s[0]).startswith(('.plt', '.iplt'))]
        symbols = {}
        for s in sections:
            if s[1] not in (2, 11):
                continue
            for i in range(s[5] // s[9]):
                if wide:
                    name, info, _, shndx, value, size = struct.unpack_from('<IBBHQQ', data, s[4] + i * 24)
                else:
                    name, value, size, info, _, shndx = struct.unpack_from('<IIIBBH', data, s[4] + i * 16)
                if info & 15 in (2, 10) and shndx:
                    symbols.setdefault(value, (value + size, text(s[6], name)))
        mangled = [name for _, name in symbols.values() if name.startswith('_Z')]
        plain = {}
        if mangled:
            out = subprocess.run(['c++filt'], input='\n'.join(mangled), capture_output=True, text=True, check=True).stdout
            plain = dict(zip(mangled, out.split('\n')))
        self.starts = sorted(symbols)
        self.functions = [(symbols[v][0], bare(plain.get(symbols[v][1], symbols[v][1]))) for v in self.starts]

    def vaddr(self, file_off):
        for off, vaddr, filesz in self.loads:
            if off <= file_off < off + filesz:
                return file_off - off + vaddr
        return None

    def function(self, vaddr):
        """The name of the function that is there, or None."""
        i = bisect.bisect_right(self.starts, vaddr) - 1
        if i < 0 or vaddr >= max(self.functions[i][0], self.starts[i] + 1):
            return None
        return self.functions[i][1]

    def in_plt(self, vaddr):
        return any(start <= vaddr < end for start, end in self.plts)


def bare(name):
    """A function's name as __func__ has it: no arguments, no scope, no suffix of a part that the compiler made."""
    name = re.sub(r'\(.*', '', name)
    name = re.sub(r'.*::', '', name)
    return re.sub(r'[.@].*', '', name)


def module_of(path):
    """The name of an image in rules: no directory, no version of a library."""
    return '[' + re.sub(r'\.so[.0-9]*$', '.so', os.path.basename(path)) + ']'


Frame = collections.namedtuple('Frame', 'module name')
PLT = object()


class Known:
    """A program's description of its stacks."""

    def __init__(self, path, images_dir):
        self.edges = collections.defaultdict(list)  # caller -> [(tokens, callee or None)]
        self.times = {}
        self.maps = collections.defaultdict(list)
        self.restorers = collections.defaultdict(set)
        self.images = {}
        self.images_dir = images_dir
        self.program = None
        callers = collections.defaultdict(set)
        ready = False
        for line in open(path, encoding='utf-8'):
            kind, *rest = line.split()
            if kind == 'EDGE':
                caller, via, callee = rest
                tokens = [self.token(t) for t in via.split(';')] if via != '-' else []
                edge = (tuple(tokens), None if callee == '-' else callee)
                if edge not in self.edges[caller]:
                    self.edges[caller].append(edge)
                if callee not in ('-', caller):
                    callers[callee].add(caller)
            elif kind == 'TIMES':
                self.times[rest[0]] = int(rest[1])
            elif kind == 'MAP':
                start, end = (int(x, 16) for x in rest[1].split('-'))
                name = rest[6] if len(rest) > 6 else '//anon'
                if name[0] == '/':
                    self.program = self.program or name
                self.maps[int(rest[0])].append((start, end, int(rest[3], 16), name))
            elif kind == 'RESTORER':
                self.restorers[int(rest[0])].add(int(rest[1], 16))
            elif kind == 'READY':
                ready = True
        if not ready:
            fail(f'{path} has no READY line')
        for callee, by in callers.items():
            if len(by) > 1:
                fail(f'{callee} has the callers {" ".join(sorted(by))}, so its stack is not known')
        self.nodes = set(callers)

    @staticmethod
    def token(text):
        repeats = text.endswith('+')
        return frozenset(module_of(t[1:-1]) if t[0] == '[' else t for t in text.removesuffix('+').split('|')), repeats

    def image(self, path):
        if path not in self.images:
            ours = os.path.join(self.images_dir or '', os.path.basename(path))
            file = ours if self.images_dir and os.path.exists(ours) else path
            self.images[path] = Image(file) if os.path.isfile(file) else None
        return self.images[path]

    def in_file(self, pid, addr):
        """(path, offset) of an address in a process, or None."""
        for start, end, off, path in self.maps[pid]:
            if start <= addr < end:
                return path, addr - start + off
        return None


class Stacks:
    """Matches frames, root first, against a program's calls. A state is (edge, index, count). index: of the token; None: at the
    callee. count: frames of the callee so far, below 0 if there may be more of it before the first frame."""

    def __init__(self, known):
        self.known = known
        self.self_name = module_of(known.program)
        self.cache = {}

    def is_token(self, token, frame):
        if frame.name is PLT:
            return False
        names, _ = token
        if frame.module in names:
            return True
        if '[self]' in names and frame.module == self.self_name and frame.name not in self.known.nodes:
            return True
        return frame.name in names

    def enter(self, edge, index, frame, count=1):
        """The states after frame, if edge's token of that index, or its callee, comes next."""
        tokens, callee = edge
        if index < len(tokens):
            return {(edge, index, 0)} if self.is_token(tokens[index], frame) else set()
        return {(edge, None, count)} if callee is not None and frame.name == callee else set()

    def step(self, state, frame):
        edge, index, count = state
        tokens, callee = edge
        ret = set()
        if index == 'plt':
            return self.signal(frame)
        if index is not None:  # in a library
            if tokens[index][1] and self.is_token(tokens[index], frame):
                ret.add(state)
            ret |= self.enter(edge, index + 1, frame)
        else:
            times = self.known.times.get(callee)
            for out in self.known.edges.get(callee, ()):
                if out[1] == callee:
                    if times is None or abs(count) < times:
                        ret |= self.enter(out, 0, frame, count + 1 if count > 0 else count - 1)
                elif times is None or count in (times, -abs(count)):
                    ret |= self.enter(out, 0, frame)
        if frame.name is PLT:
            ret.add((edge, 'plt', 0))
        return ret | self.signal(frame)

    def signal(self, frame):
        ret = set()
        for edge in self.known.edges.get('*', ()):
            ret |= self.enter(edge, 0, frame)
        return ret

    def run(self, frames, states):
        for frame in frames:
            if not states:
                break
            states = set().union(*(self.step(s, frame) for s in states))
        return bool(states)

    def starts(self, frame):
        ret = set()
        for edge in self.known.edges.get('-', ()):
            ret |= self.enter(edge, 0, frame)
        return ret

    def anywhere(self, frame, callers):
        """All states that end in this frame, at any position of a path from one of these callers to its callees."""
        ret = set()
        for caller in callers:
            for edge in self.known.edges.get(caller, ()):
                for index in range(len(edge[0]) + 1):
                    ret |= self.enter(edge, index, frame, -1)
        return ret

    def below(self, name):
        """The callers of a function of the program, root first."""
        path = []
        while name:
            path.insert(0, name)
            name = next((c for c, es in self.known.edges.items() for e in es if e[1] == name and c not in (name, '-', '*')), None)
        return path

    def verdict(self, frames):
        if frames not in self.cache:
            self.cache[frames] = self.classify(frames)
        return self.cache[frames]

    def classify(self, frames):
        if not frames:
            return 'wrong'
        if self.run(frames[1:], self.starts(frames[0])):
            return 'exact'
        mains = {callee for _, callee in self.known.edges['-']}
        if any(f.name in mains for f in frames) and self.run(frames[1:], self.anywhere(frames[0], ('-',))):
            return 'main'
        if self.run(frames[1:], self.anywhere(frames[0], self.known.edges)):
            return 'cut'
        # Is the rest in the order of one path? Skips libraries.
        names = [f.name for f in frames if f.name in self.known.nodes]
        if not names:
            return 'wrong'
        path = self.below(names[-1])
        at = 0
        for name in names:
            while at < len(path) and path[at] != name:
                at += 1
            if at == len(path):
                return 'wrong'
            if name not in self.known.times:
                at += 1
        known_modules = {n for es in self.known.edges.values() for e in es for t, _ in e[0] for n in t}
        ours = all(f.name in self.known.nodes or f.name is PLT or f.module in known_modules or f.name in known_modules or
                   f.name == '_start' or f.module == self.self_name and '[self]' in known_modules for f in frames)
        return 'missing' if ours else 'wrong'


class Script:
    """The samples in a text of perf script: (address or offset in a file, name, file) of each frame, leaf first."""

    FRAME = re.compile(r'^\s+([0-9a-f]+) (.*?) \((.*)\)$')

    def __init__(self, file):
        self.file = file

    def __iter__(self):
        frames, seen = None, {}
        for line in self.file:
            line = line.rstrip('\n')
            if line[:1] in (' ', '\t'):
                frame = seen.get(line)
                if frame is None:
                    m = self.FRAME.match(line)
                    if not m or frames is None:
                        fail(f'no frame: {line}')
                    frame = seen[line] = (int(m[1], 16), m[2], m[3])
                frames.append(frame)
                continue
            if frames is not None:
                yield frames
            frames = [] if line else None
        if frames is not None:
            yield frames


class Namer:
    """Frames by the text of perf script: offsets in files, and the files."""

    RESTORER32 = re.compile(r'__kernel_(rt_)?sigreturn\b')  # in the vdso of 32-bit programs

    def __init__(self, known):
        self.known = known
        self.cache = {}
        self.restorers = {known.in_file(pid, addr) for pid, addrs in known.restorers.items() for addr in addrs}

    def find(self, addr, what, path):
        """what: 'sampled', 'caller' of another function, 'interrupted' by a signal."""
        module = module_of(path) if path.startswith('/') else path
        image = self.known.image(path)
        vaddr = image.vaddr(addr) if image else None
        if vaddr is None:
            return Frame(module, '?')
        if image.in_plt(vaddr):
            return Frame(module, PLT)
        # For interrupted frames some tools add one to the address and some do not, as they do for return addresses.
        places = {'sampled': (0,), 'caller': (-1,), 'interrupted': (0, -1, 1)}[what]
        return Frame(module, next(filter(None, (image.function(vaddr + i) for i in places)), '?'))

    def frame(self, addr, what, path):
        key = addr, what, path
        if key not in self.cache:
            self.cache[key] = self.find(*key)
        return self.cache[key]

    def frames(self, script_frames):
        """Frames of user code, root first, and the number of kernel frames above them."""
        kernel = 0
        while kernel < len(script_frames) and script_frames[kernel][0] >= KERNEL_START:
            kernel += 1
        ret = []
        what = 'sampled'
        for addr, printed, where in script_frames[kernel:]:
            if printed.startswith('[truncated'):
                continue
            # Code of 32 bits calls this function to learn its own address, wherever it needs it.
            if what == 'sampled' and printed.startswith('__x86.get_pc_thunk.'):
                what = 'caller'
                continue
            path = where.removesuffix(' (deleted)')
            if what != 'sampled' and ({(path, addr), (path, addr + 1)} & self.restorers or self.RESTORER32.match(printed)):
                ret.append(self.frame(addr, 'interrupted', path))
                what = 'interrupted'
            else:
                ret.append(self.frame(addr, what, path))
                what = 'caller'
        ret.reverse()
        return tuple(ret), kernel


def shown(frames):
    out, i = [], 0
    while i < len(frames):
        n = i
        while n < len(frames) and frames[n] == frames[i]:
            n += 1
        name = frames[i].module if frames[i].name in ('?', PLT) else frames[i].name
        name += '@plt' if frames[i].name is PLT else ''
        out.append(name if n - i == 1 else f'{name} x {n - i}')
        i = n
    return ';'.join(out)


def misnamed(nodes, frames, script_frames):
    for frame, (_, printed, _) in zip(reversed(frames), script_frames):
        if frame.name in nodes and bare(re.sub(r'\+0x[0-9a-f]+$', '', printed)) != frame.name:
            return True
    return False


def main():
    p = argparse.ArgumentParser()
    p.add_argument('--row', nargs=2, default=('-', '-'))
    p.add_argument('--images')
    p.add_argument('--examples', type=int, default=3)
    p.add_argument('--min', type=float, default=0)
    p.add_argument('--cut-ok', action='store_true')
    p.add_argument('known')
    p.add_argument('script', nargs='?')
    args = p.parse_args()

    known = Known(args.known, args.images)
    stacks, namer = Stacks(known), Namer(known)
    counts = collections.Counter()
    leaves, leaves_exact = collections.Counter(), collections.Counter()
    bad = collections.Counter()
    example = {}
    file = open(args.script, encoding='utf-8', errors='replace') if args.script else sys.stdin
    for script_frames in Script(file):
        frames, kernel = namer.frames(script_frames)
        if kernel == len(script_frames):
            counts['kernel alone'] += 1
            continue
        verdict = stacks.verdict(frames)
        if kernel:
            counts['kernel'] += 1
            counts['kernel ' + verdict] += 1
            continue
        counts['samples'] += 1
        counts[verdict] += 1
        # The call to learn an address may be all that is left of a cut stack.
        leaf = frames[-1].name if frames else ''
        if leaf in known.nodes:
            leaves[leaf] += 1
            leaves_exact[leaf] += verdict == 'exact'
        if verdict == 'exact':
            counts['misnamed'] += misnamed(known.nodes, frames, script_frames)
        else:
            key = (verdict, shown(frames))
            bad[key] += 1
            example.setdefault(key, script_frames)
    worst = min(((100 * leaves_exact[f] / n, f) for f, n in leaves.items() if n >= 20), default=(0, '-'))
    print(*args.row, *(counts[c] for c in ('samples', 'exact', 'main', 'cut', 'missing', 'wrong', 'kernel', 'kernel exact', 'misnamed')),
          f'{worst[0]:.1f}', worst[1], sep='\t')
    for (verdict, text), n in bad.most_common(args.examples):
        leaf = next((f for f in reversed(text.split(';')) if f.split(' x ')[0] in known.nodes), None)
        print(f'{" ".join(args.row)}: {n} {verdict}: {text}', file=sys.stderr)
        if leaf:
            print(f'    {leaf} has the callers {";".join(stacks.below(leaf.split(" x ")[0])[:-1])}', file=sys.stderr)
        for addr, printed, where in example[verdict, text][:12]:
            print(f'    {addr:16x} {printed} ({where})', file=sys.stderr)
    good = counts['exact'] + (counts['main'] + counts['cut'] if args.cut_ok else 0)
    if args.min and (counts['samples'] < 100 or good * 100 < args.min * counts['samples']):
        print(f'{" ".join(args.row)}: {good} of {counts["samples"]} stacks are exact', file=sys.stderr)
        return 1
    return 0


sys.exit(main())
