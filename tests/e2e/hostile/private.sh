#!/usr/bin/env bash
# Only its owner can read a recording, and files planted at its place are not written to.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_sampling
umask 022
start_shares 60
mode() { stat -c %a "$1"; }

"$PROFCPU" collect -p "$SHARES_PID" -d 0.5 -o mine || fail "collect"
for f in perf.data prof.tar.gz perf_script.out symbols/names symbols/users; do
	[ "$(mode "mine/$f")" = 600 ] || fail "$f has mode $(mode "mine/$f")"
done
[ "$(mode mine/symbols)" = 700 ] || fail "symbols has mode $(mode mine/symbols)"
for f in flamegraph.svg folded_stacks.out; do
	[ "$(mode mine/$f)" = 644 ] || fail "$f has mode $(mode mine/$f), which differs from the umask"
done
"$PROFCPU" postprocess -o unpacked mine/prof.tar.gz || fail "postprocess of the archive"
[ "$(mode unpacked/perf.data)" = 600 ] || fail "the unpacked perf.data has mode $(mode unpacked/perf.data)"
mkdir by-tar && tar -xzf mine/prof.tar.gz -C by-tar --strip-components=1 || fail "tar"
(umask 027 && "$PROFCPU" postprocess -q -o unpacked.027 mine/prof.tar.gz) || fail "postprocess of the archive"
for dir in by-tar:644 unpacked:644 unpacked.027:640; do
	modes="600 600 600 700 600 ${dir#*:} ${dir#*:} ${dir#*:}" dir=${dir%:*}
	[ "$(cd "$dir" && stat -c %a perf.data perf_script.out report.json symbols symbols/names manifest.json flamegraph.svg folded_stacks.out | xargs)" = "$modes" ] ||
		fail "modes: $(ls -l "$dir" "$dir/symbols")"
done

echo "planted links"
mkdir planted
for f in perf.data manifest.json manifest.json.tmp flamegraph.svg folded_stacks.out perf_script.out prof.tar.gz; do
	echo precious >"victim.$f"
	ln -s "../victim.$f" "planted/$f"
done
mkfifo planted/pipe && ln -f planted/pipe planted/perf_script.out
timeout 20 "$PROFCPU" collect -p "$SHARES_PID" -d 0.5 -o planted || fail "collect"
for f in victim.*; do
	[ "$(cat "$f")" = precious ] || fail "wrote to $f through a link"
done
[ ! -L planted/perf.data ] && [ -s planted/perf.data ] || fail "perf.data is still the link"

echo "a directory that is moved and replaced during the recording"
"$PROFCPU" collect -q -p "$SHARES_PID" -F 999 -d 60 -o moving >"$T/moving.log" 2>&1 </dev/null &
pid=$!
wait_for 10 [ -s moving/manifest.json ] || fail "the recording did not begin: $(cat "$T/moving.log")"
mv moving moved && mkdir decoy && echo precious >decoy/perf.data && ln -s decoy moving || fail "mv"
sleep 0.5
kill -INT "$pid"
wait "$pid" || fail "collect: exit $?: $(cat "$T/moving.log")"
[ "$(ls -A decoy)" = perf.data ] && [ "$(cat decoy/perf.data)" = precious ] || fail "wrote into the replacement: $(ls -A decoy)"
for f in perf.data manifest.json flamegraph.svg folded_stacks.out perf_script.out prof.tar.gz symbols/names; do
	[ -s "moved/$f" ] || fail "$f is missing"
done
at_least "$(share_of moved/folded_stacks.out ';work;')" 80 || fail "stacks of the workload are missing"

echo "a directory of another user"
if [ "$(id -u)" = 0 ]; then
	mkdir shared && cd shared && mkdir profilings && chown 12345 profilings || fail "chown"
	refuses "$PROFCPU" collect -p "$SHARES_PID" -d 0.5
	grep -q 'user 12345 owns it' "$T/refused" || fail "$(cat "$T/refused")"
	[ -z "$(ls profilings)" ] || fail "wrote into a directory of another user"
	rmdir profilings && mkdir away && ln -s away profilings && chown -h 12345 profilings
	# The owner of the working directory could lead the outputs to our files, too.
	for owner in 0 12345; do
		chown $owner . && refuses "$PROFCPU" collect -p "$SHARES_PID" -d 0.5
		[ -z "$(ls away)" ] || fail "followed a link of another user"
	done
	chown -h 0 profilings && "$PROFCPU" collect -q -p "$SHARES_PID" -d 0.5 || fail "refused our link"
	[ -n "$(ls away)" ] || fail "nothing was written"

	echo "a directory of -o of another user"
	mkdir "$T/o" && cd "$T/o" && mkdir theirs ours && ln -s ours link && chown -h 12345 theirs link || fail "chown"
	for dir in theirs theirs/ "$T/o/theirs" link; do
		case $dir in link) why='it has a link of user 12345' ;; *) why='user 12345 owns it' ;; esac
		refuses "$PROFCPU" collect -p "$SHARES_PID" -d 0.5 -o "$dir"
		grep -q "cannot write to $dir: $why" "$T/refused" || fail "collect: $(cat "$T/refused")"
		refuses "$PROFCPU" postprocess -o "$dir" "$T/mine"
		grep -q "cannot write to $dir: $why" "$T/refused" || fail "postprocess: $(cat "$T/refused")"
	done
	ln -s theirs ours.link
	refuses "$PROFCPU" collect -p "$SHARES_PID" -d 0.5 -o ours.link
	[ -z "$(ls theirs)$(ls ours)" ] || fail "wrote into a directory of another user"
	# The owner of the directory above could replace it anyway.
	chown 12345 . && "$PROFCPU" collect -q -p "$SHARES_PID" -d 0.5 -o theirs || fail "refused the directory in the user's own"
	[ -s theirs/perf.data ] || fail "nothing was written"
fi
exit 0
