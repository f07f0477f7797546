#include "sampler/tracing_data.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/outbuf.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void put_u32(struct outbuf *out, uint32_t x)
{
	outbuf_put(out, &x, sizeof(x));
}

static const char *tracing_root(const struct sampler_roots *roots)
{
	if (roots->tracefs)
		return roots->tracefs;
	return access("/sys/kernel/tracing/events", F_OK) ? "/sys/kernel/debug/tracing"
							  : "/sys/kernel/tracing";
}

/* u64 size, content */
static int put_file(struct outbuf *out, const char *root, const char *name)
{
	char path[PATH_MAX];
	AUTO_FREE char *text = NULL;
	size_t len;
	uint64_t size;

	snprintf(path, sizeof(path), "%s/events/%s", root, name);
	int r = file_read_at(AT_FDCWD, path, TRACING_FILE_MAX, &text, &len);

	if (r)
		return r;
	size = len;
	outbuf_put(out, &size, sizeof(size));
	outbuf_put(out, text, len);
	return 0;
}

/* "sched:sched_switch:u": the system with its NUL, one format. */
static int put_tracepoint(struct outbuf *out, const char *root, const char *event)
{
	char name[SAMPLER_EVENT_NAME_MAX], path[SAMPLER_EVENT_NAME_MAX + 16];
	char *colon, *end;

	snprintf(name, sizeof(name), "%s", event);
	colon = strchr(name, ':');
	if (!colon)
		return -EINVAL;
	*colon = 0;
	end = strchr(colon + 1, ':');
	if (end)
		*end = 0;
	outbuf_put(out, name, strlen(name) + 1);
	put_u32(out, 1);
	snprintf(path, sizeof(path), "%s/%s/format", name, colon + 1);
	return put_file(out, root, path);
}

static int put_all(struct outbuf *out, const char *root, const struct sampler_event *events,
		   size_t n, uint32_t count)
{
	static const char magic[] = "\x17\x08\x44tracing0.5";
	int r;

	outbuf_put(out, magic, sizeof(magic)); /* with the NUL after the version */
	outbuf_char(out, __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	outbuf_char(out, (char)sizeof(long));
	put_u32(out, (uint32_t)sysconf(_SC_PAGESIZE));
	outbuf_put(out, "header_page", 12);
	r = put_file(out, root, "header_page");
	outbuf_put(out, "header_event", 13);
	if (!r)
		r = put_file(out, root, "header_event");
	put_u32(out, 0); /* formats of ftrace's own */
	put_u32(out, count);
	for (size_t i = 0; i < n && !r; i++)
		if (events[i].type == PERF_TYPE_TRACEPOINT)
			r = put_tracepoint(out, root, events[i].name);
	put_u32(out, 0); /* kallsyms */
	put_u32(out, 0); /* printk formats */
	return r ? r : out->error;
}

int tracing_data_read(const struct sampler_roots *roots, const struct sampler_event *events,
		      size_t n, char **ret_data, size_t *ret_len)
{
	struct outbuf out = outbuf_to(-1);
	uint32_t count = 0;

	*ret_data = NULL;
	*ret_len = 0;
	for (size_t i = 0; i < n; i++)
		count += events[i].type == PERF_TYPE_TRACEPOINT;
	if (!count)
		return 0;
	int r = put_all(&out, tracing_root(roots), events, n, count);

	if (!r) {
		*ret_data = TAKE_PTR(out.data);
		*ret_len = out.len;
		out.len = out.cap = 0;
	}
	(void)outbuf_close(&out);
	return r;
}

int tracing_data_format(const struct sampler_roots *roots, const char *system, const char *name,
			char **ret_text)
{
	char path[PATH_MAX];
	size_t len;
	int n = snprintf(path, sizeof(path), "%s/events/%s/%s/format", tracing_root(roots), system,
			 name);

	return n < 0 || (size_t)n >= sizeof(path)
		       ? -ENAMETOOLONG
		       : file_read_at(AT_FDCWD, path, TRACING_FILE_MAX, ret_text, &len);
}
