#include "symbols/names/managed_text.h"

const char *managed_text_skip_brackets(const char *p, const char *end)
{
	size_t depth = 0;

	for (; p < end; p++) {
		if (*p == '\\' && p + 1 < end)
			p++;
		else if (managed_text_opens(*p))
			depth++;
		else if (managed_text_closes(*p) && !--depth)
			return p + 1;
	}
	return end;
}
