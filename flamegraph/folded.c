#include "flamegraph/folded.h"

#include "base/cleanup.h"
#include "base/printable.h"
#include "flamegraph/kind_guess.h"

#include <errno.h>
#include <string.h>

#define FOLDED_READ_BYTES ((size_t)1 << 20)
#define FOLDED_SCALE 1000u /* of decimal counts */
#define FOLDED_DECIMALS 3

/* One frame of the previous line: the end of its text in prev, and its node. */
struct folded_frame {
	size_t end;
	uint32_t node;
};

struct folded {
	struct tree *tree;
	bool reverse;
	/* The previous line. Consecutive stacks share most of their frames. */
	VEC(char) prev;
	VEC(struct folded_frame) path;
	VEC(uint16_t) guesses; /* by name id: kind, FOLDED_COMM and FOLDED_KNOWN; 0: none yet */
	uint64_t counted;      /* lines with a count */
};
#define FOLDED_COMM 0x100u
#define FOLDED_KNOWN 0x200u

struct folded_count {
	uint64_t whole; /* the digits before the point */
	uint32_t thousandths;
	bool decimal;
};

static bool folded_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Whether /\s/ of flamegraph.pl matches. */
static bool folded_is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Takes white space, digits, and possibly a point and digits off the end of the line. */
static bool folded_take_count(const char *line, size_t *len, struct folded_count *ret)
{
	struct folded_count c = {0};
	size_t end = *len, at = end, digits;

	while (at && folded_is_digit(line[at - 1]))
		at--;
	if (at && line[at - 1] == '.') {
		uint32_t unit = FOLDED_SCALE / 10;

		for (size_t i = at; i < end && unit; i++, unit /= 10)
			c.thousandths += unit * (uint32_t)(line[i] - '0');
		c.decimal = true;
		end = --at;
		while (at && folded_is_digit(line[at - 1]))
			at--;
	}
	digits = end - at;
	if (!digits || !at || !folded_is_space(line[at - 1]))
		return false;
	for (size_t i = at; i < end; i++) {
		c.whole = c.whole * 10 + (uint64_t)(line[i] - '0');
		if (c.whole > TREE_WEIGHT_MAX)
			return false;
	}
	*len = at - 1;
	*ret = c;
	return true;
}

/* The count in the tree's unit. The first count with decimals makes it thousandths. */
static uint64_t folded_weight(struct folded *f, const struct folded_count *c)
{
	if (c->thousandths && f->tree->scale == 1)
		/* A failure means that the tree is too heavy for decimals to matter. */
		(void)tree_rescale(f->tree, FOLDED_SCALE);
	if (f->tree->scale == 1)
		return c->whole;
	return c->whole > TREE_WEIGHT_MAX / FOLDED_SCALE ? TREE_WEIGHT_MAX
							 : c->whole * FOLDED_SCALE + c->thousandths;
}

/* Guesses the kind of a name, once for each name. */
static int folded_guess(struct folded *f, uint32_t name, uint16_t *ret_guess)
{
	while (f->guesses.len <= name)
		if (vec_push(&f->guesses, 0))
			return -ENOMEM;
	if (!f->guesses.v[name]) {
		struct kind_guess g = kind_guess_of_name(intern_text(&f->tree->names, name),
							 intern_len(&f->tree->names, name));

		f->guesses.v[name] = (uint16_t)(g.kind | FOLDED_KNOWN | (g.comm ? FOLDED_COMM : 0));
	}
	*ret_guess = f->guesses.v[name];
	return 0;
}

/* Takes "_[k]" or the like off the end of a name. Returns the letter; 0: none. */
static char folded_take_annotation(const char *name, size_t *len)
{
	const char *end = name + *len;

	if (*len < 4 || end[-1] != ']' || end[-3] != '[' || end[-4] != '_' ||
	    !memchr("kijw", end[-2], 4))
		return 0;
	*len -= 4;
	return end[-2];
}

/* Finds the id of a name. Cuts long names as profile_text does. */
static int folded_name(struct tree *t, const char *name, size_t len, uint32_t *ret_name)
{
	char shown[PROFILE_TEXT_MAX];
	size_t had = t->names.len;
	bool cut = false;

	if (len > PROFILE_TEXT_MAX) {
		len = printable_copy_distinct(name, len, PROFILE_TEXT_MAX, shown, &cut);
		name = shown;
	}
	int r = tree_name(t, name, len, ret_name);

	t->cut_names += cut && t->names.len > had;
	return r;
}

struct folded_label {
	uint32_t name;
	uint8_t kind;
	char annotation;
};

/* Finds name, kind and annotation of a frame. below: its caller's kind; first: of its line. */
static int folded_label(struct folded *f, const char *name, size_t len, uint8_t below, bool first,
			struct folded_label *ret)
{
	struct folded_label l = {.annotation = folded_take_annotation(name, &len)};
	uint16_t guess;
	int r = folded_name(f->tree, name, len, &l.name);

	if (!r)
		r = folded_guess(f, l.name, &guess);
	if (r)
		return r;
	l.kind = (uint8_t)(guess & TREE_KIND_MASK);
	if (l.annotation == 'k' || (below == FRAME_KERNEL && !l.annotation))
		l.kind = FRAME_KERNEL;
	else if (l.annotation == 'j')
		l.kind = FRAME_MANAGED;
	else if (l.annotation == 'i')
		l.kind |= TREE_INLINED;
	else if (first && (guess & FOLDED_COMM) && !l.annotation)
		l.kind = FRAME_NATIVE | TREE_COMM;
	*ret = l;
	return 0;
}

/* The number of frames shared with the previous line. *ret_at: start of the next frame. */
static size_t folded_shared(struct folded *f, const char *line, size_t len, size_t *ret_at)
{
	size_t max = len < f->prev.len ? len : f->prev.len, same = 0, n = f->path.len;
	uint64_t a, b;

	for (; max - same >= 8; same += 8) {
		memcpy(&a, line + same, 8);
		memcpy(&b, f->prev.v + same, 8);
		if (a != b)
			break;
	}
	while (same < max && line[same] == f->prev.v[same])
		same++;
	/* A frame is shared if its text is equal and ends at the same place. */
	while (n && (f->path.v[n - 1].end > same ||
		     (f->path.v[n - 1].end < len && line[f->path.v[n - 1].end] != ';')))
		n--;
	*ret_at = n ? f->path.v[n - 1].end + 1 : 0;
	return n;
}

static int folded_step(struct folded *f, uint32_t parent, const struct folded_label *label,
		       uint32_t *ret_node)
{
	int r = tree_child_of_name(f->tree, parent, label->name, label->kind, ret_node);

	if (!r && label->annotation)
		f->tree->nodes.v[*ret_node].annotation = label->annotation;
	return r;
}

/* Adds the frames of a line, root first. */
static int folded_walk(struct folded *f, const char *line, size_t len, uint32_t *ret_node)
{
	size_t at, shared = folded_shared(f, line, len, &at);
	uint32_t node = shared ? f->path.v[shared - 1].node : TREE_ROOT;

	f->path.len = shared;
	f->prev.len = 0;
	while (at < len || (at == 0 && len)) {
		const char *semi = memchr(line + at, ';', len - at);
		size_t end = semi ? (size_t)(semi - line) : len;
		struct folded_label label;
		uint8_t below = at ? f->tree->nodes.v[node].kind : FRAME_UNKNOWN;
		int r = folded_label(f, line + at, end - at, below, at == 0, &label);

		if (!r)
			r = folded_step(f, node, &label, &node);
		if (!r)
			r = vec_push(&f->path, ((struct folded_frame){end, node}));
		if (r)
			return r;
		at = end + 1;
	}
	if (vec_reserve(&f->prev, len + 1))
		return -ENOMEM;
	memcpy(f->prev.v, line, len);
	f->prev.len = len;
	*ret_node = node;
	return 0;
}

/* Adds the frames leaf first. A kind depends on the caller, so kinds are found root first. */
static int folded_walk_reverse(struct folded *f, const char *line, size_t len, uint32_t *ret_node)
{
	VEC(struct folded_label) labels = {0};
	uint32_t node = TREE_ROOT;
	uint8_t below = FRAME_UNKNOWN;
	int r = 0;

	for (size_t at = 0; !r && len && at <= len;) {
		const char *semi = memchr(line + at, ';', len - at);
		size_t end = semi ? (size_t)(semi - line) : len;
		struct folded_label label;

		r = folded_label(f, line + at, end - at, below, at == 0, &label);
		if (!r)
			r = vec_push(&labels, label);
		below = label.kind & TREE_KIND_MASK;
		at = end + 1;
	}
	while (!r && labels.len)
		r = folded_step(f, node, &labels.v[--labels.len], &node);
	vec_free(&labels);
	*ret_node = node;
	return r;
}

/* Whether the line has more frames or longer names than a tree can have. */
static bool folded_too_large(const char *line, size_t len)
{
	size_t frames = 1;

	if (len <= TREE_DEPTH_MAX)
		return false;
	for (const char *p = line; (p = memchr(p, ';', (size_t)(line + len - p))); p++)
		frames++;
	if (frames > TREE_DEPTH_MAX)
		return true;
	for (const char *p = line, *end = line + len; p < end;) {
		const char *semi = memchr(p, ';', (size_t)(end - p));

		if (!semi)
			semi = end;
		if ((size_t)(semi - p) > INTERN_TEXT_MAX)
			return true;
		p = semi + 1;
	}
	return false;
}

static int folded_line(struct folded *f, const char *line, size_t len)
{
	struct folded_count after, before;
	uint32_t node = TREE_ROOT;

	if (len && line[len - 1] == '\r')
		len--;
	if (!len)
		return 0;
	f->tree->lines++;
	if (!folded_take_count(line, &len, &after) || folded_too_large(line, len)) {
		f->tree->bad_lines++;
		return 0;
	}
	bool two = folded_take_count(line, &len, &before);

	while (len && line[len - 1] == ';')
		len--;
	int r = f->reverse ? folded_walk_reverse(f, line, len, &node)
			   : folded_walk(f, line, len, &node);

	if (r)
		return r;
	f->counted++;
	/* The second count may change the tree's unit; then scale the first one again. */
	uint64_t weight = folded_weight(f, &after);

	if (two) {
		r = tree_add_before(f->tree, node, folded_weight(f, &before));
		weight = folded_weight(f, &after);
	}
	tree_add(f->tree, node, weight);
	return r;
}

/* Adds all complete lines of the text. *ret_used: the end of the last one. */
static int folded_lines(struct folded *f, const char *text, size_t len, size_t *ret_used)
{
	size_t at = 0;
	int r = 0;

	while (!r && at < len) {
		const char *nl = memchr(text + at, '\n', len - at);

		if (!nl)
			break;
		r = folded_line(f, text + at, (size_t)(nl - text) - at);
		at = (size_t)(nl - text) + 1;
	}
	*ret_used = at;
	return r;
}

/* Adds the text after the last newline. */
static int folded_rest(struct folded *f, const char *text, size_t len)
{
	f->tree->unended = len > 0;
	return folded_line(f, text, len);
}

/* Text that was read but not used yet. skipping: in a line that is too long. */
struct folded_input {
	int fd;
	char *buf;
	size_t len, cap;
	uint64_t offset; /* file offset of the end of buf */
	bool skipping;
};

static ssize_t folded_read(struct folded_input *in)
{
	ssize_t n;

	if (in->cap - in->len < FOLDED_READ_BYTES / 2 &&
	    vec_grow((void **)&in->buf, &in->cap, 1, in->len + FOLDED_READ_BYTES))
		return -ENOMEM;
	do
		n = read(in->fd, in->buf + in->len, in->cap - in->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	in->len += (size_t)n;
	in->offset += (uint64_t)n;
	return n;
}

/* Skips to the end of a line that is too long, or drops the part of it that was read. */
static void folded_skip(struct folded *f, struct folded_input *in)
{
	char *nl = memchr(in->buf, '\n', in->len);

	if (!nl) {
		in->len = 0;
		return;
	}
	in->skipping = false;
	f->tree->lines++;
	f->tree->bad_lines++;
	in->len -= (size_t)(nl + 1 - in->buf);
	memmove(in->buf, nl + 1, in->len);
}

static int folded_stream(struct folded *f, struct folded_input *in)
{
	for (;;) {
		ssize_t n = folded_read(in);
		size_t used = 0;
		int r;

		if (n < 0)
			return (int)n;
		if (in->skipping && !n) {
			f->tree->lines++;
			f->tree->bad_lines++;
			f->tree->unended = true;
			return 0;
		}
		if (in->skipping)
			folded_skip(f, in);
		if (in->skipping)
			continue;
		r = folded_lines(f, in->buf, in->len, &used);
		if (!r && !n)
			r = folded_rest(f, in->buf + used, in->len - used);
		if (r || !n)
			return r;
		in->len -= used;
		memmove(in->buf, in->buf + used, in->len);
		in->skipping = in->len > FOLDED_LINE_MAX;
	}
}

static int folded_end(struct folded *f, int r, uint64_t offset, struct parse_error *err)
{
	if (!r && !f->tree->lines)
		r = parse_fail(err, -EBADMSG, "it is empty", 0);
	else if (!r && !f->counted)
		r = parse_fail(err, -EBADMSG,
			       "no line ends in a count; folded stacks look like \"main;work 12\"",
			       0);
	else if (r == -E2BIG)
		parse_fail(err, r, "too many distinct stacks for one tree", offset);
	else if (r)
		parse_fail(err, r, r == -ENOMEM ? "out of memory" : "read error", offset);
	vec_free(&f->prev);
	vec_free(&f->path);
	vec_free(&f->guesses);
	if (!r && tree_finish(f->tree))
		r = parse_fail(err, -ENOMEM, "out of memory", offset);
	if (r)
		tree_free(f->tree);
	return r;
}

int folded_read_tree(struct tree *t, int fd, const struct tree_options *options,
		     struct parse_error *err)
{
	struct folded f = {.tree = t, .reverse = options->reverse};
	struct folded_input in = {.fd = fd};
	int r = tree_init(t, options->in_order);

	if (r)
		return parse_fail(err, r, "out of memory", 0);
	tree_limit(t, options->memory_max);
	r = folded_stream(&f, &in);
	free(in.buf);
	return folded_end(&f, r, in.offset, err);
}

int folded_read_tree_text(struct tree *t, const char *text, size_t len,
			  const struct tree_options *options, struct parse_error *err)
{
	struct folded f = {.tree = t, .reverse = options->reverse};
	size_t used = 0;
	int r = tree_init(t, options->in_order);

	if (r)
		return parse_fail(err, r, "out of memory", 0);
	tree_limit(t, options->memory_max);
	r = folded_lines(&f, text, len, &used);
	if (!r && used < len)
		r = folded_rest(&f, text + used, len - used);
	return folded_end(&f, r, used, err);
}
