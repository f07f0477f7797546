#!/usr/bin/env python3
"""Measures what collect --off-cpu costs: throughput that a ping-pong loses, and CPU time of profcpu.

Throughput is switches for each second that the program ran, so CPU time of other programs does not count. Each
round compares a recording with the times before and after it. Within each of these times the median of short
slices counts, so bursts of other work do not. If rounds differ much because of other work, up to three times as
many are made.
usage: off_cpu_cost.py PROFCPU WAITS WORK-NS ROUNDS   prints a line for each round; the last line is the median
       of the cost in percent
"""
import glob
import os
import statistics
import subprocess
import sys
import tempfile
import time

SLICE_S = 0.1
WARM_UP_S = 0.8  # time in which a recording finds its share of windows
UNSTEADY = 0.04  # largest difference of the rates before and after a usable round
SPREAD = 4  # largest difference of costs, in points of percent, that needs no more rounds


def ran(pid):
    """Run time in ns of all threads of a process, and how often they got a CPU."""
    total_ns = count = 0
    for path in glob.glob("/proc/%d/task/*/schedstat" % pid):
        try:
            with open(path) as file:
                words = file.read().split()
        except OSError:
            continue
        total_ns += int(words[0])
        count += int(words[2])
    return total_ns, count


def rates(pid, seconds, also=None):
    """Median rate of switches, and CPU use of the process `also` in percent of one CPU."""
    found, until = [], time.monotonic() + seconds
    begun, used = time.monotonic(), ran(also)[0] if also else 0
    last = ran(pid)
    while time.monotonic() < until:
        time.sleep(SLICE_S)
        now = ran(pid)
        if now[0] > last[0]:
            found.append((now[1] - last[1]) / (now[0] - last[0]) * 1e9)
        last = now
    use = ((ran(also)[0] - used) / (time.monotonic() - begun) / 1e7) if also else 0
    return statistics.median(found), use


def main():
    profcpu, waits, work, rounds = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
    target = subprocess.Popen([waits, "pong", "600"], env=dict(os.environ, PONG_WORK=work), stdout=subprocess.DEVNULL)
    costs, all_costs = [], []
    try:
        time.sleep(1)
        before = rates(target.pid, 1.0)[0]
        for _ in range(5 * rounds):
            with tempfile.TemporaryDirectory() as to:
                recorder = subprocess.Popen([profcpu, "collect", "--off-cpu", "--record-only", "-q", "-d", "3", "-p",
                                             str(target.pid), "-o", to + "/rec"])
                time.sleep(WARM_UP_S)
                during, used = rates(target.pid, 1.6, recorder.pid)
                if recorder.wait() != 0:
                    sys.exit("collect gave %d" % recorder.returncode)
            after = rates(target.pid, 1.0)[0]
            base = (before + after) / 2
            lost = 100 * (1 - during / base)
            steady = abs(before - after) < UNSTEADY * base
            print("work %s ns: %.2f %%: lost %.2f, recorder %.2f; %.0f switches a second%s"
                  % (work, lost + used, lost, used, base, "" if steady else "; unsteady"), flush=True)
            all_costs.append(lost + used)
            if steady:
                costs.append(lost + used)
            before = after
            if len(costs) >= 3 * rounds or (len(costs) >= rounds and max(costs) - min(costs) <= SPREAD):
                break
    finally:
        target.kill()
        target.wait()
    print("%.2f" % statistics.median(costs if len(costs) >= rounds else all_costs))


main()
