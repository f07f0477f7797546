/*
 * Names of the code of a running process that is in files, such as precompiled .NET code: its
 * memory map now, and the symbols of the mapped files (symbols/images.h). Lookups are repeatable
 * after the process has ended, as far as the files of its last map can still be opened.
 */
#ifndef SYMBOLS_LIVE_IMAGES_H
#define SYMBOLS_LIVE_IMAGES_H

#include "container/opener.h"
#include "symbols/core/symbol.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct live_images;

/* opener is borrowed. Reads no map yet. 0 or -ENOMEM. */
int live_images_new(struct opener *opener, pid_t pid, struct live_images **ret_images);
void live_images_free(struct live_images *l);

/*
 * Reads the memory map, instead of an earlier one. After an error it may lack maps. 0;
 * -ENOMEM; errors of proc_read_maps.
 */
int live_images_read_maps(struct live_images *l);

/* A symbol and its file. Texts are NUL-terminated, and live as long as the struct live_images. */
struct live_symbol {
	uint64_t start, end; /* addresses in the process */
	const char *name;    /* raw */
	uint32_t name_len;
	enum symbol_source source;
	const char *path; /* of the file, in the process's root */
};

/*
 * Finds the symbol that covers an address. 0; -ENOENT: no file is mapped there, or it has no such
 * symbol; -ENOMEM.
 */
int live_images_find(struct live_images *l, uint64_t addr, struct live_symbol *ret_symbol);

#endif
