#include "elf/build_id.h"

#include <stddef.h>

void build_id_hex(const struct build_id *id, char *buf)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < id->len && i < BUILD_ID_MAX; i++) {
		*buf++ = digits[id->bytes[i] >> 4];
		*buf++ = digits[id->bytes[i] & 15];
	}
	*buf = 0;
}
