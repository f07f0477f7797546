#!/usr/bin/env python3
"""Compares the times of threads in a recording with --off-cpu with each other, the clock and the kernel's counts.

usage: off_cpu_threads.py wall DIR WAITS_FOLDED
       off_cpu_threads.py schedstat DIR BEFORE AFTER
       off_cpu_threads.py delay DIR COUNTS

wall: the lines of each thread in DIR/wall.folded sum up to its lifetime in offcpu.idx. For threads that lived all the
time they sum up to the clock. The lines minus WAITS_FOLDED (profcpu fold --pid --tid --idle --event-filter offcpu-time)
and minus short waits are its running time.
schedstat: the running time of each thread is what the kernel counted between BEFORE and AFTER, lines "TID RUN_NS WAIT_NS
COUNT". Its runnable time agrees too. Tolerances are 1 % and 20 ms, the unknown time because of
lost switches, and 30 us for each time that the thread got a CPU. The kernel counts the cost of a switch, and of its
recording, as the next thread's. It counts a thread as runnable only when the CPU that will run it is awake and has it in
its queue.
delay: each thread of COUNTS, lines "TID RUN_NS WAIT_NS COUNT", began in the recording. It waited for a CPU as long as the
kernel counted, within 1 %, and the unknown time because of lost switches.
"""
import re
import struct
import sys

ROW = struct.Struct("<BBHi5Q")
HEADER_BYTES = 24
WAIT, THREAD, REST = 1, 2, 3
FIELDS = "begin end running blocked runnable unknown short short_count no_stack estimated".split()


def rows_of(directory):
    with open(f"{directory}/offcpu.idx", "rb") as file:
        data = file.read()[HEADER_BYTES:]
    return [ROW.unpack_from(data, at) for at in range(0, len(data) - ROW.size + 1, ROW.size)]


def threads_of(directory):
    """Rows of threads in offcpu.idx: a list of dicts."""
    rows = rows_of(directory)
    threads = []
    for first, rest in zip(rows, rows[1:]):
        if first[0] == THREAD and rest[0] == REST:
            threads.append(dict(zip(FIELDS, first[4:] + rest[4:]), tid=first[3], pid=rest[3]))
    return threads


def folded_of(path):
    """Sums of a folded file by (pid, tid), of all lines and of each mark in place of a stack."""
    sums = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            stack, weight = line.rstrip("\n").rsplit(" ", 1)
            root, _, rest = stack.partition(";")
            pid, tid = re.search(r"-(\d+)/(\d+)$", root.strip()).groups()
            thread = sums.setdefault((int(pid), int(tid)), {"all": 0})
            thread["all"] += int(weight)
            if rest.strip().startswith("["):
                thread[rest.strip()] = thread.get(rest.strip(), 0) + int(weight)
    return sums


def near(what, got, wanted, slack):
    if abs(got - wanted) <= 0.01 * wanted + slack:
        return 0
    print(f"{what}: {got / 1e9:.6f} s instead of {wanted / 1e9:.6f} s")
    return 1


def check_wall(directory, waits_path):
    threads, wall, waits = threads_of(directory), folded_of(f"{directory}/wall.folded"), folded_of(waits_path)
    begin, end = min(t["begin"] for t in threads), max(t["end"] for t in threads)
    bad = lasting = 0
    for t in threads:
        key, life = (t["pid"], t["tid"]), t["end"] - t["begin"]
        if sum(u["tid"] == t["tid"] for u in threads) > 1:
            continue  # a reused id
        got = wall.get(key, {"all": 0})
        off = waits.get(key, {"all": 0})["all"] + (got.get("[short waits]", 0) + got.get("[unknown state]", 0)) * 1000
        bad += near(f"life of {key}", got["all"] * 1000, life, 20000)
        bad += near(f"states of {key}", t["running"] + t["blocked"] + t["runnable"] + t["unknown"], life, 0)
        bad += near(f"on the CPU, {key}", got["all"] * 1000 - off, t["running"], 20000)
        if t["begin"] == begin and t["end"] == end:
            lasting += 1
            bad += near(f"all the time, {key}", got["all"] * 1000, end - begin, 20000)
    print(f"{len(threads)} threads, {lasting} of them lived all the {(end - begin) / 1e9:.3f} s")
    return bad or not lasting


def counts_of(path):
    with open(path, encoding="ascii") as file:
        return {int(v[0]): [int(n) for n in v[1:]] for v in (line.split() for line in file)}


def check_schedstat(directory, before_path, after_path):
    before, after = counts_of(before_path), counts_of(after_path)
    bad = compared = 0
    sums, unknown = [0, 0, 0, 0], sum(t["unknown"] for t in threads_of(directory))
    for t in threads_of(directory):
        if t["tid"] not in after:
            continue
        then, now = before.get(t["tid"], [0, 0, 0]), after[t["tid"]]
        ran, waited, slack = now[0] - then[0], now[1] - then[1], 2e7 + 3e4 * (now[2] - then[2]) + t["unknown"]
        sums = [a + b for a, b in zip(sums, (ran, t["running"], waited, t["runnable"]))]
        compared += 1
        bad += near(f"thread {t['tid']} ran", t["running"], ran, slack)
        bad += near(f"thread {t['tid']} waited for a CPU", t["runnable"], waited, slack + unknown)  # lost switches include wakings
    print("%d threads: the kernel counted %.6f s on a CPU, the recording %.6f s; ready to run %.6f s and %.6f s"
          % (compared, *(s / 1e9 for s in sums)))
    bad += near("all threads ran", sums[1], sums[0], 0.005 * sums[0] + unknown)
    return bad or compared < 10 or sums[0] < 1e9


def check_delay(directory, counts_path):
    counts, bad = counts_of(counts_path), 0
    threads = [t for t in threads_of(directory) if t["tid"] in counts]
    for t in threads:
        bad += near(f"thread {t['tid']} waited for a CPU", t["runnable"], counts[t["tid"]][1], t["unknown"])
    print("%d threads: the kernel counted %.6f s ready to run, the recording %.6f s; %d threads differ"
          % (len(counts), sum(c[1] for c in counts.values()) / 1e9, sum(t["runnable"] for t in threads) / 1e9, bad))
    return bad or len(threads) != len(counts)


def main():
    if sys.argv[1:2] == ["wall"]:
        sys.exit(1 if check_wall(sys.argv[2], sys.argv[3]) else 0)
    if sys.argv[1:2] == ["delay"]:
        sys.exit(1 if check_delay(sys.argv[2], sys.argv[3]) else 0)
    sys.exit(1 if check_schedstat(sys.argv[2], sys.argv[3], sys.argv[4]) else 0)


if __name__ == "__main__":
    main()
