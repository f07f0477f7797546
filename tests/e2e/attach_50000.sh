#!/usr/bin/env bash
# Names of a process with 50,000 JIT-compiled methods: out of its memory, on .NET 10, it is not held up at all; by its perf
# map, on .NET 8, for at most a second. Afterwards no file, mapping or setting of ours is left, also where profcpu was killed and started again.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
need_release
for version in ${ATTACH_BY_MEMORY:-10} 8; do
	need_published "wide-net-net$version"
done

# What is seen from inside, of seconds FROM to TO: the worst and the middle of the 99th percentiles of SERIES, in milliseconds.
latency() { # SERIES FROM TO
	awk -v series="$1" -v from="$2" -v to="$3" '
		$1 == "latency" && $2 == "second" && $3 >= from && $3 <= to {
			for (i = 4; i <= NF; i++)
				if ($i == series) { p99[++n] = $(i + 5) + 0; if ($(i + 7) + 0 > worst) worst = $(i + 7) + 0 }
		}
		END {
			for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (p99[k] < p99[i]) { x = p99[i]; p99[i] = p99[k]; p99[k] = x }
			printf "%.2f %.2f\n", worst, p99[int((n + 1) / 2)]
		}' "$T/wide.log"
}
has_second() { [ "$(second)" -ge "$1" ]; }
second() { awk '$1 == "latency" { n = $3 } END { print n + 0 }' "$T/wide.log"; }

# window NAME SECONDS [COMMAND...]: runs it, and prints and keeps in $WORST the requests' worst meanwhile.
window() {
	local name=$1 seconds=$2 from to requests ticks
	shift 2
	from=$(($(second) + 1))
	if [ $# -gt 0 ]; then
		"$@" >"$T/collect.log" 2>&1 || fail "$* gave $?: $(cat "$T/collect.log")"
	else
		sleep "$seconds"
	fi
	to=$(($(second) + 1)) # the second that has begun is part of it
	wait_for 10 has_second "$to"
	requests=$(latency requests "$from" "$to") ticks=$(latency ticks "$from" "$to")
	printf '%-8s %-22s requests: worst %8s, p99 %8s; ticks: worst %8s, p99 %8s ms\n' "$publish" "$name" \
		"${requests% *}" "${requests#* }" "${ticks% *}" "${ticks#* }"
	WORST=${requests% *}
}

left() { # PID: what is left of ours
	local fd
	find /tmp -maxdepth 1 -name "*perf-$1.map*" -o -maxdepth 1 -name "*profcpu*$1*"
	for fd in "/proc/$1/fd"/*; do
		readlink "$fd" | grep -E 'perf-[0-9]+\.map|jit-[0-9]+\.dump'
	done
	grep -E 'perf-[0-9]+\.map|jit-[0-9]+\.dump' "/proc/$1/maps"
}
nothing_left() { # PID AFTER-WHAT
	local found
	found=$(left "$1")
	[ -z "$found" ] || fail "$publish: after $2 there is: $found; it said: $(cat "$T/collect.log")"
}

attach() { # PUBLISH WORST-ALLOWED WAY WORDS
	local way=$3 words=$4
	publish=$1
	# While it unloads collectible assemblies a runtime that is asked to list its methods crashes now and then.
	start_wide "$publish" 600 --threads 1 --methods 50000 --latency --except Collect
	grep '^made' "$T/wide.log"
	wait_for 30 has_second 3
	for try in 1 2 3; do
		window "alone" 4
		window "sampled, no names" 0 "$PROFCPU" collect --no-download -q -o "$T/none" -p "$WIDE_PID" -d 4 --jit-names=none
		local none=$WORST
		window "sampled, $way" 0 "$PROFCPU" collect --record-only --jit-names="$way" -o "$T/$publish" -p "$WIDE_PID" -d 4
		grep '^profcpu: names of' "$T/collect.log"
		grep -q "names of process $WIDE_PID .* come from .*$words" "$T/collect.log" || fail "not by $way: $(cat "$T/collect.log")"
		# Whatever else runs on the machine holds it up too, so it may try again.
		at_least "$(awk -v none="$none" -v most="$2" 'BEGIN { print none + most }')" "$WORST" && break
		echo "try $try: $WORST ms, without names $none ms"
	done
	at_least "$(awk -v none="$none" -v most="$2" 'BEGIN { print none + most }')" "$WORST" || fail "$publish: held up for $WORST ms, $none without names"
	nothing_left "$WIDE_PID" "the recording"
	[ "$(grep -c . "$T/$publish/symbols/$WIDE_PID.methods")" -ge 50000 ] ||
		fail "$publish: fewer than 50,000 methods: $(grep -c . "$T/$publish/symbols/$WIDE_PID.methods")"
}

for version in ${ATTACH_BY_MEMORY:-10}; do # the long test has 9 and 8 too
	attach "wide-net-net$version" 20 memory memory
	stop "$WIDE_PID"
done
attach wide-net-net8 1000 perfmap 'perf map'

# Killed while the map is on: the next one takes back what it left, also one that needs no map itself.
for next in "" --jit-names=rundown; do
	start killed "$PROFCPU" collect --no-download -q --jit-names=perfmap -o "$T/killed" -p "$WIDE_PID" -d 60
	killed=$STARTED
	wait_for 30 test -s "/tmp/perf-$WIDE_PID.map" || fail "no map is switched on: $(cat "$T/killed.log")"
	kill -KILL "$killed"
	wait "$killed" 2>/dev/null
	[ -n "$(left "$WIDE_PID")" ] || fail "nothing was left by kill -9, so that nothing is tried"
	# shellcheck disable=SC2086 # none is no argument
	"$PROFCPU" collect --no-download -o "$T/next" -p "$WIDE_PID" -d 1 $next >"$T/collect.log" 2>&1 || fail "the next collect: $(cat "$T/collect.log")"
	nothing_left "$WIDE_PID" "kill -9 and a new start${next:+ with $next}"
done
