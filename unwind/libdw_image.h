/*
 * Makes a small ELF file in memory for libdw, with the call frame information of an image of any
 * architecture. It has valid headers, one segment, and .eh_frame and .debug_frame, unpacked. libdw
 * never sees the file itself. So a hostile file cannot give it links, compressed data, or more than
 * these limits.
 */
#ifndef UNWIND_LIBDW_IMAGE_H
#define UNWIND_LIBDW_IMAGE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

#define LIBDW_IMAGE_BYTES_MAX ((uint64_t)64 << 20) /* of both sections; Chromium has 26 MiB */
#define LIBDW_ENTRY_BYTES_MAX 0x10000u             /* of a CIE or FDE with its program */

struct libdw_image;

/*
 * Reads the sections of an ELF file, or with fd -1 of the image at memory; both are borrowed for
 * the call. Returns 0; -ENOENT: no CFI; -EBADMSG: not ELF, damaged, or not of this machine (EM_*);
 * -E2BIG, also if ELF_BUDGET_LIBDW is too small; -ENOMEM; -errno.
 */
int libdw_image_new(int fd, const void *memory, size_t len, uint16_t machine,
		    struct libdw_image **ret_image, struct parse_error *err);

/* Makes an ELF file without sections, which only names the machine. Returns 0 or -ENOMEM. */
int libdw_image_empty(uint16_t machine, struct libdw_image **ret_image);

void libdw_image_free(struct libdw_image *image);

/* The file; lives as long as the image. */
const void *libdw_image_file(const struct libdw_image *image, size_t *ret_bytes);

/*
 * The address of the lowest byte that the file loads, if its byte at file_off is mapped at addr.
 * Returns 0 or -ENOENT.
 */
int libdw_image_start(const struct libdw_image *image, uint64_t addr, uint64_t file_off,
		      uint64_t *ret_start);

#endif
