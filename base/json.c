#include "base/json.h"

#include "base/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct json json_of(const char *text, size_t len)
{
	return (struct json){.text = text, .len = len};
}

static int fail(struct json *j, int code, const char *what)
{
	if (!j->error) {
		j->error = code;
		j->what = what;
	}
	return j->error;
}

/* Returns the next byte that is not white space, or 0 at the end. */
static char peek(struct json *j)
{
	while (j->pos < j->len && memchr(" \t\r\n", j->text[j->pos], 4))
		j->pos++;
	return j->pos < j->len ? j->text[j->pos] : 0;
}

static bool take(struct json *j, char c)
{
	if (peek(j) != c || j->pos >= j->len)
		return false;
	j->pos++;
	return true;
}

static bool take_word(struct json *j, const char *word)
{
	size_t len = strlen(word);

	(void)peek(j);
	if (j->len - j->pos < len || memcmp(j->text + j->pos, word, len))
		return false;
	j->pos += len;
	return true;
}

static int enter(struct json *j, char c)
{
	if (j->error)
		return j->error;
	if (!take(j, c))
		return fail(j, -EBADMSG,
			    c == '{' ? "an object was expected" : "an array was expected");
	return ++j->depth > JSON_DEPTH_MAX ? fail(j, -E2BIG, "nested too deeply") : 0;
}

int json_object(struct json *j)
{
	return enter(j, '{');
}

int json_array(struct json *j)
{
	return enter(j, '[');
}

/*
 * Moves to the next member of an array or object that began with `open`. 1: a member; 0: it ended.
 */
static int next_member(struct json *j, char open, char close, const char *what)
{
	size_t at = j->pos;

	if (j->error)
		return j->error;
	while (at && memchr(" \t\r\n", j->text[at - 1], 4))
		at--;
	bool first = at && j->text[at - 1] == open;

	if (take(j, close)) {
		j->depth--;
		return 0;
	}
	return first || take(j, ',') ? 1 : fail(j, -EBADMSG, what);
}

int json_item(struct json *j)
{
	return next_member(j, '[', ']', "a comma or the end of an array was expected");
}

int json_key(struct json *j, char **ret_key)
{
	char *key = NULL;
	int r = next_member(j, '{', '}', "a comma or the end of an object was expected");

	if (r <= 0)
		return r;
	if (json_string(j, &key))
		return j->error;
	if (!take(j, ':')) {
		free(key);
		return fail(j, -EBADMSG, "a colon was expected");
	}
	*ret_key = key;
	return 1;
}

static int hex4(const char *p)
{
	int x = 0;

	for (int i = 0; i < 4; i++) {
		if (!isxdigit((unsigned char)p[i]))
			return -1;
		x = x * 16 + (p[i] <= '9' ? p[i] - '0' : (p[i] | 32) - 'a' + 10);
	}
	return x;
}

static char *put_utf8(char *out, unsigned c)
{
	if (c < 0x80) {
		*out++ = (char)c;
	} else if (c < 0x800) {
		*out++ = (char)(0xc0 | c >> 6);
		*out++ = (char)(0x80 | (c & 63));
	} else if (c < 0x10000) {
		*out++ = (char)(0xe0 | c >> 12);
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	} else {
		*out++ = (char)(0xf0 | c >> 18);
		*out++ = (char)(0x80 | (c >> 12 & 63));
		*out++ = (char)(0x80 | (c >> 6 & 63));
		*out++ = (char)(0x80 | (c & 63));
	}
	return out;
}

/*
 * Decodes \uXXXX at p, or a pair of them for a code point above 16 bits. Returns the bytes used; 0:
 * invalid.
 */
static size_t unicode_escape(const char *p, size_t left, unsigned *ret_c)
{
	int high = left >= 6 ? hex4(p + 2) : -1;

	if (high <= 0)
		return 0;
	*ret_c = (unsigned)high;
	if (high < 0xd800 || high > 0xdfff)
		return 6;
	int low = left >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8) : -1;

	if (high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return 0;
	*ret_c = 0x10000u + ((unsigned)(high - 0xd800) << 10) + (unsigned)(low - 0xdc00);
	return 12;
}

/* Decodes the escape at p, which points to a backslash. Returns the bytes used; 0: invalid. */
static size_t unescape(const char *p, size_t left, char **out)
{
	static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
	const char *at = left > 1 && p[1] ? strchr(from, p[1]) : NULL;
	unsigned c = 0;

	if (at) {
		*(*out)++ = to[at - from];
		return 2;
	}
	size_t used = left > 1 && p[1] == 'u' ? unicode_escape(p, left, &c) : 0;

	if (used)
		*out = put_utf8(*out, c);
	return used;
}

int json_string(struct json *j, char **ret_text)
{
	if (j->error)
		return j->error;
	if (!take(j, '"'))
		return fail(j, -EBADMSG, "a text was expected");
	const char *p = j->text + j->pos, *end = j->text + j->len;
	/* An escape is never shorter than its decoded text. */
	size_t room = 0;

	while (p + room < end && p[room] != '"')
		room += p[room] == '\\' ? 2 : 1;
	if (p + room >= end)
		return fail(j, -EBADMSG, "a text has no end");
	AUTO_FREE char *text = malloc(room + 1);
	char *out = text;

	if (!text)
		return fail(j, -ENOMEM, "out of memory");
	while (*p != '"') {
		size_t used = 1;

		if (*p == '\\')
			used = unescape(p, (size_t)(end - p), &out);
		else if ((unsigned char)*p >= ' ')
			*out++ = *p;
		else
			used = 0;
		if (!used)
			return fail(j, -EBADMSG,
				    "a text has a wrong escape or a control character");
		p += used;
	}
	*out = 0;
	j->pos = (size_t)(p + 1 - j->text);
	*ret_text = TAKE_PTR(text);
	return 0;
}

int json_u64(struct json *j, uint64_t *ret_value)
{
	uint64_t x = 0;
	size_t start;

	if (j->error)
		return j->error;
	(void)peek(j);
	for (start = j->pos; j->pos < j->len && isdigit((unsigned char)j->text[j->pos]); j->pos++) {
		unsigned digit = (unsigned)(j->text[j->pos] - '0');

		if (x > (UINT64_MAX - digit) / 10)
			return fail(j, -E2BIG, "a number is too large");
		x = x * 10 + digit;
	}
	if (start == j->pos || (j->text[start] == '0' && j->pos - start > 1))
		return fail(j, -EBADMSG, "a number was expected");
	if (j->pos < j->len && memchr(".eE", j->text[j->pos], 3))
		return fail(j, -EBADMSG, "a whole number was expected");
	*ret_value = x;
	return 0;
}

int json_bool(struct json *j, bool *ret_value)
{
	if (j->error)
		return j->error;
	if (take_word(j, "true"))
		*ret_value = true;
	else if (take_word(j, "false"))
		*ret_value = false;
	else
		return fail(j, -EBADMSG, "true or false was expected");
	return 0;
}

/* -12.5e+3 */
static int skip_number(struct json *j)
{
	size_t start = j->pos;

	while (j->pos < j->len &&
	       (isdigit((unsigned char)j->text[j->pos]) || memchr("+-.eE", j->text[j->pos], 5)))
		j->pos++;
	return start == j->pos ? fail(j, -EBADMSG, "a value was expected") : 0;
}

static int skip_array(struct json *j)
{
	int r = json_array(j);

	while (!r && (r = json_item(j)) > 0)
		r = json_skip(j);
	return r;
}

static int skip_object(struct json *j)
{
	char *key;
	int r = json_object(j);

	while (!r && (r = json_key(j, &key)) > 0) {
		free(key);
		r = json_skip(j);
	}
	return r;
}

char json_peek(struct json *j)
{
	return j->error ? 0 : peek(j);
}

int json_skip(struct json *j)
{
	char *text;

	if (j->error)
		return j->error;
	switch (peek(j)) {
	case '{':
		return skip_object(j);
	case '[':
		return skip_array(j);
	case '"':
		if (!json_string(j, &text))
			free(text);
		return j->error;
	default:
		if (take_word(j, "true") || take_word(j, "false") || take_word(j, "null"))
			return 0;
		return skip_number(j);
	}
}

int json_end(struct json *j)
{
	if (!j->error && (peek(j) || j->pos < j->len))
		return fail(j, -EBADMSG, "something follows the end of the document");
	return j->error;
}
