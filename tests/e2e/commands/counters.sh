#!/usr/bin/env bash
# `profcpu counters`: the values of counters and meters of .NET 8 to 10, which a program knows beforehand; and what
# else can happen to it.
# Runs beside others.
# May take 600 s.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need python3
need_published counters-net8 counters-net9 counters-net10
KNOWN='Known-Events,Known.Meter,Known.Both'
counters() { "$PROFCPU" counters "$@" >out 2>err; }
refused() { # STATUS PATTERN ARG...: one line
	local status=0
	counters "${@:3}" || status=$?
	[ "$status" = "$1" ] || fail "${*:3}: exit $status: $(cat err)"
	[ "$(grep -c . err)" = 1 ] && [ ! -s out ] || fail "${*:3}: not one line: $(cat out err)"
	grep -qE -- "$2" err || fail "${*:3}: $(cat err)"
}
says() { grep -qE "$1" err || fail "no message '$1': $(cat err)"; }
working() { # VERSION [ARG...]: starts the program
	start "net$1" "$PUBLISHED/counters-net$1/counters" "${@:2}"
	wait_for 120 grep -q '^working pid' "net$1.log" || fail "$(cat "net$1.log")"
}
# watch FILE ARG...: runs it in the background, for `has` and `end`.
watch() {
	rm -f "$1" # `has` must not read an older one
	"$PROFCPU" counters "${@:2}" -o "$1" 2>err &
	WATCHER=$! WATCHED=$1
	started $WATCHER
}
lines() { [ "$(grep -cF -- "$1" "$WATCHED")" -ge "$2" ]; }
has() { wait_for 120 lines "$@" || fail "'$1' did not come $2 times: $(cat "$WATCHED" err)"; } # TEXT NUMBER
end() {                                                                                       # SIGNAL STATUS
	local status=0
	kill "-$1" "$WATCHER" 2>/dev/null
	wait "$WATCHER" || status=$?
	[ "$status" = "$2" ] || fail "exit $status: $(cat err)"
}

cat >known.py <<'PYTHON'
# Checks that all values are those that the program gave. usage: known.py csv|json FILE
import csv, json, re, sys
metric = {
    "Known-Events Level (MB)": [42.5], "Known-Events Mean of two": [0, 15], "Known-Events Tagged, \"it\"[shop:main]": [1e-7],
    "Known.Meter temperature (Cel)[area=north;sensor=s1;floor=2;room=a;b]": [21.5], "Known.Meter level[area=north]": [-12.25],
    "Known.Meter latency (ms)[area=north;route=/a;Percentile=50]": [50, 51],
    "Known.Meter latency (ms)[area=north;route=/a;Percentile=95]": [95, 96],
    "Known.Meter latency (ms)[area=north;route=/a;Percentile=99]": [99, 100],
    "Known.Both as-meter": [1],
}
rate = {
    "Known-Events Sold (Count / 1 sec)": [100], "Known.Meter hits ({hit} / 1 sec)[area=north]": [9],
    "Known.Meter requests ({request} / 1 sec)[area=north;route=/a]": [7], "Known.Meter requests ({request} / 1 sec)[area=north;route=/b]": [3],
}
queued = "Known.Meter queued[area=north]"
found = {}
if sys.argv[1] == "csv":
    rows = list(csv.reader(open(sys.argv[2])))
    assert rows[0] == ["Timestamp", "Provider", "Counter Name", "Counter Type", "Mean/Increment"], rows[0]
    for row in rows[1:]:
        assert len(row) == 5 and re.fullmatch(r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d", row[0]), row
        found.setdefault((f"{row[1]} {row[2]}", row[3]), []).append(float(row[4]))
else:
    document = json.load(open(sys.argv[2]))
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}[+-]\d\d:\d\d"
    assert document["TargetProcess"] == "counters" and re.fullmatch(time, document["StartTime"]), document
    for e in document["Events"]:
        assert list(e) == ["timestamp", "provider", "name", "tags", "counterType", "meterTags", "instrumentTags", "value"], e
        assert re.fullmatch(time, e["timestamp"]), e
        tags = ",".join(t for t in (e["meterTags"], e["instrumentTags"], e["tags"]) if t).replace(",", ";")
        found.setdefault((f'{e["provider"]} {e["name"]}' + (f"[{tags}]" if tags else ""), e["counterType"]), []).append(e["value"])
values = found.pop((queued, "Metric"))
assert all(b - a in (4, -1) for a, b in zip(values, values[1:])), values
expected = {(name, "Metric"): v for name, v in metric.items()} | {(name, "Rate"): v for name, v in rate.items()}
assert found.keys() == expected.keys(), found.keys() ^ expected.keys()
for key, values in found.items():
    assert all(v in expected[key] for v in values), (key, values)
print(len(found) + 1, "series,", sum(len(v) for v in found.values()), "values")
PYTHON
known() { python3 known.py "$@" || fail "$2: $(cat "$2")"; }

for version in 8 9 10; do
	echo ".NET $version"
	working "$version"
	pid=$STARTED
	watch known.csv -p "$pid" --counters "$KNOWN,Known.Nothing" --format csv
	has as-meter 3
	has 'Sold' 3
	end INT 0
	known csv known.csv
	[ "$(grep -c . err)" = 1 ] && says 'no value came of Known.Nothing; check the names' || fail "$(cat err)"
	watch known.json -p "$pid" --counters "$KNOWN" --format json
	has as-meter 3
	has 'Sold' 3
	end TERM 0
	known json known.json
	[ ! -s err ] || fail "$(cat err)"
	# A total is the sum of all changes.
	watch totals -p "$pid" --counters 'Known.Meter'
	has ' hits ({hit})' 3
	end INT 0
	awk '$4 == "hits" { if (n++ && $3 != last + 9) exit 1; last = $3 } $4 == "requests" && /route=.a/ && $3 % 7 { exit 1 }' totals || fail "$(cat totals)"
	# Without a name: the runtime's meter, and its EventCounters where it has none.
	watch default -p "$pid"
	if [ "$version" = 8 ]; then
		has 'System.Runtime 0 Gen 2 GC Count (Count / 1 sec)' 1
		has 'GC Heap Size (MB)' 1
		! grep -q 'dotnet\.' default || fail "$(cat default)"
	else
		has 'dotnet.gc.collections ({collection})[gc.heap.generation=gen2]' 1
		! grep -q 'GC Count' default || fail "$(cat default)"
	fi
	end INT 0
	# shellcheck disable=SC1003 # a backslash
	watch forced -p "$pid" --counters 'EventCounters\System.Runtime[cpu-usage,missing],EventCounters\Known.Both'
	has 'CPU Usage (%)' 2
	has ' Known.Both 2 As event' 2
	end INT 0
	says 'no value came of System.Runtime\[missing\]'
	[ "$(awk '{ print $2, $4, $5 }' forced | sort -u)" = 'Known.Both As event
System.Runtime CPU Usage' ] || fail "$(cat forced)"
done

echo "which counters, and limits"
watch some -p "$pid" --counters 'Known.Meter[temperature, level,missing]' --refresh-interval 0.3
has ' temperature (Cel)' 3
has ' level' 3
end INT 0
says 'no value came of Known.Meter\[missing\]'
! grep -vE ' (temperature|level)' some || fail "$(cat some)"
watch many -p "$pid" --counters 'Known.Many,Known.Broken' --maxTimeSeries 7
has ' series[i=' 14
end INT 0
[ "$(awk '{ print $4 }' many | sort -u | wc -l)" = 7 ] || fail "$(cat many)"
says 'time series beyond 7 are not shown; --maxTimeSeries'
says 'callback in the process failed: .*no value today'
says 'no value came of Known.Broken'
refused 1 'no value came of Known.Nothing' -p "$pid" --counters Known.Nothing -d 1.5

echo "other tools at the same time"
watch first.csv -p "$pid" --counters "$KNOWN" --format csv --maxTimeSeries 500
has as-meter 1
refused 1 'another tool reads the meters.*--refresh-interval 1 --maxTimeSeries 500 --maxHistograms 10' -p "$pid" --counters Known.Many -d 60
"$PROFCPU" counters -p "$pid" --counters Known.Many --maxTimeSeries 500 -d 3 >second 2>err2 || fail "exit $?: $(cat err2)"
[ "$(awk '{ print $2 }' second | sort -u)" = Known.Many ] || fail "$(cat second)"
has as-meter $(($(grep -c as-meter first.csv) + 2))
end INT 0
known csv first.csv
other() { # PROVIDERS: another tool, which does not share
	"$PROFCPU" trace -q -p "$pid" --rundown off --providers "$1" -o other.nettrace 2>other.err &
	OTHER=$!
	started $OTHER
	wait_for 60 test -s other.nettrace || fail "$(cat other.err)"
}
other 'System.Diagnostics.Metrics:2:4:SessionId=mine;Metrics=Known.Both;RefreshInterval=1'
wait_for 60 eval '"$PROFCPU" events other.nettrace 2>/dev/null | grep -q GaugeValue' || fail "the other session has no values"
# shellcheck disable=SC1003 # a backslash
refused 1 "another tool reads the meters of this process and does not share them; end it, or .* 'EventCounters.Known.Meter'" -p "$pid" --counters Known.Meter -d 60
watch events.csv -p "$pid" --counters 'EventCounters\Known-Events' --format csv
has Sold 2
end INT 0
kill -INT $OTHER && wait $OTHER || fail "$(cat other.err)"
other 'Known-Events:0:1:EventCounterIntervalSec=0.4'
watch faster -p "$pid" --counters Known-Events
has ' Known-Events 100 Sold (Count / 0.4 sec)' 2
end INT 0
says 'another tool has the runtime send EventCounters every 0.4 s'
kill -INT $OTHER && wait $OTHER || fail "$(cat other.err)"

echo "a terminal"
cat >terminal.py <<'PYTHON'
# Runs a command on a terminal, presses Ctrl-C once the text has come twice, and prints the last table.
import fcntl, os, pty, re, select, struct, sys, termios, time
lines, columns, text = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    os.execv(sys.argv[4], sys.argv[4:])
out, pressed, end = b"", False, time.time() + 120
while time.time() < end:
    if not pressed and out.count(text) >= 2:
        os.write(fd, b"\x03")
        pressed = True
    try:
        data = os.read(fd, 65536) if select.select([fd], [], [], 1)[0] else None
    except OSError:
        break
    if data == b"":
        break
    out += data or b""
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
last = out.decode().split("\033[H")[-1].replace("\r", "").replace("\033[K", "").replace("\033[J", "")
assert pressed and status == 0 and "\033" not in last, (pressed, status, last)
rows = last.split("^C")[0].split("\n")
assert len(rows) <= lines and all(len(row) < columns for row in rows), rows
print("\n".join(row.rstrip() for row in rows))
PYTHON
python3 terminal.py 40 90 'hits' "$PROFCPU" counters -p "$pid" --counters "$KNOWN" >table || fail "$(cat table)"
grep -qE "^profcpu counters: counters, process $pid, every 1 s" table || fail "$(cat table)"
grep -qE '^    hits \(\{hit\}\)$' table && grep -qE '^        area=north +[0-9]*[89]* +9$' table || fail "$(cat table)"
grep -qE '^    Level \(MB\) +42\.5 ' table && grep -qE 'Percentile=50,route=/a(,[^ ]*)? +5[01] ' table || fail "$(cat table)"
python3 terminal.py 9 50 'more values' "$PROFCPU" counters -p "$pid" --counters Known.Many >table || fail "$(cat table)"
grep -qE '^\(3[0-9] more values\)$' table || fail "$(cat table)"

echo "programs that end, and that are started"
status=0
counters --counters Known.Meter,System.Runtime -d 300 -- "$PUBLISHED/counters-net9/counters" 3 7 || status=$?
[ "$status" = 7 ] && says 'the process ended' || fail "exit $status: $(cat out err)"
grep -q '^working pid' out && grep -q ' Known.Meter 21.5 temperature' out || fail "$(cat out err)"
refused 2 'write to a file with -o' --format csv -- true
refused 2 'a command is missing' --
refused 127 'cannot execute ./missing' -- ./missing
"$PROFCPU" counters --diagnostic-port "$T/port" --counters Known.Meter -o listen 2>err &
WATCHER=$! WATCHED=listen
started $WATCHER
wait_for 60 test -S port || fail "no socket: $(cat err)"
start late env DOTNET_DiagnosticPorts="$T/port" "$PUBLISHED/counters-net10/counters"
has temperature 2
end INT 0
working 10
victim=$STARTED
watch killed.json -p "$victim" --counters "$KNOWN" --format json
has Sold 2
has as-meter 2
kill -KILL "$victim"
end 0 1
says 'the process was killed, or closed the connection'
known json killed.json

echo "outputs that fail"
watch killed.csv -p "$pid" --counters "$KNOWN" --format csv
has Sold 2
has requests 2
end KILL 137
known csv killed.csv
cp known.csv good.csv
kill -STOP "$pid"
refused 1 'did not answer in time' -p "$pid" -o good.csv --format csv
kill -CONT "$pid"
cmp known.csv good.csv || fail "a run that cannot begin replaces an old file"
refused 1 'cannot create no/such/file' -p "$pid" -o no/such/file
{ "$PROFCPU" counters -p "$pid" -d 60 --counters Known.Many 2>err || echo $? >status; } | head -n 1 >/dev/null
[ "$(cat status)" = 141 ] && [ ! -s err ] || fail "a reader that leaves: exit $(cat status): $(cat err)"
{ (trap '' PIPE && "$PROFCPU" counters -p "$pid" -d 60 --counters Known.Many 2>err) && echo 0 >status; } | head -n 1 >/dev/null
[ "$(cat status)" = 0 ] && [ ! -s err ] || fail "a reader that leaves, without SIGPIPE: exit $(cat status): $(cat err)"
status=0
"$PROFCPU" counters -p "$pid" -d 60 >&- 2>err || status=$?
[ "$status" = 1 ] && says 'cannot write to stdout' || fail "exit $status: $(cat err)"
if unshare --mount true 2>/dev/null; then
	mkdir small && export PROFCPU pid
	# shellcheck disable=SC2016 # the inner shell's own
	unshare --mount bash -c 'mount -t tmpfs -o size=8k none small || exit 9
		"$PROFCPU" counters -p "$pid" -d 100 --counters Known.Many --refresh-interval 0.1 --format json -o small/full.json 2>err
		echo $? >status; cp small/full.json full.json'
	[ "$(cat status)" = 1 ] && says 'cannot write small/full.json: No space left' || fail "exit $(cat status): $(cat err)"
	python3 -c 'import json; assert len(json.load(open("full.json"))["Events"]) > 20' || fail "$(tail -c 300 full.json)"
fi

echo "what is refused"
refused 1 'has no diagnostic port' -p $$
refused 1 'does not exist' -p 2147483647
refused 2 'exclude each other' -p "$pid" -- true
refused 2 "lacks a ]" -p "$pid" --counters 'A[b'
refused 2 "is not table, csv or json" -p "$pid" --format xml
refused 2 "refresh-interval" -p "$pid" --refresh-interval 0.01
refused 2 "-d must be longer than --refresh-interval" -p "$pid" --refresh-interval 2 -d 2
"$PROFCPU" info -p "$pid" >/dev/null || fail "the runtime no longer answers"
exit 0
