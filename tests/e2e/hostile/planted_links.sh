#!/usr/bin/env bash
# A user puts links to files of root into a recording. Root's commands on it do not read these files for the user, and do
# not change them, also if a link leads the output directory there. Recordings of users, and a user's own links, work.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_root
need_sampling
need setpriv
user=12345

mkdir -m 700 vault
start_shares 20
record vault/recording -F 999 -p "$SHARES_PID" -d 1
sed -i 's/"target": "[^"]*"/"target": "SECRET_TARGET"/' vault/recording/manifest.json
chmod 600 vault/recording/manifest.json
shared_names=$("$PROFCPU" fold --offline vault/recording | grep -c ';work;')
[ "$shared_names" -gt 0 ] || fail "the recording has no names"

# theirs: a recording of the user in $D.
theirs() {
	D=$T/theirs
	rm -rf "$D"
	cp -r vault/recording "$D" && rm "$D"/*.* && cp vault/recording/{perf.data,samples.idx,manifest.json} "$D"
	sed -i 's/SECRET_TARGET/OWN_TARGET/' "$D/manifest.json"
	chown -R $user:$user "$D"
}
# plant HOW NAME: replaces that file of the recording by a link to root's: a symbolic or a hard one.
plant() {
	rm -rf "${D:?}/$2"
	case $1 in
	symbolic) ln -s "$T/vault/recording/$2" "$D/$2" && chown -h $user:$user "$D/$2" ;;
	hard) ln "$T/vault/recording/$2" "$D/$2" ;;
	esac || fail "ln"
}

theirs
"$PROFCPU" postprocess -q "$D" 2>err || fail "a user's recording: $(cat err)"
grep -q ';work;' "$D/folded_stacks.out" || fail "a user's recording has no names"
grep -q OWN_TARGET "$D/flamegraph.svg" || fail "a user's recording has no title"

for how in symbolic hard; do
	echo "$how links"
	theirs && plant $how perf.data
	for command in fold postprocess "postprocess -o copy"; do
		# shellcheck disable=SC2086 # words
		refuses "$PROFCPU" $command "$D"
		grep -q 'cannot open its perf.data: another user may have linked it' "$T/refused" || fail "$command: $(cat "$T/refused")"
	done
	[ ! -e copy ] && [ ! -e "$D/folded_stacks.out" ] || fail "outputs of root's perf.data"

	theirs && plant $how manifest.json
	"$PROFCPU" postprocess "$D" >log 2>&1 || fail "manifest.json: $(cat log)"
	grep -q 'manifest.json: not readable: another user may have linked it' log || fail "no warning: $(cat log)"
	grep -rlF SECRET_TARGET "$D"/*.svg "$D"/*.out && fail "root's manifest.json reached these files"
	grep -q SECRET_TARGET vault/recording/manifest.json || fail "root's manifest.json was changed"

	theirs && plant $how samples.idx
	"$PROFCPU" postprocess "$D" >log 2>&1 || fail "samples.idx: $(cat log)"
	grep -q 'samples.idx: cannot be used: another user may have linked it' log || fail "no warning: $(cat log)"

	theirs
	for name in symbols/names symbols/users; do
		plant $how $name
	done
	"$PROFCPU" fold --offline "$D" >folded 2>log
	grep ';work;' folded && fail "names of root's symbols/names were read"
	"$PROFCPU" postprocess -q "$D" 2>log || fail "symbols/names: $(cat log)"
	tar -tzf "$D/prof.tar.gz" >members || fail "tar"
	grep -q symbols/names members || fail "the archive has no names: $(cat members)"
	grep -q symbols/users members && fail "root's symbols/users is in the archive"
done

echo "a link to a directory"
theirs && plant symbolic symbols
"$PROFCPU" fold --offline "$D" >folded 2>log
grep ';work;' folded && fail "names of root's symbols/ were read"
grep -q 'symbols: cannot be used: another user may have linked it' log || fail "no warning: $(cat log)"

echo "the header of root's file is not completed by a hard link"
mkdir -m 755 open.vault && cp vault/recording/perf.data open.vault && chmod 644 open.vault/perf.data
printf '\0\0\0\0\0\0\0\0' | dd of=open.vault/perf.data bs=1 seek=48 conv=notrunc status=none # size of the data
cp open.vault/perf.data before
theirs && ln -f open.vault/perf.data "$D/perf.data" && sed -i 's/"finished": true/"finished": false/' "$D/manifest.json"
"$PROFCPU" postprocess "$D" >log 2>&1
grep -q 'cannot repair .*perf.data: Too many links' log || fail "no warning: $(cat log)"
cmp before open.vault/perf.data || fail "root's perf.data was changed"

echo "a user's own links"
theirs && mkdir -m 755 big && mv "$D/perf.data" "$D/symbols" big && chown $user big
ln -s ../big/perf.data ../big/symbols "$D" && chown -h $user:$user "$D"/*
setpriv --reuid=$user --regid=$user --clear-groups "$PROFCPU" fold --offline "$D" >folded 2>log || fail "own links: $(cat log)"
[ "$(grep -c ';work;' folded)" = "$shared_names" ] || fail "own links have no names: $(cat log)"
chown -h 0:0 "$D" "$D"/* && "$PROFCPU" fold --offline "$D" >folded 2>log || fail "root's links: $(cat log)"
[ "$(grep -c ';work;' folded)" = "$shared_names" ] || fail "root's links have no names: $(cat log)"

echo "an output directory behind a user's link"
mkdir evil && chown $user evil && find vault -printf '%p %i %s %T@\n' | sort >before
# unled OUT COMMAND...: the command refuses to write to OUT.
unled() {
	refuses "${@:2}"
	grep -q "cannot write to $1: it has a link of user $user, .*; choose another directory with -o" "$T/refused" ||
		fail "$*: $(cat "$T/refused")"
	find vault -printf '%p %i %s %T@\n' | sort | diff before - || fail "$*: root's directory was changed"
}
theirs
for to in "$T/vault/recording" ../vault/recording chain; do
	ln -sfn ../vault/recording evil/chain && ln -sfn "$to" evil/out && chown -h $user evil/*
	for out in evil/out evil/out/ evil/out/. evil/out/new; do
		unled $out "$PROFCPU" collect -p "$SHARES_PID" -d 0.1 -o $out
		unled $out "$PROFCPU" postprocess "$D" -o $out
	done
done
ln -s evil/out ours
unled ours "$PROFCPU" collect -p "$SHARES_PID" -d 0.1 -o ours
ln -s ../vault evil/profilings && chown -h $user evil/profilings
unled profilings env -C evil "$PROFCPU" collect -p "$SHARES_PID" -d 0.1

echo "a recording behind a user's link"
for to in "$T/vault/recording" ../vault/recording chain; do
	ln -sfn "$to" evil/out && chown -h $user evil/out
	for input in evil/out evil/out/ evil/out/. ours; do
		unled $input "$PROFCPU" postprocess $input
		unled $input "$PROFCPU" postprocess -dir $input
	done
done
"$PROFCPU" fold --offline evil/out >folded 2>log || fail "fold writes nothing there: $(cat log)"
"$PROFCPU" postprocess -q evil/out -o read.only >log 2>&1 || fail "with -o nothing is written there: $(cat log)"
ln -s "$D" rooted
for input in rooted rooted/. "/proc/self/cwd/theirs" /dev/fd/9; do
	rm -f "$D/flamegraph.svg"
	"$PROFCPU" postprocess -q "$input" >log 2>&1 9<"$D" || fail "$input: $(cat log)"
	[ -s "$D/flamegraph.svg" ] || fail "$input: no output"
done
"$PROFCPU" postprocess -q - <"$D" >log 2>&1 || fail "stdin: $(cat log)"

echo "an output directory behind root's links, or in a user's directory"
mkdir -p disk/deep && ln -s "$T/disk" evil/rooted && ln -s evil/rooted/../disk/deep again && mkdir evil/theirs && chown $user evil/theirs
for out in evil/rooted evil/rooted/new again again/new evil/new evil/theirs "/proc/self/cwd/evil/cwd" /dev/fd/9/fd; do
	"$PROFCPU" collect -q -p "$SHARES_PID" -d 0.1 -o "$out" >log 2>&1 9<disk || fail "$out: $(cat log)"
done
for dir in disk disk/new disk/deep disk/deep/new evil/new evil/theirs evil/cwd disk/fd; do
	[ -s $dir/manifest.json ] || fail "$dir has no recording"
done
mkdir evil/own evil/own.disk && ln -s ../own.disk evil/own/profilings && chown -hR $user evil/own evil/own.disk
setpriv --reuid=$user --regid=$user --clear-groups env -C evil/own "$PROFCPU" postprocess "$D/perf.data" >log 2>&1 || fail "own link: $(cat log)"
[ -n "$(find evil/own.disk -name flamegraph.svg)" ] || fail "no outputs behind the user's own link"
exit 0
