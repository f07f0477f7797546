/* Which functions were inlined where, and the source lines, from an image's DWARF. */
#ifndef SYMBOLS_INLINES_H
#define SYMBOLS_INLINES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INLINES_DEPTH_MAX 64 /* frames of one address */
#define INLINES_SPANS_MAX ((size_t)1 << 22) /* ranges of all units */
#define INLINES_KEPT_MAX ((uint64_t)112 << 20) /* bytes; when more was read it is begun anew */
#define INLINES_SPLIT_MAX 256 /* files of split units that are open at a time */

struct inlines;

/*
 * One function at an address. What `addr2line -a ADDR -e FILE -i -f -s -C` prints is function, demangled by demangle_full,
 * and file:line; for the first frame, where function is NULL or only_plain, it takes the symbol table's name instead (asked
 * for several addresses at once, binutils 2.40 does so only once). For lines of DWARF 5 whose function is from a header
 * binutils names the unit's own file, here it is the header.
 */
struct inline_frame {
	const char *function; /* raw, mangled where the language mangles; NULL: not known */
	bool only_plain; /* function lacks its namespace and class: a symbol table's name, if there is one, says more */
	const char *file; /* without folders; NULL: not known */
	unsigned int line; /* in function: the address's own line, or that of the call of the frame before; 0: not known */
};

/*
 * Opens the DWARF of an ELF image, or of its debug file (as image_open finds it; path, roots, nroots as there). fd is borrowed,
 * and may be closed afterwards; so may roots, under which split units (.dwo and .dwp) and shared entries (.gnu_debugaltlink) are
 * looked for when they are needed. Reads what is needed of it only when it is asked. 0; -ENOENT there is no DWARF; -EBADMSG;
 * -E2BIG; -ENOMEM; -errno.
 */
int inlines_open(int fd, const char *path, const int *roots, size_t nroots, struct inlines **ret_inlines,
		 struct parse_error *err);
void inlines_free(struct inlines *in);

/*
 * The functions whose code vaddr is, the innermost first, the one that was not inlined last. Writes at most
 * INLINES_DEPTH_MAX frames. Texts are valid until the next call. 0, -ENOENT where no unit covers vaddr, -ENOMEM. Not for two
 * threads at once. The first question about a unit reads all of its lines and the places of its functions (some milliseconds for a
 * large one), others take about a microsecond.
 */
int inlines_find(struct inlines *in, uint64_t vaddr, struct inline_frame *frames, size_t *ret_n);

#endif
