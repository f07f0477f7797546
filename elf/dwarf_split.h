/*
 * Split DWARF: finds the unit that belongs to a skeleton unit, in a .dwo file or in a package
 * (.dwp). Finds also the file with shared entries (.gnu_debugaltlink).
 */
#ifndef ELF_DWARF_SPLIT_H
#define ELF_DWARF_SPLIT_H

#include "base/hashmap.h"
#include "container/opener.h"
#include "elf/dwarf_entry.h"

/* The places of such files. All members are borrowed. */
struct dwarf_split_place {
	const struct opener_place *roots;
	size_t nroots;
	const char *path; /* the image's path inside a root, or NULL */
};

/* Zeroed: not searched yet. */
struct dwarf_package {
	bool tried;
	struct dwarf_data *data; /* NULL: none */
	/* Hashes of paths of .dwo files that lack a unit. They are not opened again. */
	struct hashmap failed;
};

void dwarf_package_free(struct dwarf_package *p);

/*
 * Finds the unit of a skeleton; entry is the skeleton's own entry. *ret_own receives the data of a
 * .dwo file, which the caller frees, or NULL if the unit is in the package. The skeleton's file
 * counts the steps of opening files. Returns 0, -ENOENT or -ENOMEM.
 */
int dwarf_split_find(const struct dwarf_split_place *place, struct dwarf_package *package,
		     const struct dwarf_unit *skeleton, const struct dwarf_entry *entry,
		     struct dwarf_unit *ret_unit, struct dwarf_data **ret_own);

/*
 * Opens the file that shares entries with `of` (.gnu_debugaltlink), by its build id. Returns 0,
 * -ENOENT or -ENOMEM.
 */
int dwarf_split_find_alt(const struct dwarf_split_place *place, struct dwarf_data *of,
			 struct dwarf_data **ret_alt);

#endif
