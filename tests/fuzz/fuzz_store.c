#include "base/file.h"
#include "symbols/store/store_read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the store that was read and reads it again: the lookups must be the same. */
static void write_and_read(const struct lookup_cache *lookup_cache, const struct store_notes *notes)
{
	int fd = memfd_create("store", MFD_CLOEXEC);
	struct lookup_cache again = {0};
	struct store_notes read;
	char *text = NULL;
	size_t len;

	if (fd < 0)
		return;
	if (!store_print(lookup_cache, notes, fd) && !lseek(fd, 0, SEEK_SET) &&
	    !file_read_fd(fd, STORE_BYTES_MAX, &text, &len)) {
		if (store_parse(text, len, &again, &read, NULL) ||
		    again.entries.len != lookup_cache->entries.len ||
		    memcmp(&read.damage, &notes->damage, sizeof(read.damage)))
			abort();
	}
	free(text);
	lookup_cache_free(&again);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct lookup_cache lookup_cache = {0};
	struct store_notes notes;
	struct parse_error err;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (!store_parse(text, size, &lookup_cache, &notes, &err))
		write_and_read(&lookup_cache, &notes);
	lookup_cache_free(&lookup_cache);
	free(text);
	return 0;
}
