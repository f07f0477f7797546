/* manifest.json of a foreign recording: a manifest that is read, written and read again is
 * unchanged. covers: recording/manifest.c base/json.c */
#include "recording/manifest.h"
#include "tests/fuzz/fuzz_dir.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_text(const char *a, const char *b)
{
	return !strcmp(a ? a : "", b ? b : "");
}

static bool same(const struct recording_manifest *a, const struct recording_manifest *b)
{
	return a->format == b->format && same_text(a->tool, b->tool) &&
	       same_text(a->host, b->host) && same_text(a->os_release, b->os_release) &&
	       same_text(a->arch, b->arch) && same_text(a->target, b->target) &&
	       same_text(a->event, b->event) && same_text(a->damage, b->damage) &&
	       a->freq_hz == b->freq_hz && a->start_realtime_ns == b->start_realtime_ns &&
	       a->start_monotonic_ns == b->start_monotonic_ns && a->duration_ns == b->duration_ns &&
	       a->finished == b->finished && a->symbols_complete == b->symbols_complete;
}

/* Writing replaces invalid UTF-8, so only valid texts must stay the same. */
static bool is_ascii(const uint8_t *data, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (data[i] >= 0x80)
			return false;
	return true;
}

static void write_and_read(const struct recording_manifest *m, struct recording_manifest *ret_again)
{
	if (recording_manifest_write(fuzz_dir(), m) ||
	    recording_manifest_read(fuzz_dir(), ret_again, NULL, NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct recording_manifest m, again, third;
	struct parse_error err = {0};
	int r = recording_manifest_parse((const char *)data, size, &m, &err);

	if (r) {
		if (err.code != r || !err.what || err.offset > size)
			abort();
		return 0;
	}
	write_and_read(&m, &again);
	write_and_read(&again, &third);
	if (!same(&again, &third) || (is_ascii(data, size) && !same(&m, &again)))
		abort();
	recording_manifest_free(&third);
	recording_manifest_free(&again);
	recording_manifest_free(&m);
	return 0;
}
