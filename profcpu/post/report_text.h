/* Parts of the lines of the report. */
#ifndef PROFCPU_POST_REPORT_TEXT_H
#define PROFCPU_POST_REPORT_TEXT_H

#include "base/outbuf.h"

#include <stdbool.h>
#include <stdint.h>

#define REPORT_NAME_BYTES 200 /* longer names are cut */
#define REPORT_SHARE_BYTES 24

/* n of all as "12.34 %", never rounded up to 100 % or down to 0 %: ">99.99 %", "<0.01 %". */
void report_text_share(uint64_t n, uint64_t all, char text[REPORT_SHARE_BYTES]);

/* Writes a name, printable and of at most REPORT_NAME_BYTES. */
void report_text_name(const char *name, struct outbuf *out);

/* A remedy for losses, to follow another one; "" if the recorder had CAP_IPC_LOCK. */
const char *report_text_larger_rings(bool rings_free);

#endif
