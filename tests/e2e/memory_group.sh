# shellcheck shell=bash disable=SC2034 # tests use these variables
# Sourced after lib.sh: runs commands in a control group that limits their memory to $LIMIT_MIB. Skips the test without one.
LIMIT_MIB=64

# A control group of that size for memory, of version 2 or 1; its directory is in $GROUP.
group_at() { # DIRECTORY FILE
	mkdir "$1" 2>/dev/null || return
	[ -f "$1/$2" ] && echo $((LIMIT_MIB << 20)) >"$1/$2" && GROUP=$1 && return
	rmdir "$1"
	return 1
}
group_at "/sys/fs/cgroup/profcpu-test.$$" memory.max ||
	group_at "/sys/fs/cgroup/memory/profcpu-test.$$" memory.limit_in_bytes ||
	skip "needs a control group for memory that this user may make"
clean_up() {
	t_clean_up
	rmdir "$GROUP"
}
trap clean_up EXIT

# shellcheck disable=SC2016 # for the other shell
in_group() { sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP" "$@"; }

# measure COMMAND...: runs it in the group, with stderr in err. Its exit status is in $STATUS, its largest memory in MiB in $MIB.
measure() {
	in_group "$BUILD/helpers/peak_kib" "$@" 2>err
	STATUS=$?
	MIB=$(($(tail -n 1 err) / 1024))
}
