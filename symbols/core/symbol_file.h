/*
 * A file with symbols that a server or a cache may have: its key there, and a check of its content.
 * Keys follow dotnet/symstore, docs/specs/SSQP_Key_Conventions.md.
 */
#ifndef SYMBOLS_CORE_SYMBOL_FILE_H
#define SYMBOLS_CORE_SYMBOL_FILE_H

#include "elf/build_id.h"

#include <stddef.h>
#include <stdint.h>

enum symbol_file_kind {
	SYMBOL_FILE_ELF,     /* the debug file of an ELF image */
	SYMBOL_FILE_PDB,     /* the portable PDB of an assembly */
	SYMBOL_FILE_R2R_MAP, /* the map of a ReadyToRun image: RVAs and names of its functions */
};

struct symbol_file {
	enum symbol_file_kind kind;
	/*
	 * Last part of a path: the image's, the PDB's ("x.pdb") or the map's ("x.ni.r2rmap").
	 * Borrowed
	 */
	const char *name;
	struct build_id build_id; /* of an ELF file */
	/*
	 * Other kinds: the CodeView GUID or the map's signature, in the byte order of the PE file
	 */
	uint8_t id[16];
	uint32_t version; /* of a map's format */
};

/*
 * Writes the key on servers and in caches, at most cap bytes with its NUL. Returns 0, -EINVAL (name
 * is not a file name) or -ENAMETOOLONG.
 */
int symbol_file_key(const struct symbol_file *f, char *key, size_t cap);

/*
 * Gives the file of a key. name (NAME_MAX + 1 bytes) receives its name in lower case. Returns 0 or
 * -EINVAL (not a key of these kinds).
 */
int symbol_file_of_key(const char *key, struct symbol_file *ret_file, char *name);

/*
 * Checks that fd holds that file: an ELF file of this build id with symbols or lines, a PDB of this
 * GUID, or a map of this signature. Returns 0, -EBADMSG, -ENOMEM or -errno. With -EBADMSG,
 * *ret_what is a static text that completes "a file that".
 */
int symbol_file_check(const struct symbol_file *f, int fd, const char **ret_what);

#endif
