#include "base/file.h"
#include "symbols/store_read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was read is written and read again: the same answers must come out. */
static void write_and_read(const struct answers *answers, const struct store_notes *notes)
{
	int fd = memfd_create("store", MFD_CLOEXEC);
	struct answers again = {0};
	struct store_notes read;
	char *text = NULL;
	size_t len;

	if (fd < 0)
		return;
	if (!store_print(answers, notes, fd) && !lseek(fd, 0, SEEK_SET) &&
	    !file_read_fd(fd, STORE_BYTES_MAX, &text, &len)) {
		if (store_parse(text, len, &again, &read, NULL) || again.entries.len != answers->entries.len ||
		    memcmp(&read.damage, &notes->damage, sizeof(read.damage)))
			abort();
	}
	free(text);
	answers_free(&again);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct answers answers = {0};
	struct store_notes notes;
	struct parse_error err;
	char *text = malloc(size + 1);

	if (!text)
		return 0;
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	if (!store_parse(text, size, &answers, &notes, &err))
		write_and_read(&answers, &notes);
	answers_free(&answers);
	free(text);
	return 0;
}
