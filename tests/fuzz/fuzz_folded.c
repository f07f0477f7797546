/* Folded text into a tree, from memory and from a descriptor, and the tree into a picture. The
 * first byte selects options. covers: flamegraph/folded.c flamegraph/kind_guess.c
 * flamegraph/node_order.c flamegraph/svg.c flamegraph/svg_data.c flamegraph/svg_text.c */
#include "base/outbuf.h"
#include "flamegraph/folded.h"
#include "flamegraph/svg.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void draw(struct tree *t, uint8_t choice)
{
	struct svg_options options = svg_options_default();
	struct outbuf out = outbuf_to(-1);
	struct svg_stats stats;

	options.palette.scheme = choice % (PALETTE_ORANGE + 1);
	options.palette.by_hash = choice & 1;
	options.inverted = choice & 2;
	options.min_width = choice & 4 ? 0 : 0.1;
	options.encoding = choice & 8 ? "ISO-8859-1" : NULL;
	options.subtitle = choice & 16 ? "sub" : NULL;
	options.notes = choice & 32 ? "a--b" : NULL;
	options.unit = choice & 64 ? SVG_UNIT_NS : SVG_UNIT_COUNT;
	if (svg_write(t, &options, &out, &stats))
		abort();
	/* The output contains no control character and no markup of a name. */
	for (size_t i = 0; i < out.len; i++)
		if ((unsigned char)out.data[i] < ' ' && out.data[i] != '\n' && out.data[i] != '\t')
			abort();
	outbuf_close(&out);
}

/* A file gives the same tree. */
static void compare_with_file(const struct tree *t, int r, const char *text, size_t len,
			      const struct tree_options *options)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct parse_error err;
	struct tree other;

	if (fd < 0)
		return;
	if (write(fd, text, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0) {
		if (folded_read_tree(&other, fd, options, &err) != r)
			abort();
		if (!r) {
			if (other.nodes.len != t->nodes.len || other.sum != t->sum ||
			    other.bad_lines != t->bad_lines || other.unended != t->unended)
				abort();
			tree_free(&other);
		}
	}
	close(fd);
}

/* Totals are the sums of their parts. */
static void check_totals(const struct tree *t)
{
	for (size_t i = 0; i < t->nodes.len; i++) {
		uint64_t sum = t->nodes.v[i].self;

		for (uint32_t c = t->nodes.v[i].last_child; c != TREE_ROOT;
		     c = t->nodes.v[c].prev_sibling)
			sum += t->nodes.v[c].total;
		if (sum != t->nodes.v[i].total)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const char *text = (const char *)data + 1;
	struct tree_options options = {
		.event = PROFILE_NONE, .reverse = *data & 1, .in_order = (*data & 0x81) == 0x80};
	struct parse_error err;
	struct tree t;
	int r = folded_read_tree_text(&t, text, size - 1, &options, &err);

	compare_with_file(&t, r, text, size - 1, &options);
	if (r)
		return 0;
	check_totals(&t);
	draw(&t, *data);
	tree_free(&t);
	return 0;
}
