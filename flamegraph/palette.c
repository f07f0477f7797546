#include "flamegraph/palette.h"

#include "base/cleanup.h"
#include "flamegraph/kind_guess.h"

#include <errno.h>
#include <math.h>
#include <string.h>

const char palette_slot_letters[PALETTE_SLOTS + 1] = "uknrmitadw";
const char *const palette_slot_words[PALETTE_SLOTS] = {
	"unknown", "kernel", "native", "runtime", "managed",
	"inlined", "thread", "all",    "idle",    "waiting for a CPU",
};

static const char *const palette_names[] = {
	[PALETTE_KIND] = "kind",     [PALETTE_HOT] = "hot",       [PALETTE_MEM] = "mem",
	[PALETTE_IO] = "io",         [PALETTE_WAKEUP] = "wakeup", [PALETTE_CHAIN] = "chain",
	[PALETTE_JAVA] = "java",     [PALETTE_JS] = "js",         [PALETTE_PERL] = "perl",
	[PALETTE_RED] = "red",       [PALETTE_GREEN] = "green",   [PALETTE_BLUE] = "blue",
	[PALETTE_AQUA] = "aqua",     [PALETTE_YELLOW] = "yellow", [PALETTE_PURPLE] = "purple",
	[PALETTE_ORANGE] = "orange",
};

/* A colour channel: base + (int)(range * v[which]). */
struct palette_channel {
	uint8_t base, range, which;
};
static const struct palette_channel palette_channels[][3] = {
	[PALETTE_HOT] = {{205, 50, 2}, {0, 230, 0}, {0, 55, 1}},
	[PALETTE_MEM] = {{0, 0, 0}, {190, 50, 1}, {0, 210, 0}},
	[PALETTE_IO] = {{80, 60, 0}, {80, 60, 0}, {190, 55, 1}},
	[PALETTE_RED] = {{200, 55, 0}, {50, 80, 0}, {50, 80, 0}},
	[PALETTE_GREEN] = {{50, 60, 0}, {200, 55, 0}, {50, 60, 0}},
	[PALETTE_BLUE] = {{80, 60, 0}, {80, 60, 0}, {205, 50, 0}},
	[PALETTE_AQUA] = {{50, 60, 0}, {165, 55, 0}, {165, 55, 0}},
	[PALETTE_YELLOW] = {{175, 55, 0}, {175, 55, 0}, {50, 20, 0}},
	[PALETTE_PURPLE] = {{190, 65, 0}, {80, 60, 0}, {190, 65, 0}},
	[PALETTE_ORANGE] = {{190, 65, 0}, {90, 65, 0}, {0, 0, 0}},
};

/* Hue in degrees; saturation and lightness in per cent, for light mode, then dark mode. */
static const struct palette_hsl {
	int16_t h, s, l, dark_s, dark_l;
} palette_hsl[PALETTE_SLOTS] = {
	[PALETTE_UNKNOWN] = {220, 6, 78, 5, 40},   [PALETTE_KERNEL] = {27, 80, 70, 46, 37},
	[PALETTE_NATIVE] = {47, 76, 68, 46, 30},   [PALETTE_RUNTIME] = {268, 56, 79, 32, 46},
	[PALETTE_MANAGED] = {134, 42, 66, 36, 33}, [PALETTE_INLINED] = {184, 48, 68, 42, 33},
	[PALETTE_THREAD] = {212, 22, 82, 14, 33},  [PALETTE_ALL] = {212, 14, 86, 10, 28},
	[PALETTE_IDLE] = {205, 34, 88, 20, 24},    [PALETTE_WAITING] = {352, 78, 76, 50, 40},
};

int palette_scheme_find(const char *name, enum palette_scheme *ret_scheme)
{
	for (size_t i = 0; i < sizeof(palette_names) / sizeof(palette_names[0]); i++) {
		if (!strcmp(palette_names[i], name)) {
			*ret_scheme = (enum palette_scheme)i;
			return 0;
		}
	}
	return -ENOENT;
}

enum palette_slot palette_node_slot(const struct tree *t, uint32_t node)
{
	static const uint8_t slots[FRAME_KINDS] = {
		[FRAME_UNKNOWN] = PALETTE_UNKNOWN,  [FRAME_KERNEL] = PALETTE_KERNEL,
		[FRAME_NATIVE] = PALETTE_NATIVE,    [FRAME_RUNTIME] = PALETTE_RUNTIME,
		[FRAME_MANAGED] = PALETTE_MANAGED,  [FRAME_IDLE] = PALETTE_IDLE,
		[FRAME_LABEL] = PALETTE_UNKNOWN,    [FRAME_WAKEUP] = PALETTE_THREAD,
		[FRAME_RUNNABLE] = PALETTE_WAITING, [FRAME_SUBJECT] = PALETTE_THREAD,
	};
	const struct tree_node *n = &t->nodes.v[node];

	if (node == TREE_ROOT)
		return PALETTE_ALL;
	if (n->is_comm)
		return PALETTE_THREAD;
	if (n->inlined)
		return PALETTE_INLINED;
	return n->kind < FRAME_KINDS ? (enum palette_slot)slots[n->kind] : PALETTE_UNKNOWN;
}

/* Reads the character at *at and moves after it. Invalid UTF-8 counts byte by byte. */
static uint32_t palette_char(const char *name, size_t len, size_t *at)
{
	unsigned char c = (unsigned char)name[*at];
	size_t n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;
	uint32_t x = n == 1 ? c : c & (0xffu >> (n + 1));

	if (n > len - *at)
		n = 1;
	for (size_t i = 1; i < n; i++)
		x = x << 6 | ((unsigned char)name[*at + i] & 0x3f);
	*at += n;
	return x;
}

/* Bytes of the name's last character; len > 0. */
static size_t palette_last_char(const char *name, size_t len)
{
	size_t n = 1;

	while (n < len && n < 4 && ((unsigned char)name[len - n] & 0xc0) == 0x80)
		n++;
	return n;
}

/*
 * A number from 0 to 1 that depends only on the name. Like perl in flamegraph.pl, it is the first
 * step of drand48 (POSIX, 48 bits), seeded with the sum of the name's characters.
 */
static double palette_by_sum(const char *name, size_t len)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < len;)
		sum += palette_char(name, len, &at);
	uint64_t x = ((sum & UINT32_MAX) << 16) + 0x330e;

	x = (x * 0x5deece66dULL + 0xb) & (((uint64_t)1 << 48) - 1);
	return (double)x / (double)((uint64_t)1 << 48);
}

/*
 * A number from 0 to 1 by the first three letters; the first one has the most weight. backward: by
 * the last three letters, from the end.
 */
static double palette_by_letters(const char *name, size_t len, bool backward)
{
	double sum = 0, max = 1, weight = 1;
	const char *end = name + len;

	/* Skip a module before a back-quote. A back-quote as the first letter ends no module. */
	const char *quote = len < 2    ? NULL
			    : backward ? memrchr(name, '`', len - 1)
				       : memchr(name + 1, '`', len - 1);

	if (quote && backward)
		end = quote;
	else if (quote)
		name = quote + 1;
	for (unsigned mod = 10; mod <= 12 && name < end; mod++) {
		size_t n = backward ? palette_last_char(name, (size_t)(end - name))
				    : (size_t)(end - name),
		       at = 0;
		uint32_t c = palette_char(backward ? end - n : name, n, &at);

		if (backward)
			end -= n;
		else
			name += at;
		sum += (double)(c % mod) / (mod - 1) * weight;
		max += weight;
		weight *= 0.7;
	}
	return 1 - sum / max;
}

static double palette_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (double)(*seed >> 33) / (double)((uint64_t)1 << 31);
}

static bool palette_has(const struct palette_frame *f, const char *part)
{
	return memmem(f->name, f->len, part, strlen(part));
}

/* The one-colour palette of a frame. Known kinds count as annotations. */
static enum palette_scheme palette_of_frame(const struct palette *p, const struct palette_frame *f)
{
	bool known = p->known_kinds;
	bool jit = f->annotation == 'j' || (known && f->slot == PALETTE_MANAGED);
	bool inlined = f->annotation == 'i' || (known && f->slot == PALETTE_INLINED);
	bool kernel = f->annotation == 'k' || (known && f->slot == PALETTE_KERNEL);
	const char *slash;

	if (known && f->slot == PALETTE_WAITING)
		return PALETTE_RED;
	switch (p->scheme) {
	case PALETTE_JAVA:
		if (jit || (!inlined && kind_guess_is_java(f->name, f->len)))
			return PALETTE_GREEN;
		if (inlined)
			return PALETTE_AQUA;
		if (palette_has(f, "::"))
			return PALETTE_YELLOW;
		return kernel ? PALETTE_ORANGE : PALETTE_RED;
	case PALETTE_JS:
		slash = memchr(f->name, '/', f->len);
		if (jit)
			return slash ? PALETTE_GREEN : PALETTE_AQUA;
		if (palette_has(f, "::"))
			return PALETTE_YELLOW;
		if (slash && memmem(slash, (size_t)(f->name + f->len - slash), ".js", 3))
			return PALETTE_GREEN;
		if (palette_has(f, ":"))
			return PALETTE_AQUA;
		if (f->len == 1 && f->name[0] == ' ')
			return PALETTE_GREEN;
		return kernel ? PALETTE_ORANGE : PALETTE_RED;
	case PALETTE_PERL:
		if (palette_has(f, "::"))
			return PALETTE_YELLOW;
		if (palette_has(f, "Perl") || palette_has(f, ".pl"))
			return PALETTE_GREEN;
		return kernel ? PALETTE_ORANGE : PALETTE_RED;
	case PALETTE_WAKEUP:
		return PALETTE_AQUA;
	case PALETTE_CHAIN:
		return f->annotation == 'w' ? PALETTE_AQUA : PALETTE_BLUE;
	default:
		return p->scheme;
	}
}

/* Writes the name with its annotation, as in folded text. */
static void palette_put_annotated(struct outbuf *o, const struct palette_frame *f)
{
	outbuf_put(o, f->name, f->len);
	if (f->annotation)
		outbuf_printf(o, "_[%c]", f->annotation);
}

static int palette_compute(struct palette *p, const struct palette_frame *f, uint32_t *ret_color)
{
	double v[3];
	struct outbuf text = outbuf_to(-1);

	palette_put_annotated(&text, f);
	if (text.error)
		return text.error;
	const char *name = text.len ? text.data : "";

	if (p->by_hash) {
		v[0] = palette_by_letters(name, text.len, false);
		v[1] = v[2] = palette_by_letters(name, text.len, true);
	} else if (p->random) {
		for (size_t i = 0; i < 3; i++)
			v[i] = palette_random(&p->seed);
	} else {
		v[0] = v[1] = v[2] = palette_by_sum(name, text.len);
	}
	outbuf_close(&text);
	if (p->scheme == PALETTE_KIND) {
		uint32_t shade = (uint32_t)(v[0] * PALETTE_SHADES);

		if (shade >= PALETTE_SHADES || f->slot == PALETTE_ALL)
			shade = PALETTE_SHADES / 2;
		*ret_color = PALETTE_CLASS | (f->slot * PALETTE_SHADES + shade);
		return 0;
	}
	uint32_t color = 0;
	const struct palette_channel *c = palette_channels[palette_of_frame(p, f)];

	for (size_t i = 0; i < 3; i++)
		color = color << 8 | (c[i].base + (uint32_t)(c[i].range * v[c[i].which]));
	*ret_color = color;
	return 0;
}

static int palette_mapped(struct palette *p, const struct palette_frame *f, uint32_t *ret_color)
{
	struct palette_map *m = p->map;
	struct outbuf key = outbuf_to(-1);
	uint32_t id;

	palette_put_annotated(&key, f);
	int r = key.error ? key.error
			  : intern_put(&m->names, key.len ? key.data : "", key.len, &id);

	outbuf_close(&key);
	if (!r && id == m->colors.len) {
		uint32_t color;

		r = palette_compute(p, f, &color);
		if (!r)
			r = vec_push(&m->colors, color);
	}
	if (!r)
		*ret_color = m->colors.v[id];
	return r;
}

int palette_color(struct palette *p, const struct palette_frame *f, uint32_t *ret_color)
{
	bool dashes = f->len && f->len <= 2 && !memcmp(f->name, "--", f->len);

	/* Separators of chain graphs. */
	if (dashes && p->scheme != PALETTE_KIND) {
		*ret_color = f->len == 2 ? 0xa0a0a0 : 0xc8c8c8;
		return 0;
	}
	if (p->map && p->scheme != PALETTE_KIND)
		return palette_mapped(p, f, ret_color);
	return palette_compute(p, f, ret_color);
}

uint32_t palette_delta_color(double delta, double max)
{
	double part = max > 0 ? fabs(delta) / max : 0;
	uint32_t rest = delta == 0 ? 255 : (uint32_t)(210 * (1 - (part > 1 ? 1 : part)));

	return delta > 0 ? 0xff0000 | rest << 8 | rest : rest << 16 | rest << 8 | 0xff;
}

static double palette_linear(uint32_t channel)
{
	double c = channel / 255.0;

	return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

bool palette_needs_white(uint32_t color)
{
	/* Both contrasts are equal at sqrt(0.05 * 1.05) - 0.05. */
	return 0.2126 * palette_linear(color >> 16 & 0xff) +
		       0.7152 * palette_linear(color >> 8 & 0xff) +
		       0.0722 * palette_linear(color & 0xff) <
	       0.179129;
}

/* Reads a number up to 255 and the character after it. */
static bool palette_take_channel(const char **at, const char *end, char stop, uint32_t *color)
{
	const char *p = *at;
	uint32_t x = 0;

	while (p < end && p - *at < 3 && *p >= '0' && *p <= '9')
		x = x * 10 + (uint32_t)(*p++ - '0');
	if (p == *at || x > 255 || p == end || *p != stop)
		return false;
	*color = *color << 8 | x;
	*at = p + 1;
	return true;
}

/* Splits "name->rgb(1,2,3)" at the last arrow, because names can have arrows. */
static bool palette_map_line(const char *line, size_t len, size_t *ret_name_len,
			     uint32_t *ret_color)
{
	const char *end = line + len, *at = memrchr(line, '>', len);
	uint32_t color = 0;

	if (!at || at == line || at[-1] != '-' || end - at < 5 || memcmp(at + 1, "rgb(", 4))
		return false;
	*ret_name_len = (size_t)(at - 1 - line);
	at += 5;
	if (!palette_take_channel(&at, end, ',', &color) ||
	    !palette_take_channel(&at, end, ',', &color) ||
	    !palette_take_channel(&at, end, ')', &color))
		return false;
	*ret_color = color;
	return at == end;
}

int palette_map_parse(struct palette_map *m, const char *text, size_t len, uint64_t *ret_skipped)
{
	uint64_t skipped = 0;

	for (size_t at = 0; at < len;) {
		const char *nl = memchr(text + at, '\n', len - at);
		size_t line_len = nl ? (size_t)(nl - text) - at : len - at, name_len;
		uint32_t color, id;

		if (!palette_map_line(text + at, line_len, &name_len, &color) ||
		    name_len > INTERN_TEXT_MAX) {
			skipped += line_len > 0;
		} else {
			int r = intern_put(&m->names, text + at, name_len, &id);

			if (r)
				return r;
			if (id < m->colors.len)
				m->colors.v[id] = color;
			else if (vec_push(&m->colors, color))
				return -ENOMEM;
		}
		at += line_len + 1;
	}
	if (ret_skipped)
		*ret_skipped = skipped;
	return 0;
}

static int palette_compare_entries(const void *a, const void *b)
{
	const struct intern_entry *const *x = a, *const *y = b;
	uint32_t min = (*x)->len < (*y)->len ? (*x)->len : (*y)->len;
	int c = memcmp((*x)->text, (*y)->text, min);

	return c ? c : (*x)->len < (*y)->len ? -1 : (*x)->len > (*y)->len;
}

int palette_map_write(const struct palette_map *m, struct outbuf *out)
{
	AUTO_FREE const struct intern_entry **sorted = malloc((m->colors.len + 1) * sizeof(void *));

	if (!sorted)
		return -ENOMEM;
	for (size_t i = 0; i < m->colors.len; i++)
		sorted[i] = &m->names.entries[i];
	qsort(sorted, m->colors.len, sizeof(void *), palette_compare_entries);
	for (size_t i = 0; i < m->colors.len; i++) {
		uint32_t color = m->colors.v[sorted[i] - m->names.entries];

		/* A newline would begin another entry. */
		if (memchr(sorted[i]->text, '\n', sorted[i]->len))
			continue;
		outbuf_put(out, sorted[i]->text, sorted[i]->len);
		outbuf_printf(out, "->rgb(%u,%u,%u)\n", color >> 16, color >> 8 & 0xff,
			      color & 0xff);
	}
	return 0;
}

void palette_map_free(struct palette_map *m)
{
	intern_free(&m->names);
	vec_free(&m->colors);
}

/* Hue, saturation, lightness to 0xRRGGBB (CSS Color Module Level 4, section 7.1). */
static uint32_t palette_rgb(double h, double s, double l)
{
	static const int offsets[3] = {0, 8, 4};
	uint32_t color = 0;

	s /= 100;
	l /= 100;
	for (size_t i = 0; i < 3; i++) {
		double k = fmod(offsets[i] + h / 30, 12);
		double low = k - 3 < 9 - k ? k - 3 : 9 - k;

		low = low < -1 ? -1 : low > 1 ? 1 : low;
		color = color << 8 |
			(uint32_t)lround(255 * (l - s * (l < 1 - l ? l : 1 - l) * low));
	}
	return color;
}

static void palette_css_classes(struct outbuf *out, bool dark)
{
	for (unsigned slot = 0; slot < PALETTE_SLOTS; slot++) {
		const struct palette_hsl *c = &palette_hsl[slot];

		for (unsigned shade = 0; shade < PALETTE_SHADES; shade++) {
			int away = (int)shade - (int)PALETTE_SHADES / 2;
			double l = (dark ? c->dark_l : c->l) + 2.2 * away;

			outbuf_printf(
				out, ".c%u{fill:#%06x}", slot * PALETTE_SHADES + shade,
				palette_rgb(c->h + 2 * away + 360, dark ? c->dark_s : c->s, l));
		}
		outbuf_char(out, '\n');
	}
}

void palette_css(struct outbuf *out, bool dark_too)
{
	palette_css_classes(out, false);
	if (!dark_too)
		return;
	outbuf_str(out, "@media (prefers-color-scheme:dark){\n");
	palette_css_classes(out, true);
	outbuf_str(out, "}\n");
}
