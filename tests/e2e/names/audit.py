"""audit.py RECORDING [KIND NAME REASON]...

Checks the numbers of report.json against perf_script.out, and the reasons of unnamed frames. NAME is the last part of an
image's path, or the command of a process. REASON "-": all frames of it have names.
"""
import collections
import json
import os
import sys


def fail(text):
    sys.exit(f'{sys.argv[1]}: {text}')


report = json.load(open(f'{sys.argv[1]}/report.json', encoding='utf-8'))
samples = frames = kernel = 0
modules = collections.Counter()
for line in open(f'{sys.argv[1]}/perf_script.out', encoding='utf-8', errors='replace'):
    line = line.rstrip('\n')
    if line.startswith('\t'):
        frames += 1
        addr = line.split()[0]
        kernel += len(addr) == 16 and addr.startswith('ffff')
        modules[line[line.rindex(' (') + 2:-1].removesuffix(' (deleted)')] += 1
    elif line:
        samples += 1

if report['format'] != 1:
    fail(f"format {report['format']}")
if samples != report['samples'] or samples < 20:
    fail(f"{report['samples']} samples, {samples} in perf_script.out")
if sum(report['stacks'].get(grade, 0) for grade in ('complete', 'spliced', 'guessed', 'truncated', 'none')) != samples:
    fail(f"{report['stacks']} do not sum to {samples} stacks")
code = {c['kind']: c for c in report['code']}
if sum(c['frames'] for c in report['code']) != frames:
    fail(f'{frames} frames in perf_script.out differ from {report["code"]}')
if kernel != code.get('kernel', {'frames': 0})['frames']:
    fail(f'{kernel} kernel frames in perf_script.out')
for c in report['code'] + report['images']:
    if c['named'] + c['placed'] + c['unknown'] != c['frames'] or sum(c['sources'].values()) != c['named'] + c['placed']:
        fail(f'sums differ: {c}')
    if c['sources'].get('bounds', 0) != c['placed']:
        fail(f'placed frames with another source than bounds: {c}')
paths = collections.Counter()
for i in report['images']:
    paths[i['path']] += i['frames']
for path, n in paths.items():
    if path.startswith('/') and modules[path] != n:
        fail(f'{n} frames of {path}, {modules[path]} in perf_script.out')
unnamed = report['unnamed']
if sum(u['placed'] + u['unknown'] for u in unnamed) != sum(c['placed'] + c['unknown'] for c in report['code']):
    fail('the sums of unnamed frames with and without reasons differ')
if any(not u['text'] or u['reason'] == 'none' for u in unnamed):
    fail(f'without a reason: {unnamed}')

for kind, name, reason in zip(*[iter(sys.argv[2:])] * 3):
    known = [i for i in report['images'] if i['kind'] == kind and os.path.basename(i['path']) == name]
    known += [p for p in report['processes'] if kind in p and p['command'] == name]
    got = {u['reason'] for u in unnamed
           if u['kind'] == kind and (os.path.basename(u['path']) if 'path' in u else u['command']) == name}
    if reason == '-':
        if not known or got:
            fail(f'{kind} {name}: {got or "no frames"}')
    elif got != {reason}:
        fail(f'{kind} {name}: {got}, not {reason}: {unnamed}')
