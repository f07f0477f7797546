/* The build id of an ELF file: a hash that the linker put into a note (NT_GNU_BUILD_ID). */
#ifndef ELF_BUILD_ID_H
#define ELF_BUILD_ID_H

#include <stdint.h>

#define BUILD_ID_MAX 20

struct build_id {
	uint8_t bytes[BUILD_ID_MAX];
	uint8_t len; /* 0: none */
};

/* Writes lower-case hex, NUL-terminated, into buf of at least 2 * BUILD_ID_MAX + 1 bytes. */
void build_id_hex(const struct build_id *id, char *buf);

#endif
