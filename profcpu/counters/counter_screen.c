#include "profcpu/counters/counter_screen.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/printable.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SCREEN_INTERVAL_NS (200 * NS_PER_MS)
#define SCREEN_LINES 24
#define SCREEN_COLUMNS 80
#define SCREEN_NUMBER_COLUMNS 19 /* of a value, with the blank before it */
#define SCREEN_NAME_COLUMNS_MIN 20
#define SCREEN_TEXT_BYTES 512 /* of one text */
#define SCREEN_LARGE 1e13     /* numbers from here on are written with an exponent */
#define SCREEN_WHOLE 1e9      /* numbers from here on have no decimals */
#define SCREEN_LAST_WAIT_MS 200
#define SCREEN_NEXT_LINE "\033[K\n"

struct counter_screen counter_screen_to(int fd, const char *head)
{
	struct counter_screen s = {
		.fd = fd, .head = head, .frame = outbuf_to(-1), .scratch = outbuf_to(-1)};
	char path[32];

	/* O_NONBLOCK on fd itself would concern the shell, too: see base/progress.c. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int own_fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

	if (own_fd >= 0) {
		s.fd = own_fd;
		s.own = true;
	}
	s.changed = true;
	return s;
}

/* Returns a copy that is fit for a terminal; NULL: out of memory. */
static const char *screen_text(struct counter_screen *s, const char *text, size_t len)
{
	char copy[SCREEN_TEXT_BYTES];
	bool cut;
	size_t n = printable_copy(text, len, sizeof(copy), copy, &cut);

	return arena_strndup(&s->text, copy, n);
}

static int screen_row(struct counter_screen *s, const struct counter_value *v, bool add,
		      struct counter_row **ret_row)
{
	size_t title_len, tags;
	uint32_t *index;

	s->scratch.len = 0;
	counter_put_title(&s->scratch, v);
	title_len = s->scratch.len;
	outbuf_char(&s->scratch, 0);
	tags = s->scratch.len;
	counter_put_shown_tags(&s->scratch, v);
	if (s->scratch.error)
		return s->scratch.error;
	size_t tags_len = s->scratch.len - tags;
	uint64_t key = hash_mix(hash_bytes(v->provider, strlen(v->provider)),
				hash_mix(hash_bytes(v->name, strlen(v->name)),
					 hash_bytes(s->scratch.data + tags, tags_len)));

	index = hashmap_get(&s->by_key, key);
	if (!index && !add)
		return -ENOENT;
	if (!index && s->rows.len >= COUNTER_SCREEN_ROWS_MAX)
		return -E2BIG;
	if (!index) {
		struct counter_row row = {
			.provider = screen_text(s, v->provider, strlen(v->provider)),
			.title = screen_text(s, s->scratch.data, title_len),
			.tags = screen_text(s, s->scratch.data + tags, tags_len),
		};

		if (!row.provider || !row.title || !row.tags || vec_push(&s->rows, row) ||
		    hashmap_entry(&s->by_key, key, (uint32_t)s->rows.len - 1, &index, NULL))
			return -ENOMEM;
	}
	*ret_row = &s->rows.v[*index];
	return 0;
}

void counter_screen_value(struct counter_screen *s, const struct counter_value *v)
{
	struct counter_row *row;
	size_t rows = s->rows.len;
	int r = screen_row(s, v, true, &row);

	if (r == -E2BIG)
		s->hidden++;
	else if (r)
		s->error = s->error ? s->error : r;
	if (r)
		return;
	row->has_change = s->rows.len == rows && !row->ended;
	row->change = v->value - row->value;
	row->value = v->value;
	row->ended = false;
	s->changed = true;
}

void counter_screen_ended(struct counter_screen *s, const struct counter_value *v)
{
	struct counter_row *row;

	if (screen_row(s, v, false, &row))
		return;
	row->ended = true;
	s->changed = true;
}

void counter_screen_note(struct counter_screen *s, const char *text)
{
	bool cut;
	size_t n = printable_copy(text, strlen(text), sizeof(s->note) - 1, s->note, &cut);

	s->note[n] = 0;
	s->changed = true;
}

void counter_put_readable(struct outbuf *out, double x)
{
	char text[64];
	double size = fabs(x);

	if (!isfinite(x) || size >= SCREEN_LARGE || (size > 0 && size < 0.0005)) {
		snprintf(text, sizeof(text), "%.4g", x);
		outbuf_str(out, text);
		return;
	}
	int len = snprintf(text, sizeof(text), "%.3f", size), whole = len - 4;

	if (x < 0)
		outbuf_char(out, '-');
	while (text[len - 1] == '0')
		len--;
	if (text[len - 1] == '.' || size >= SCREEN_WHOLE)
		len = whole;
	for (int i = 0; i < whole; i++) {
		if (i && (whole - i) % 3 == 0)
			outbuf_char(out, ',');
		outbuf_char(out, text[i]);
	}
	outbuf_put(out, text + whole, (size_t)(len - whole));
}

/* Puts text in exactly `columns` columns, if each character takes one. Cuts a longer one. */
static void screen_put_text(struct outbuf *out, const char *text, int columns)
{
	size_t left = strlen(text), n;

	for (; left && columns; columns--) {
		n = utf8_len((const unsigned char *)text, left);
		n = n ? n : 1;
		outbuf_put(out, text, n);
		text += n;
		left -= n;
	}
	outbuf_printf(out, "%*s", columns, "");
}

static void screen_put_number(struct outbuf *out, bool shown, double x)
{
	size_t begin = out->len;
	int columns;

	if (shown)
		counter_put_readable(out, x);
	columns = (int)(out->len - begin);
	if (columns >= SCREEN_NUMBER_COLUMNS)
		return;
	/* Move it to the right. */
	outbuf_printf(out, "%*s", SCREEN_NUMBER_COLUMNS - columns, "");
	if (out->error)
		return;
	memmove(out->data + out->len - columns, out->data + begin, (size_t)columns);
	memset(out->data + begin, ' ', (size_t)(SCREEN_NUMBER_COLUMNS - columns));
}

static int screen_compare(const void *a, const void *b, void *ctx)
{
	const struct counter_row *rows = ctx, *x = &rows[*(const uint32_t *)a],
				 *y = &rows[*(const uint32_t *)b];
	int r = strcasecmp(x->provider, y->provider);

	r = r ? r : strcasecmp(x->title, y->title);
	r = r ? r : strcmp(x->tags, y->tags);
	return r;
}

static void screen_sort(struct counter_screen *s)
{
	size_t known = s->order.len;

	if (vec_reserve(&s->order, s->rows.len - known)) {
		s->error = -ENOMEM;
		return;
	}
	for (; s->order.len < s->rows.len; s->order.len++)
		s->order.v[s->order.len] = (uint32_t)s->order.len;
	if (known < s->order.len)
		qsort_r(s->order.v, s->order.len, sizeof(*s->order.v), screen_compare, s->rows.v);
}

/* A line that is being put; out is NULL once the terminal is full. */
struct screen_lines {
	struct outbuf *out;
	int left, name_columns;
	bool changes; /* there is room for them */
};

static void screen_put_line(struct screen_lines *l, int indent, const char *text,
			    const struct counter_row *row)
{
	if (l->left <= 0)
		return;
	l->left--;
	outbuf_printf(l->out, "%*s", indent, "");
	screen_put_text(l->out, text, l->name_columns - indent);
	if (row)
		screen_put_number(l->out, true, row->value);
	if (row && l->changes)
		screen_put_number(l->out, row->has_change, row->change);
	outbuf_str(l->out, SCREEN_NEXT_LINE);
}

/* Puts a row, below its provider and its name if they differ from those of the last row. */
static void screen_put_row(struct counter_screen *s, struct screen_lines *l,
			   const struct counter_row *row, const struct counter_row *last)
{
	bool same_provider = last && !strcmp(last->provider, row->provider);

	if (!same_provider) {
		s->scratch.len = 0;
		outbuf_printf(&s->scratch, "[%s]", row->provider);
		outbuf_char(&s->scratch, 0);
		screen_put_line(l, 0, s->scratch.error ? "" : s->scratch.data, NULL);
	}
	if (*row->tags && (!same_provider || strcmp(last->title, row->title) != 0))
		screen_put_line(l, 4, row->title, NULL);
	screen_put_line(l, *row->tags ? 8 : 4, *row->tags ? row->tags : row->title, row);
}

/* Keeps one line for the number of those that do not fit. */
static void screen_put_rows(struct counter_screen *s, struct screen_lines *l)
{
	const struct counter_row *last = NULL;
	uint64_t more = 0;
	char text[64];

	for (size_t i = 0; i < s->order.len; i++) {
		const struct counter_row *row = &s->rows.v[s->order.v[i]];

		if (row->ended)
			continue;
		/* A row takes up to three lines. */
		if (more || l->left <= 3) {
			more++;
			continue;
		}
		screen_put_row(s, l, row, last);
		last = row;
	}
	snprintf(text, sizeof(text), "(%llu more values)", (unsigned long long)more);
	if (more)
		screen_put_line(l, 0, text, NULL);
}

void counter_screen_put(struct counter_screen *s, struct outbuf *out, int lines, int columns)
{
	struct screen_lines l = {.out = out, .left = lines - 1};
	int numbers = SCREEN_NUMBER_COLUMNS;

	l.changes = columns - 2 * SCREEN_NUMBER_COLUMNS >= 2 * SCREEN_NAME_COLUMNS_MIN;
	if (l.changes)
		numbers *= 2;
	l.name_columns = columns - 1 - numbers;
	if (l.name_columns < SCREEN_NAME_COLUMNS_MIN)
		l.name_columns = SCREEN_NAME_COLUMNS_MIN;
	screen_sort(s);
	outbuf_str(out, "\033[H");
	int name_columns = l.name_columns;

	l.name_columns = columns - 1; /* of lines without numbers */
	screen_put_line(&l, 0, s->head, NULL);
	if (s->note[0])
		screen_put_line(&l, 0, s->note, NULL);
	screen_put_line(&l, 0, s->rows.len ? "" : "no value yet", NULL);
	l.name_columns = name_columns;
	if (s->rows.len && l.left > 0) {
		screen_put_text(out, "Name", l.name_columns);
		outbuf_printf(out, "%*s", SCREEN_NUMBER_COLUMNS, "Value");
		if (l.changes)
			outbuf_printf(out, "%*s", SCREEN_NUMBER_COLUMNS, "Change");
		outbuf_str(out, SCREEN_NEXT_LINE);
		l.left--;
	}
	screen_put_rows(s, &l);
	outbuf_str(out, "\033[J");
}

static void screen_frame(struct counter_screen *s)
{
	struct winsize size = {0};

	(void)ioctl(s->fd, TIOCGWINSZ, &size);
	s->frame.len = s->sent = 0;
	counter_screen_put(s, &s->frame, size.ws_row ? size.ws_row : SCREEN_LINES,
			   size.ws_col ? size.ws_col : SCREEN_COLUMNS);
	s->changed = false;
}

/* Writes the rest of the frame, as far as the terminal takes it. */
static void screen_send(struct counter_screen *s)
{
	struct pollfd ready = {.fd = s->fd, .events = POLLOUT};

	while (!s->error && s->sent < s->frame.len && poll(&ready, 1, 0) > 0) {
		ssize_t n = write(s->fd, s->frame.data + s->sent, s->frame.len - s->sent);

		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0 && errno != EINTR)
			s->error = -errno;
		s->sent += n > 0 ? (size_t)n : 0;
	}
}

int counter_screen_draw(struct counter_screen *s, uint64_t now_ns)
{
	if (s->sent >= s->frame.len && s->changed && now_ns - s->drawn_ns >= SCREEN_INTERVAL_NS) {
		screen_frame(s);
		s->drawn_ns = now_ns;
	}
	screen_send(s);
	return s->error ? s->error : s->frame.error;
}

/* Draws the last values; gives a terminal that is busy a moment. */
static void screen_finish(struct counter_screen *s)
{
	struct pollfd ready = {.fd = s->fd, .events = POLLOUT};

	if (s->changed && s->sent >= s->frame.len)
		screen_frame(s);
	screen_send(s);
	if (s->sent < s->frame.len && !s->error && poll(&ready, 1, SCREEN_LAST_WAIT_MS) > 0)
		screen_send(s);
}

int counter_screen_close(struct counter_screen *s)
{
	int r;

	if (s->fd >= 0)
		screen_finish(s);
	r = s->error ? s->error : s->frame.error;
	if (s->own)
		close(s->fd);
	outbuf_close(&s->frame);
	outbuf_close(&s->scratch);
	vec_free(&s->rows);
	vec_free(&s->order);
	hashmap_free(&s->by_key);
	arena_free(&s->text);
	return r;
}
