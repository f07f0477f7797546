#!/usr/bin/env bash
# Wrong usage of whatever command: status 2, nothing on stdout, one line in one form that says where the options are shown.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"

# wrong WHAT COMMAND ARGUMENT...: the line says WHAT of it.
wrong() {
	local what=$1 status=0
	shift
	timeout 20 "$PROFCPU" "$@" >out 2>err </dev/null || status=$?
	[ "$status" = 2 ] || fail "$*: exit $status: $(cat err)"
	[ "$(cat err)" = "profcpu: error: $what" ] || fail "$*: $(cat err)"
	[ ! -s out ] || fail "$*: something on stdout"
}
shows() { echo "; \`profcpu help $1\` shows ${2:-the options}"; }

for command in collect postprocess fold flamegraph ps doctor; do
	wrong "'--nonsense' is no option$(shows $command)" $command --nonsense
	wrong "'-nonsense' is no option$(shows $command)" $command -nonsense
	wrong "'-z' is no option$(shows $command)" $command -z
	"$PROFCPU" help $command | head -n 1 | grep -q "^usage: profcpu $command" || fail "no help for $command"
done
for command in postprocess fold flamegraph; do
	wrong "'-o' lacks its value$(shows $command)" $command -o
	wrong "'--output' lacks its value$(shows $command)" $command --output
	wrong "'--offline=x' takes no value$(shows $command)" $command --offline=x
	wrong "$command takes one input$(shows $command how)" $command one two
done
wrong "postprocess takes one input$(shows postprocess how)" postprocess
wrong "postprocess takes no argument 'two'$(shows postprocess how)" postprocess -dir one two
wrong "'-z' is no option$(shows postprocess)" postprocess -qz one
wrong "'--t' can be several options$(shows flamegraph)" flamegraph --t
wrong "'-d' lacks its value$(shows collect)" collect -a -d
for command in ps doctor version; do
	wrong "$command takes no argument 'x'$(shows $command how)" $command x
done
wrong "help takes no argument 'x'$(shows help how)" help fold x
wrong "there is no command 'nonsense'; \`profcpu help\` lists them" nonsense
wrong "there is no command 'nonsense'; \`profcpu help\` lists them" help nonsense
wrong "--names takes perf or full, not 'short'" fold --names short
exit 0
