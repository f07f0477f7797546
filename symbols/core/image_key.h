/*
 * Identity of an image: two images with equal keys are one. Naming, unwinding and the store of a
 * recording look images up by key.
 */
#ifndef SYMBOLS_CORE_IMAGE_KEY_H
#define SYMBOLS_CORE_IMAGE_KEY_H

#include "elf/build_id.h"

#include <stdbool.h>
#include <stdint.h>

/* Kinds of images. Recordings hold the text of each kind (symbols/store/store_words.h). */
enum image_kind {
	IMAGE_KIND_FILE, /* a file by its path */
	IMAGE_KIND_JIT,  /* memory with a process's run-time code, named by its perf map */
	IMAGE_KIND_VDSO,
	IMAGE_KIND_VSYSCALL,
	IMAGE_KIND_OTHER, /* memory without a file that no perf map names */
	IMAGE_KIND_KERNEL,
	IMAGE_KINDS,
};

struct image_key {
	/* Id in the texts of the key's owner; the record's path, with any "(deleted)" */
	uint32_t path;
	uint8_t kind; /* enum image_kind */
	struct build_id build_id;
	uint32_t maj, min;
	uint64_t ino, ino_generation;
	/*
	 * Nonzero for three kinds of images: JIT code, files that differ only by the process's
	 * root, single-file programs that share path and build id with another one.
	 */
	int32_t pid;
};

uint64_t image_key_hash(const struct image_key *key);
bool image_key_equal(const struct image_key *a, const struct image_key *b);

#endif
