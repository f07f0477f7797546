/* A palette.map: what is read and written again reads the same. */
#include "flamegraph/palette.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void map_text(const struct palette_map *m, struct outbuf *out)
{
	*out = outbuf_to(-1);
	if (palette_map_write(m, out) || out->error)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct palette_map m = {0}, again = {0};
	struct palette p = {.scheme = size ? data[0] % (PALETTE_ORANGE + 1) : PALETTE_HOT, .by_hash = size & 1, .map = &m};
	struct palette_frame frame = {.name = (const char *)data, .len = size, .slot = PALETTE_NATIVE,
				      .annotation = size & 2 ? 'j' : 0};
	struct outbuf one, two, css = outbuf_to(-1);
	uint32_t color;
	uint64_t skipped;

	if (palette_map_parse(&m, (const char *)data, size, &skipped) ||
	    (size < INTERN_TEXT_MAX - 8 && palette_color(&p, &frame, &color)))
		abort();
	map_text(&m, &one);
	if (palette_map_parse(&again, one.len ? one.data : "", one.len, &skipped) || skipped)
		abort();
	map_text(&again, &two);
	if (one.len != two.len || (one.len && memcmp(one.data, two.data, one.len) != 0))
		abort();
	palette_css(&css, true);
	outbuf_close(&css);
	outbuf_close(&one);
	outbuf_close(&two);
	palette_map_free(&m);
	palette_map_free(&again);
	return 0;
}
