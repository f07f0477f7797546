#!/usr/bin/env bash
# profcpu(1) formats without a warning, and agrees with `profcpu help COMMAND` about the options of each command.
# Runs beside others.
set -eu
page=$ROOT/profcpu/profcpu.1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0
complain() {
	echo "$*"
	bad=1
}

# The long options of a command, from its usage text and from its section of the page.
in_usage() { "$PROFCPU" help "$1" | grep -Eo -- '--[a-z][a-z-]+' | sed 's/^--//' | sort -u; }
in_page() {
	awk -v want="profcpu $1" '/^\.S[sh] / { on = index($0, want) > 0 } on && /^\.It / {
		while (match($0, /(Fl|,) -[a-z][a-z-]+/)) {
			option = substr($0, RSTART, RLENGTH)
			sub(/.* -/, "", option)
			print option
			$0 = substr($0, RSTART + RLENGTH)
		}
	}' "$page" | sort -u
}

"$PROFCPU" help | sed -n 's/^  \([a-z]*\)  .*/\1/p' >"$dir/commands"
[ -s "$dir/commands" ] || complain "profcpu help lists no commands"
while read -r command; do
	grep -q "^\.Ss .*profcpu $command" "$page" || complain "no section on '$command'"
	in_usage "$command" >"$dir/usage"
	in_page "$command" >"$dir/page"
	# -dir is a spelling of the operand in the synopsis of the usage text.
	[ "$command" = postprocess ] && echo dir >>"$dir/usage"
	sort -u -o "$dir/usage" "$dir/usage"
	# Both are the same except texts like "2>&1" and examples.
	diff "$dir/usage" "$dir/page" >"$dir/diff" || complain "$command: < usage text, > manual page:" "$(cat "$dir/diff")"
done <"$dir/commands"

# Doctor, the page and docs/permissions.md explain the same capabilities.
capabilities=$(grep -o '"CAP_[A-Z_]*"' "$ROOT/profcpu/doctor_report.c" | tr -d '"' | sort -u)
[ "$(wc -w <<<"$capabilities")" -ge 6 ] || complain "fewer than 6 capabilities in doctor_report.c"
for capability in $capabilities; do
	grep -q "$capability" "$page" || complain "the page does not explain $capability"
	grep -q "$capability" "$ROOT/docs/permissions.md" || complain "docs/permissions.md does not explain $capability"
done

if command -v man >/dev/null; then
	LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings=w -l "$page" >"$dir/text" 2>"$dir/warnings" || complain "man fails"
	[ ! -s "$dir/warnings" ] || complain "$(cat "$dir/warnings")"
	grep -q 'EXIT STATUS' "$dir/text" || complain "the page has no text"
fi
if command -v mandoc >/dev/null; then
	mandoc -Tlint -Wwarning "$page" >"$dir/warnings" 2>&1 || complain "$(cat "$dir/warnings")"
fi
exit $bad
