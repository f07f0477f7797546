# shellcheck shell=bash
# A process with many methods (--latency): how long profcpu delays it to read their names, and what profcpu leaves behind.

# attach_latency SERIES FROM TO: the process's own latencies of these seconds: the worst, and the median of the 99th
# percentiles, in ms.
attach_latency() {
	awk -v series="$1" -v from="$2" -v to="$3" '
		$1 == "latency" && $2 == "second" && $3 >= from && $3 <= to {
			for (i = 4; i <= NF; i++)
				if ($i == series) { p99[++n] = $(i + 5) + 0; if ($(i + 7) + 0 > worst) worst = $(i + 7) + 0 }
		}
		END {
			for (i = 1; i <= n; i++) for (k = i + 1; k <= n; k++) if (p99[k] < p99[i]) { x = p99[i]; p99[i] = p99[k]; p99[k] = x }
			printf "%.2f %.2f\n", worst, p99[int((n + 1) / 2)]
		}' wide.log
}
attach_second() { awk '$1 == "latency" { n = $3 } END { print n + 0 }' wide.log; }
attach_has_second() { [ "$(attach_second)" -ge "$1" ]; }
# attach_window NAME COMMAND...: runs it, prints the latencies meanwhile, and sets $WORST to the requests' worst.
attach_window() {
	local name=$1 from to requests ticks
	shift
	from=$(($(attach_second) + 1))
	"$@" >collect.log 2>&1 || fail "$* gave $?: $(cat collect.log)"
	to=$(($(attach_second) + 1)) # the current second is part of it
	wait_for 10 attach_has_second "$to"
	requests=$(attach_latency requests "$from" "$to") ticks=$(attach_latency ticks "$from" "$to")
	printf '%-22s requests: worst %8s, p99 %8s; ticks: worst %8s, p99 %8s ms\n' "$name" \
		"${requests% *}" "${requests#* }" "${ticks% *}" "${ticks#* }"
	WORST=${requests% *}
}

attach_left() { # files and mappings that profcpu left behind
	local fd
	find /tmp -maxdepth 1 -name "*perf-$PID.map*" -o -maxdepth 1 -name "*profcpu*$PID*"
	for fd in "/proc/$PID/fd"/*; do
		readlink "$fd" | grep -E 'perf-[0-9]+\.map|jit-[0-9]+\.dump'
	done
	grep -E 'perf-[0-9]+\.map|jit-[0-9]+\.dump' "/proc/$PID/maps"
}
attach_clean() { # EVENT
	local found
	found=$(attach_left)
	[ -z "$found" ] || fail "left behind after $1: $found; profcpu printed: $(cat collect.log)"
}

# delays_little WAY MS METHODS: reading names of METHODS by WAY delays the process at most MS longer than a
# recording without names. No file, mapping or setting of profcpu remains.
promise_delays_little() {
	local none try limit
	need_sampling
	grep '^made' wide.log
	wait_for 30 attach_has_second 3
	for try in 1 2 3; do
		rm -rf none names
		attach_window "sampled, no names" "$PROFCPU" collect --no-download -q -o none -p "$PID" -d 3 --jit-names=none
		none=$WORST
		attach_window "sampled, $1" "$PROFCPU" collect --record-only --jit-names="$1" -o names -p "$PID" -d 3
		grep "process $PID (.*): names come from .*$1" collect.log || fail "names do not come from $1: $(cat collect.log)"
		# Other programs on the machine delay it too, so there are three tries.
		limit=$(awk -v none="$none" -v most="$2" 'BEGIN { print none + most }')
		at_least "$limit" "$WORST" && break
		echo "again after try $try: $WORST ms, without names $none ms"
	done
	at_least "$limit" "$WORST" || fail "delayed for $WORST ms, for $none ms without names"
	attach_clean "the recording"
	[ "$(grep -c . "names/symbols/$PID.methods")" -ge "$3" ] || fail "fewer than $3 methods: $(grep -c . "names/symbols/$PID.methods")"
}
