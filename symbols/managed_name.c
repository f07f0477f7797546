#include "symbols/managed_name.h"

enum managed_name_kind managed_name_full(const char *text, size_t len, struct outbuf *out,
					 struct managed_name_part *ret_tier, struct managed_name_part *ret_module)
{
	if (ret_tier)
		*ret_tier = (struct managed_name_part){0};
	if (ret_module)
		*ret_module = (struct managed_name_part){0};
	outbuf_put(out, text, len);
	return MANAGED_NAME_OTHER;
}
