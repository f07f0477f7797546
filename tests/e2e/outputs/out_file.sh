#!/usr/bin/env bash
# -o FILE of fold and flamegraph: written completely or not at all, not through planted links, and also to devices and
# pipes.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need mkfifo
umask 022
printf 'main;work 60\nmain;rest 40\n' >in.folded
printf 'app 1 1.0: 1 cycles: \n\t1 work (app)\n\t2 main (app)\n\n' >in.script
"$PROFCPU" fold in.script >fold.good || fail "fold"
"$PROFCPU" flamegraph in.folded >flamegraph.good || fail "flamegraph"
[ -s fold.good ] && [ -s flamegraph.good ] || fail "no output"

each() { # COMMAND: checks -o for it
	command=$1
	case $1 in fold) input=in.script ;; *) input=in.folded ;; esac
	good=$T/$1.good
}
same() { cmp "$1" "$good" || fail "$command: $2"; }
into() { "$PROFCPU" "$command" -o "$1" "$T/$input" 2>"$T/err"; }

for command in fold flamegraph; do
	each $command
	mkdir "$command" && cd "$command" || fail "mkdir"

	into new && same new "a new file"
	[ "$(stat -c %a new)" = 644 ] || fail "$command: a new file has mode $(stat -c %a new)"
	echo old >there && chmod 600 there && ln there other
	into there && same there "over an older file"
	[ "$(stat -c %a there)" = 600 ] || fail "$command: a private file has mode $(stat -c %a there) now"
	[ "$(cat other)" = old ] || fail "$command: wrote through a hard link"
	echo cut >there.4711.tmp && echo mine >there.tmp
	into there && [ ! -e there.4711.tmp ] && [ -e there.tmp ] || fail "$command: remains of a killed run stay, or other files are removed"
	rm there.tmp
	mkdir below && ln -s below/target link && ln -s ../link below/chain
	into below/chain && same below/target "our own links are followed"
	[ -L link ] && [ -L below/chain ] || fail "$command: our own links were replaced"

	echo "$command: not a regular file"
	into /dev/stdout >piped && same piped "/dev/stdout, a file"
	into /dev/stdout | cat >piped
	same piped "/dev/stdout, a pipe"
	into /dev/null || fail "$command: /dev/null"
	[ -c /dev/null ] && [ -L /dev/stdout ] || fail "$command: a device was replaced"
	mkfifo fifo && { cat fifo >piped & } && into fifo && wait $!
	same piped "a FIFO"
	[ -p fifo ] || fail "$command: the FIFO was replaced"
	"$PROFCPU" "$command" "$T/$input" -o >(cat >substituted; : >ended) && wait_for 10 test -e ended
	same substituted "process substitution"

	echo "$command: unwritable files"
	for bad in below nowhere/file new/file below/; do
		into "$bad" && fail "$command: wrote to '$bad'"
		grep -q 'error: cannot write' "$T/err" || fail "$command: '$bad': $(cat "$T/err")"
	done
	into "" && fail "$command: wrote to a file without a name"
	grep -q "error: '-o' has an empty value" "$T/err" || fail "$command: no name: $(cat "$T/err")"
	ln -s loop loop
	into loop && fail "$command: wrote to a link to itself"
	[ -z "$(find . -name '*.tmp')" ] || fail "$command: left behind: $(find . -name '*.tmp')"

	if [ "$(id -u)" = 0 ]; then
		echo "$command: files planted by another user"
		mkdir -m 1777 world && echo precious >victim && chmod 600 victim
		for path in world/out world/nothing; do
			case $path in world/out) to=../victim ;; *) to=../missing ;; esac
			ln -s $to $path && chown -h 12345 $path
			into $path || fail "$command: $(cat "$T/err")"
			[ ! -L $path ] && same $path "over a planted link"
		done
		[ "$(cat victim)" = precious ] && [ ! -e missing ] || fail "$command: wrote through a planted link"
		echo theirs >world/file && chown 12345 world/file && chmod 666 world/file
		into world/file && same world/file "over a planted file"
		[ "$(stat -c %u:%a world/file)" = 0:644 ] || fail "$command: a planted file keeps its owner"
	fi
	cd "$T" || exit 1
done

echo "a full device leaves the older file"
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
	T_MOUNTED+=("$T/small")
	awk 'BEGIN { for (i = 0; i < 9000; i++) printf "app %d 1.0: 1 cycles: \n\t1 work_%d (app)\n\n", i, i }' >many.script
	echo old >small/out
	for command in fold flamegraph; do
		"$PROFCPU" $command -o small/out many.script 2>err && fail "$command: succeeded without space"
		grep -q 'cannot write small/out: No space' err || fail "$command: $(cat err)"
		[ "$(cat small/out)" = old ] && [ "$(ls small)" = out ] || fail "$command: left $(ls -l small)"
	done
else
	echo "(not tried: a tmpfs cannot be mounted)"
fi
exit 0
