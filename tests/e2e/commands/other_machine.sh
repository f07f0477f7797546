#!/usr/bin/env bash
# The compiler accepts the sources for a machine on which profcpu does not record: AArch64.
# Runs beside others.
# shellcheck source=tests/e2e/lib.sh
. "$TESTS/e2e/lib.sh"
need_release
need aarch64-linux-gnu-gcc-12 pkg-config

# libunwind's headers of that machine are in another package; these declare the parts that are used.
mkdir inc
common=$(dirname "$(find /usr/include -name libunwind-common.h | head -n 1)")
cp "$common"/libunwind-common.h "$common"/libunwind-dynamic.h inc
sed 's/^@/#/' >inc/libunwind.h <<'H'
@pragma once
@include <stddef.h>
@include <stdint.h>
@include <ucontext.h>
@define UNW_TARGET aarch64
@define UNW_TARGET_AARCH64 1
@define UNW_TDEP_CURSOR_LEN 4096
@define UNW_TDEP_IP 30
@define UNW_TDEP_SP 31
@define UNW_TDEP_EH 0
@define UNW_TDEP_NUM_EH_REGS 4
@define UNW_TDEP_LAST_REG 32
enum { UNW_AARCH64_X0, UNW_AARCH64_X30 = 30, UNW_AARCH64_SP, UNW_AARCH64_PC };
typedef uint64_t unw_word_t;
typedef int64_t unw_sword_t;
typedef long double unw_tdep_fpreg_t;
typedef ucontext_t unw_tdep_context_t;
typedef struct { char unused; } unw_tdep_save_loc_t, unw_tdep_proc_info_t;
@include "libunwind-common.h"
@include "libunwind-dynamic.h"
H
# shellcheck disable=SC2046 # words
headers=$(pkg-config --cflags libelf libdw zlib libzstd liblzma libarchive libcurl | sed 's/-I/-idirafter/g')
cd "$ROOT" || exit
# shellcheck disable=SC2086 # words
find base container dotnet elf flamegraph profcpu profile recording sampler symbols unwind -name '*.c' -print0 |
	xargs -0 -P2 -n 40 aarch64-linux-gnu-gcc-12 -fsyntax-only -w -std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I"$T/inc" -I. \
		-I"$BUILD/gen" $headers -idirafter /usr/include -idirafter "$common" 2>"$T/err" ||
	fail "$(grep -m 20 error: "$T/err")"
