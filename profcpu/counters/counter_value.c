#include "profcpu/counters/counter_value.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_DIGITS_MIN 15 /* of a double: as many are enough for most */
#define NUMBER_DIGITS_MAX 17
#define NUMBER_BYTES 40

/* Writes the digits of a positive number without zeros at the end. Returns their exponent. */
static int number_digits(double x, char *digits)
{
	char text[NUMBER_BYTES];

	for (int n = NUMBER_DIGITS_MIN; n <= NUMBER_DIGITS_MAX; n++) {
		snprintf(text, sizeof(text), "%.*e", n - 1, x);
		if (strtod(text, NULL) == x)
			break;
	}
	char *e = strchr(text, 'e');
	size_t len = 0;

	for (const char *p = text; p < e; p++)
		if (*p != '.')
			digits[len++] = *p;
	while (len > 1 && digits[len - 1] == '0')
		len--;
	digits[len] = 0;
	return atoi(e + 1);
}

void counter_put_number(struct outbuf *out, double x)
{
	char digits[NUMBER_BYTES];

	if (isnan(x)) {
		outbuf_str(out, "NaN");
		return;
	}
	if (signbit(x))
		outbuf_char(out, '-');
	if (isinf(x) || x == 0) {
		outbuf_str(out, x == 0 ? "0" : "Infinity");
		return;
	}
	int exponent = number_digits(fabs(x), digits), len = (int)strlen(digits);

	if (exponent >= NUMBER_DIGITS_MIN || exponent < -4) {
		outbuf_printf(out, "%c%s%sE%+03d", digits[0], len > 1 ? "." : "", digits + 1,
			      exponent);
	} else if (exponent < 0) {
		outbuf_printf(out, "0.%.*s%s", -exponent - 1, "0000", digits);
	} else if (exponent + 1 >= len) {
		outbuf_printf(out, "%s%.*s", digits, exponent + 1 - len, "000000000000000");
	} else {
		outbuf_printf(out, "%.*s.%s", exponent + 1, digits, digits + exponent + 1);
	}
}

void counter_put_title(struct outbuf *out, const struct counter_value *v)
{
	const char *unit = v->unit;

	if (v->counts && (!*unit || !strcmp(unit, "count")))
		unit = "Count";
	outbuf_str(out, *v->title ? v->title : v->name);
	if (!*unit)
		return;
	outbuf_printf(out, " (%s", unit);
	if (v->is_rate) {
		outbuf_str(out, " / ");
		counter_put_number(out, (double)v->interval_ms / 1000);
		outbuf_str(out, " sec");
	}
	outbuf_char(out, ')');
}

static void value_add_tags(struct outbuf *out, size_t begin, const char *tags)
{
	if (*tags && out->len > begin)
		outbuf_char(out, ',');
	outbuf_str(out, tags);
}

static void value_add_quantile(struct outbuf *out, size_t begin, const struct counter_value *v)
{
	char text[NUMBER_BYTES];

	if (!v->has_quantile)
		return;
	snprintf(text, sizeof(text), "Percentile=%.10g", v->quantile * 100);
	value_add_tags(out, begin, text);
}

void counter_put_tags(struct outbuf *out, const struct counter_value *v)
{
	size_t begin = out->len;

	value_add_tags(out, begin, v->tags);
	value_add_quantile(out, begin, v);
}

void counter_put_all_tags(struct outbuf *out, const struct counter_value *v)
{
	size_t begin = out->len;

	value_add_tags(out, begin, v->meter_tags);
	value_add_tags(out, begin, v->instrument_tags);
	value_add_tags(out, begin, v->tags);
	value_add_quantile(out, begin, v);
}

void counter_put_shown_tags(struct outbuf *out, const struct counter_value *v)
{
	size_t begin = out->len;

	value_add_quantile(out, begin, v);
	value_add_tags(out, begin, v->tags);
	value_add_tags(out, begin, v->instrument_tags);
	value_add_tags(out, begin, v->meter_tags);
}
