/* Split DWARF: the units that a skeleton stands for, in a .dwo file of their own or in a package of them (.dwp). */
#ifndef SYMBOLS_DWARF_SPLIT_H
#define SYMBOLS_DWARF_SPLIT_H

#include "symbols/dwarf_unit.h"

/* Where such files are looked for. All borrowed. */
struct dwarf_split_place {
	const int *roots; /* O_PATH descriptors of directories */
	size_t nroots;
	const char *path; /* of the image inside of a root, or NULL */
};

/* Zeroed: not looked for yet. */
struct dwarf_package {
	bool tried;
	struct dwarf_data *data; /* NULL: there is none */
};

void dwarf_package_free(struct dwarf_package *p);

/*
 * Finds the unit of a skeleton whose own entry is given. *ret_own: the data of a .dwo file, the caller's; NULL: the unit is in
 * the package. 0; -ENOENT; -ENOMEM.
 */
int dwarf_split_find(const struct dwarf_split_place *place, struct dwarf_package *package, const struct dwarf_unit *skeleton,
		     const struct dwarf_entry *entry, struct dwarf_unit *ret_unit, struct dwarf_data **ret_own);

/* Opens the file with which `of` shares entries (.gnu_debugaltlink), known by its build id. 0; -ENOENT; -ENOMEM. */
int dwarf_alt_find(const struct dwarf_split_place *place, const struct dwarf_data *of, struct dwarf_data **ret_alt);

#endif
