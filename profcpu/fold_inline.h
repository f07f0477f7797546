/* fold --inline: the functions that were inlined at a frame's address, from the DWARF of its module on this machine. */
#ifndef PROFCPU_FOLD_INLINE_H
#define PROFCPU_FOLD_INLINE_H

#include "base/outbuf.h"
#include "profile/script_line.h"

#include <stdbool.h>

struct fold_inline;

/* context: ":file.c:12" behind each name. 0 or -ENOMEM. */
int fold_inline_new(bool context, struct fold_inline **ret_inline);
void fold_inline_free(struct fold_inline *in);

/*
 * What stackcollapse-perf.pl --inline makes of a frame by asking addr2line, as collapse_options.inline_names has it. The
 * address is looked up in the module's file as it stands in the line. Where nothing is there, the symbol and its offset are:
 * the symbol's address in .symtab, plus the offset. Modules in brackets, perf maps, kernel images, and paths that a shell
 * would take apart are left to the usual rules.
 *
 * Not as the script: in a file without a symbol table addr2line names any address after the nearest exported function before
 * it, here only what a symbol covers has its name; and for functions of headers see struct inline_frame.
 */
int fold_inline_names(void *ctx, const struct script_frame *frame, struct outbuf *out);

#endif
