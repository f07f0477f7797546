#include "container/cgroup.h"

#include <ctype.h>
#include <string.h>

#define CGROUP_ID_DIGITS 64

/*
 * Finds the last run of exactly 64 hex digits in [p, end), or NULL. The last run is the
 * container's; earlier runs are those of pods.
 */
static const char *cgroup_find_id(const char *p, const char *end)
{
	const char *found = NULL;

	while (p < end) {
		size_t n = 0;

		while (p + n < end && isxdigit((unsigned char)p[n]) &&
		       !isupper((unsigned char)p[n]))
			n++;
		if (n == CGROUP_ID_DIGITS)
			found = p;
		p += n ? n : 1;
	}
	return found;
}

/*
 * Finds a name that a runtime gave instead of an id: "/lxc/NAME", "/lxc.payload.NAME",
 * "/machine.slice/machine-NAME.scope".
 */
static size_t cgroup_find_name(const char *p, const char *end, const char **ret_name)
{
	static const struct {
		const char *before, *after;
	} forms[] = {
		{"/lxc.payload.", ""},
		{"/lxc/", ""},
		{"/machine-", ".scope"},
	};
	size_t len = (size_t)(end - p);

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		const char *at = memmem(p, len, forms[i].before, strlen(forms[i].before));

		if (!at)
			continue;
		at += strlen(forms[i].before);
		const char *stop = memchr(at, '/', (size_t)(end - at));
		size_t n = (size_t)((stop ? stop : end) - at), tail = strlen(forms[i].after);

		if (n <= tail || memcmp(at + n - tail, forms[i].after, tail))
			continue;
		*ret_name = at;
		return n - tail;
	}
	return 0;
}

void cgroup_container_id(const char *cgroup_text, char *buf, size_t cap)
{
	const char *name = NULL;
	size_t name_len = 0;

	if (!cap)
		return;
	buf[0] = 0;
	/* Lines are "ID:CONTROLLERS:PATH"; version 2 has one line, "0::PATH". */
	while (*cgroup_text) {
		const char *end = strchrnul(cgroup_text, '\n');
		const char *id = cgroup_find_id(cgroup_text, end);

		if (id) {
			name = id;
			name_len = CGROUP_ID_DIGITS;
			break;
		}
		if (!name_len)
			name_len = cgroup_find_name(cgroup_text, end, &name);
		cgroup_text = *end ? end + 1 : end;
	}
	if (!name_len)
		return;
	if (name_len >= cap)
		name_len = cap - 1;
	memcpy(buf, name, name_len);
	buf[name_len] = 0;
	/* The name may be printed on a terminal. */
	for (char *p = buf; *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
}
