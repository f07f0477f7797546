#include "base/shell_word.h"

#include "base/outbuf.h"
#include "base/printable.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

static bool shell_word_is_plain(const char *text)
{
	const char *p = text;

	while (isalnum((unsigned char)*p) || (*p && strchr("_@%+=:,./-", *p)))
		p++;
	return p > text && !*p;
}

static void shell_word_put_quoted(struct outbuf *out, const char *text)
{
	outbuf_char(out, '\'');
	for (; *text; text++)
		if (*text == '\'')
			outbuf_str(out, "'\\''");
		else
			outbuf_char(out, *text);
	outbuf_char(out, '\'');
}

/* Escapes every byte that is not printable ASCII, because a part of them is not valid UTF-8. */
static void shell_word_put_escaped(struct outbuf *out, const char *text)
{
	outbuf_str(out, "$'");
	for (; *text; text++)
		if (*text == '\'' || *text == '\\')
			outbuf_printf(out, "\\%c", *text);
		else if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			outbuf_printf(out, "\\%03o", (unsigned char)*text);
		else
			outbuf_char(out, *text);
	outbuf_char(out, '\'');
}

char *shell_word(const char *text)
{
	struct outbuf out = outbuf_to(-1);

	if (*text == '-')
		outbuf_str(&out, "./");
	if (shell_word_is_plain(text))
		outbuf_str(&out, text);
	else if (printable_is(text, strlen(text)))
		shell_word_put_quoted(&out, text);
	else
		shell_word_put_escaped(&out, text);
	outbuf_char(&out, '\0');
	if (!out.error)
		return out.data;
	(void)outbuf_close(&out);
	return NULL;
}
