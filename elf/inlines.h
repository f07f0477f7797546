/*
 * Finds inlined functions and source lines at an address, in an image's DWARF. Only what lookups
 * need is read. A unit is read at the first lookup in it, the inlined bodies of a function at the
 * first hit in the function. DWARF_STEPS_MAX (dwarf_data.h) limits the time. Only one thread may
 * use this.
 */
#ifndef ELF_INLINES_H
#define ELF_INLINES_H

#include "base/error.h"
#include "container/opener.h"
#include "elf/elf_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INLINES_DEPTH_MAX 64                /* frames of one address */
#define INLINES_SPANS_MAX ((size_t)1 << 22) /* ranges of all units */
/*
 * Bytes in memory; above it, all is dropped and read again when needed. The same for all files if
 * they need more than half of ELF_BUDGET_INLINES. The other half is for one lookup.
 */
#define INLINES_KEPT_MAX ((uint64_t)112 << 20)
#define INLINES_SPLIT_MAX 256 /* files of split units that are open at a time */

struct inlines;

/*
 * One function at an address. `addr2line -a ADDR -e FILE -i -f -s -C` prints function, demangled by
 * demangle_full, and file:line.
 *
 * addr2line differs in two cases. If the first frame's function is NULL or is_unqualified,
 * addr2line takes the symbol table's name instead (for several addresses at once, binutils 2.40
 * does so only for the first). For a DWARF 5 line of a function from a header, binutils names the
 * unit's own file; here it is the header.
 */
struct inline_frame {
	const char *function; /* raw, mangled if the language mangles; NULL: unknown */
	/* function lacks its namespace and class; a symbol table's name, if any, is better */
	bool is_unqualified;
	const char *file; /* without folders; NULL: unknown */
	/* Line in function: of the address, or of the call to the frame before. 0: unknown. */
	unsigned int line;
};

/*
 * Opens the DWARF of an ELF image, or of its debug file. For path, roots and nroots see image_open.
 * image is borrowed during the call. The openers of roots must outlive the result. Split units
 * (.dwo and .dwp) and shared entries (.gnu_debugaltlink) are searched under roots later, when they
 * are needed. Returns 0, -ENOENT (no DWARF), -EBADMSG, -E2BIG, -ENOMEM or -errno.
 */
int inlines_open(const struct elf_file *image, const char *path, const struct opener_place *roots,
		 size_t nroots, struct inlines **ret_inlines, struct parse_error *err);
void inlines_free(struct inlines *in);

/*
 * Finds the functions at vaddr: the innermost first, the function that is not inlined last. Writes
 * at most INLINES_DEPTH_MAX frames. Texts are valid until the next call for any file.
 *
 * The first lookup in a unit reads its lines and the places of its functions, some milliseconds for
 * a large unit. Others take about a microsecond. Returns 0, -ENOENT (no unit covers vaddr) or
 * -ENOMEM.
 */
int inlines_find(struct inlines *in, uint64_t vaddr, struct inline_frame *frames, size_t *ret_n);

#endif
