#include "profcpu/doctor_row.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

void doctor_add_row(struct doctor_report *report, enum doctor_state state, const char *name,
		    const char *effect, const char *remedy, const char *format, ...)
{
	va_list args;

	if (report->len == DOCTOR_ITEMS_MAX)
		return;
	struct doctor_item *item = &report->items[report->len++];

	*item = (struct doctor_item){.state = state, .name = name};
	va_start(args, format);
	vsnprintf(item->found, sizeof(item->found), format, args);
	va_end(args);
	if (state != DOCTOR_YES) {
		item->effect = effect;
		item->remedy = remedy;
	}
	if (state == DOCTOR_FATAL)
		report->can_record = false;
}

enum doctor_state doctor_yes_or_no(bool good)
{
	return good ? DOCTOR_YES : DOCTOR_NO;
}

bool doctor_has_cap(const struct doctor_facts *f, int cap)
{
	return permission_has(&f->rights, cap);
}

bool doctor_is_denial(int error)
{
	return error == -EACCES || error == -EPERM;
}
