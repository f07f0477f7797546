#!/usr/bin/env bash
# The test of names of precompiled code, on the runtimes of three versions and all ways to deliver a program.
# shellcheck source=tests/e2e/lib.sh
export R2R_VERSIONS="8 9 10" R2R_KINDS="r2r composite single single-r2r single-composite" R2R_METHODS=200000
exec bash "$TESTS/e2e/r2r_names.sh"
