"""Checks the JSON of `profcpu stacks` on tests/dotnet/parked: each thread is where its name says.

usage: stacks.py FILE MORE RUNTIME   MORE: threads in Places.More; RUNTIME: "kernel", or "runtime" by the sampler
"""
import json
import sys

PLACES = {
    "HoldsLock": ("futex", "System.Threading.Thread.Sleep(int32)"),
    "WaitsForLock": ("futex", None),
    "Sleeps": ("futex", "System.Threading.Thread.Sleep(int32)"),
    "ReadsSocket": ("recvmsg", "System.Net.Sockets.Socket.Receive("),
    "WaitsForTask": ("futex", "System.Threading.Tasks.Task.Wait()"),
    "WaitsForEvent": ("futex", "System.Threading.ManualResetEventSlim.Wait()"),
    "Busy": (None, None),
}


def shown(what):
    if not isinstance(what, dict):
        return str(what)
    return f"{what['state']}, {what.get('no_stack')}: {';'.join(f['name'] for f in what['frames'])}"


def check(ok, *what):
    if not ok:
        sys.exit(" ".join(shown(x) for x in what))


def check_thread(name, group, source):
    frames = [f["name"] for f in group["frames"]]
    call, callee = PLACES[name]
    place = f"Places.{name}()"
    check(place in frames, name, "is not in", place, group)
    check(not callee or any(f.startswith(callee) for f in frames[: frames.index(place)]), name, "does not call", callee, group)
    check([f for f in group["frames"] if f["name"] == place][0]["kind"] == "managed", "no managed frame", group)
    check(group["state"].startswith("waiting" if call else "running"), name, "has the state", group)
    if source == "kernel":
        check(group.get("system_call") == call, name, "is in the system call", group)
        check(any(f["kind"] == "native" and "start_thread" in f["name"] for f in group["frames"]), name, "lacks the start of its thread", group)
        check("[truncated]" not in frames, name, "is truncated", group)


def main():
    document = json.load(open(sys.argv[1], encoding="utf-8"))
    more, source = int(sys.argv[2]), sys.argv[3]
    check(document["source"] == source, "the source is", document["source"])
    groups = document["groups"]
    check(document["threads"] == sum(g["count"] for g in groups), "threads are missing")
    check([g["count"] for g in groups] == sorted((g["count"] for g in groups), reverse=True), "the most are not first")
    found, sleeping = set(), 0
    for group in groups:
        check(group["count"] == len(group["threads"]), "a wrong count", group)
        names = {thread["name"] for thread in group["threads"]}
        for name in names & PLACES.keys():
            check_thread(name, group, source)
            found.add(name)
        if "More" in names:
            check("Places.More()" in [f["name"] for f in group["frames"]], "not in Places.More", group["frames"])
            sleeping += sum(thread["name"] == "More" for thread in group["threads"])
        if source == "kernel":
            check("no_stack" not in group or names <= {"Short"}, "no stack", group)
            if "parked" in names:
                check("Places.Stays(int32)" in [f["name"] for f in group["frames"]], "the main thread is elsewhere", group)
    check(found == PLACES.keys(), "not found:", PLACES.keys() - found)
    check(sleeping == more, sleeping, "threads sleep, not", more)


main()
