#include "profcpu/post/report_text.h"

#include <stdio.h>
#include <string.h>

void report_text_share(uint64_t n, uint64_t all, char text[REPORT_SHARE_BYTES])
{
	uint64_t hundredths = all ? (uint64_t)((double)n * 10000.0 / (double)all + 0.5) : 0;

	if (n && !hundredths)
		snprintf(text, REPORT_SHARE_BYTES, "<0.01 %%");
	else if (n < all && hundredths >= 10000)
		snprintf(text, REPORT_SHARE_BYTES, ">99.99 %%");
	else
		snprintf(text, REPORT_SHARE_BYTES, "%llu.%02llu %%",
			 (unsigned long long)hundredths / 100,
			 (unsigned long long)hundredths % 100);
}

void report_text_name(const char *name, struct outbuf *out)
{
	outbuf_printable(out, name, strlen(name), REPORT_NAME_BYTES);
}

const char *report_text_larger_rings(bool rings_free)
{
	return rings_free ? "" : ", or record with CAP_IPC_LOCK, which gives larger rings";
}
