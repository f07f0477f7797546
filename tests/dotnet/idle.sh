# shellcheck shell=bash
# Checks idle threads in a recording of the web API. Source this after lib.sh.

# check_idle FOLDED MAIN: checks that nearly all waits of the framework's threads and of the main thread, named MAIN,
# are idle. Checks pool threads without work too. Prints a table.
check_idle() {
	local comm all idle
	for comm in '.NET SynchManag' '.NET EventPipe' '.NET SigHandler' '.NET Finalizer' '.NET Sockets' '.NET TP Gate' '.NET Timer' 'Kestrel Timer' "$2"; do
		all=$(weight_of <(grep -v 'waiting for a CPU' "$1") "^$comm;") idle=$(weight_of "$1" "^$comm;[[]idle] ?\$")
		printf '%-16s %9d us, idle %s %%\n' "$comm" "$all" "$(awk -v i="$idle" -v a="$all" 'BEGIN { printf "%.2f", a ? 100 * i / a : 0 }')"
		awk -v i="$idle" -v a="$all" 'BEGIN { exit !(a > 1e6 && i >= 0.99 * a) }' || fail "$comm is not idle: $(grep "^$comm" "$1")"
	done
	at_least "$(weight_of "$1" '^.NET TP Worker;[[]idle] ?$')" 1000000 || fail "pool threads without work are not idle"
}
