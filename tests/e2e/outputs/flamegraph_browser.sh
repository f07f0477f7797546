#!/usr/bin/env bash
# The picture in headless Chromium, by mouse and keyboard: zoom, tooltip, search with matched share, address, dark mode,
# size.
# SHOTS=DIR keeps the screenshots.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need python3
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || skip "needs chromium"
python3 "$TESTS/browser/flamegraph.py" "$PROFCPU" "$T" "${SHOTS:-$T}" || fail "see above"
