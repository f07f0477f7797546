/* fold --inline: functions inlined at the address of a frame, from DWARF on this machine. */
#ifndef PROFCPU_POST_FOLD_INLINE_H
#define PROFCPU_POST_FOLD_INLINE_H

#include "base/outbuf.h"
#include "profile/script_line.h"

#include <stdbool.h>

struct fold_inline;

/* context: add ":file.c:12" to each name. 0 or -ENOMEM. */
int post_fold_inline_new(bool context, struct fold_inline **ret_inline);
void post_fold_inline_free(struct fold_inline *in);

/* Prints a warning if modules could not be read, except those that do not exist. */
void post_fold_inline_warn(const struct fold_inline *in);

/*
 * Writes the functions that stackcollapse-perf.pl --inline gets from addr2line for a frame. Use it
 * as collapse_options.inline_names; ctx is a struct fold_inline.
 *
 * It looks up the address of the line, unchanged, in the file of the module. The file is opened as
 * by opener_named_file, because the text chose its path. If nothing is there, it looks up the
 * address of the symbol in .symtab plus the offset.
 *
 * -ENOENT leaves the frame to the usual rules: modules in brackets, perf maps, kernel images, and
 * paths with characters that a shell interprets. Else 0 or -ENOMEM.
 *
 * Difference to the script: without a symbol table, addr2line names any address after the nearest
 * exported function before it. This function names only addresses that a symbol covers. For
 * functions of headers see struct inline_frame.
 */
int post_fold_inline_names(void *ctx, const struct script_frame *frame, struct outbuf *out);

#endif
