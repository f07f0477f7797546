#include "recording/script_header.h"

bool script_header_id(struct script_part text, int32_t *ret_id)
{
	int64_t value = 0;

	if (!text.len || text.len > 10 || (text.len > 1 && *text.at == '0'))
		return false;
	for (size_t i = 0; i < text.len; i++)
		value = value * 10 + (text.at[i] - '0');
	if (value > INT32_MAX)
		return false;
	*ret_id = (int32_t)value;
	return true;
}

struct script_part script_header_event(struct script_part rest)
{
	const char *p = rest.at, *end = p + rest.len;

	while (p < end) {
		const char *token = p;

		while (p < end && !script_line_is_space(*p))
			p++;
		if (p - token >= 2 && p[-1] == ':' && (*token < '0' || *token > '9') &&
		    *token != '[')
			return (struct script_part){token, (size_t)(p - 1 - token)};
		while (p < end && script_line_is_space(*p))
			p++;
	}
	return (struct script_part){"unknown", 7};
}

/* Parses "1704.274854:" into ns. */
static bool script_time(const char *at, const char *end, uint64_t *ret_ns)
{
	uint64_t s = 0, ns = 0, scale = 1000000000;
	const char *p = at;

	for (; p < end && *p >= '0' && *p <= '9' && s < UINT32_MAX; p++)
		s = s * 10 + (uint64_t)(*p - '0');
	if (p == at || p == end || *p != '.')
		return false;
	for (p++; p < end && *p >= '0' && *p <= '9' && scale > 1; p++) {
		scale /= 10;
		ns += (uint64_t)(*p - '0') * scale;
	}
	if (p == end || *p != ':' || scale == 1000000000)
		return false;
	*ret_ns = s * 1000000000 + ns;
	return true;
}

void script_header_place(struct script_part rest, struct profile_sample *sample)
{
	const char *p = rest.at, *end = p + rest.len;

	/* Both are among the first four words after the ids. */
	for (int words = 0; p < end && words < 4; words++) {
		const char *word = p;

		while (p < end && !script_line_is_space(*p))
			p++;
		if (script_time(word, p, &sample->time_ns))
			return;
		if (p - word >= 3 && *word == '[' && p[-1] == ']') {
			struct script_part digits = {word + 1, (size_t)(p - word - 2)};

			while (digits.len > 1 && *digits.at == '0') {
				digits.at++;
				digits.len--;
			}
			if (!script_header_id(digits, &sample->cpu))
				sample->cpu = -1;
		}
		while (p < end && script_line_is_space(*p))
			p++;
	}
}
