#include "profcpu/trace/names.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/intern.h"
#include "base/path.h"
#include "base/ranges.h"
#include "base/vec.h"
#include "dotnet/coreclr/runtime.h"
#include "dotnet/eventpipe/method_events.h"
#include "dotnet/eventpipe/session.h"
#include "profcpu/trace/stack_addresses.h"
#include "symbols/live_images.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_STEP_NS (250 * NS_PER_MS)
#define NAMES_STEP_PART 50 /* of the time goes to steps, at most */
#define NAMES_LISTED_MAX ((size_t)1 << 20)
#define NAMES_FLAGS_PRECOMPILED 0x100 /* as the runtime sets them: the tier "optimized" */
#define NAMES_TOKEN 0x06000000

/* Events of both providers that tell the place of a method. */
#define NAMES_METHOD_LOAD 143
#define NAMES_METHOD_END 144 /* of the rundown */

/* JIT-compiled code that the process has, or had until the last scan. */
struct names_body {
	uint64_t start, method, module;
	const char *name;
	uint32_t bytes, len, rid;
	uint32_t gone_in; /* scan that missed it; 0: it is there */
	bool is_dynamic;
};

struct trace_names {
	struct clr_jit_code *jit;
	struct live_images *images;
	uint32_t step; /* number of the present step, from 1 */
	uint64_t next_ns;
	struct stack_addresses taken; /* since the last step */
	VEC(uint64_t) retry;          /* fresh ones of the last step without a name */
	struct hashmap listed;        /* starts of methods that the stream names itself -> index */
	VEC(struct range) listed_ranges;
	VEC(struct names_body) bodies;
	struct hashmap body_at; /* start -> index of the latest body */
	VEC(struct method_event)
	methods;                  /* that are written, in the order in which they were found */
	struct hashmap method_at; /* start -> index of the latest method */
	struct intern paths;
	struct trace_names_stats stats;
};

int trace_names_new(struct opener *opener, pid_t pid, uint64_t until_ns,
		    struct trace_names **ret_names, struct parse_error *err)
{
	struct trace_names *n = calloc(1, sizeof(*n));
	int r = n ? live_images_new(opener, pid, &n->images) : -ENOMEM;

	if (r)
		parse_fail(err, r, "out of memory", 0);
	else
		r = clr_runtime_open(pid, until_ns, &n->jit, err);
	/* So files of its root can be opened after its end. Without it, some names are missing. */
	if (!r)
		(void)opener_pin(opener, pid);
	if (r)
		trace_names_free(n);
	else
		*ret_names = n;
	return r;
}

void trace_names_free(struct trace_names *n)
{
	if (!n)
		return;
	clr_jit_code_free(n->jit);
	live_images_free(n->images);
	stack_addresses_free(&n->taken);
	vec_free(&n->retry);
	hashmap_free(&n->listed);
	vec_free(&n->listed_ranges);
	vec_free(&n->bodies);
	hashmap_free(&n->body_at);
	vec_free(&n->methods);
	hashmap_free(&n->method_at);
	intern_free(&n->paths);
	free(n);
}

/* Notes the code that an event names. */
static void names_take_listed(struct trace_names *n, const struct nettrace_event *event)
{
	bool of_rundown = !strcmp(event->kind->provider, PROVIDER_RUNDOWN);
	struct reader r = reader_of(event->blob.payload, event->blob.payload_len);

	if (event->kind->event_id != NAMES_METHOD_LOAD &&
	    !(of_rundown && event->kind->event_id == NAMES_METHOD_END))
		return;
	if (!of_rundown && strcmp(event->kind->provider, PROVIDER_RUNTIME) != 0)
		return;
	reader_skip(&r, 2 * sizeof(uint64_t)); /* ids of the method and its module */
	struct range range = {.start = reader_u64(&r)};
	uint32_t *index;
	int is_new;

	range.bytes = reader_u32(&r);
	if (r.failed || n->listed.len >= NAMES_LISTED_MAX || vec_reserve(&n->listed_ranges, 1) ||
	    hashmap_entry(&n->listed, range.start, (uint32_t)n->listed_ranges.len, &index, &is_new))
		return;
	n->listed_ranges.v[*index] = range;
	n->listed_ranges.len += is_new != 0;
}

void trace_names_take(struct trace_names *n, const struct nettrace_event *event,
		      uint32_t pointer_bytes)
{
	names_take_listed(n, event);
	if (event->stack)
		stack_addresses_take(&n->taken, event->stack, event->stack_bytes, pointer_bytes);
}

bool trace_names_is_due(const struct trace_names *n)
{
	return stack_addresses_are_many(&n->taken) || clock_monotonic_ns() >= n->next_ns;
}

static int names_take_body(void *ctx, const struct clr_jit_code_body *code)
{
	struct trace_names *n = ctx;
	const struct names_body body = {.start = code->start,
					.method = code->method,
					.module = code->module,
					.name = code->name,
					.bytes = code->bytes,
					.len = code->name_len,
					.rid = code->rid,
					.is_dynamic = code->is_dynamic};
	uint32_t *index;
	int is_new, r = vec_reserve(&n->bodies, 1) ? -ENOMEM : 0;

	if (code->is_stub)
		return 0;
	if (!r)
		r = hashmap_entry(&n->body_at, code->start, (uint32_t)n->bodies.len, &index,
				  &is_new);
	if (!r)
		n->bodies.v[*index] = body;
	if (!r && is_new)
		n->bodies.len++;
	return r;
}

static int names_take_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	struct trace_names *n = ctx;
	const uint32_t *index = hashmap_get(&n->body_at, start);

	(void)seen_ns;
	if (index)
		n->bodies.v[*index].gone_in = n->step;
	return 0;
}

/* Adds a method to those that are written, or replaces an earlier one at its place. */
static int names_add(struct trace_names *n, const struct method_event *method)
{
	const uint32_t *known = hashmap_get(&n->method_at, method->start);
	const struct method_event *old = known ? &n->methods.v[*known] : NULL;

	if (old && old->bytes == method->bytes && old->len == method->len &&
	    !memcmp(old->name, method->name, method->len))
		return 0;
	if (n->methods.len >= TRACE_NAMES_METHODS_MAX) {
		n->stats.left_out++;
		return 0;
	}
	/* The replaced one stays in the list, and is not written. */
	if (vec_reserve(&n->methods, 1) ||
	    hashmap_put(&n->method_at, method->start, (uint32_t)n->methods.len))
		return -ENOMEM;
	n->methods.v[n->methods.len++] = *method;
	return 0;
}

static int names_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* The first fresh address from addr on. */
static size_t names_find_fresh(const struct trace_names *n, uint64_t addr)
{
	size_t low = 0, high = n->taken.fresh.len;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (n->taken.fresh.v[middle] < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Marks the fresh addresses in a range. Returns whether there are any. */
static bool names_mark(const struct trace_names *n, uint64_t start, uint64_t bytes,
		       unsigned char *named)
{
	size_t first = names_find_fresh(n, start), i = first;

	for (; i < n->taken.fresh.len && n->taken.fresh.v[i] - start < bytes; i++)
		named[i] = 1;
	return i > first;
}

/* Finds the path of a module, while the process runs. *ret_path stays if it is unknown. */
static int names_path(struct trace_names *n, uint64_t module, uint64_t until_ns,
		      const char **ret_path)
{
	const char *path = NULL;
	uint32_t id;
	int r = module ? clr_jit_code_module_path(n->jit, module, until_ns, &path) : 0;

	/* Without it, the name of the assembly is enough. */
	if (r || !path)
		return r == -ENOMEM ? r : 0;
	r = intern_str(&n->paths, path, &id);
	if (!r)
		*ret_path = intern_text(&n->paths, id);
	return r;
}

/* Names fresh addresses in a body; those of others stay. */
static int names_match_body(struct trace_names *n, const struct names_body *body,
			    unsigned char *named, uint64_t until_ns)
{
	struct method_event method = {
		.start = body->start,
		.bytes = body->bytes,
		.flags = METHOD_JITTED | (body->is_dynamic ? METHOD_DYNAMIC : 0),
		.token = body->rid ? NAMES_TOKEN | body->rid : 0,
		.id = body->method,
		.module = body->module,
		.name = body->name,
		.len = body->len,
	};

	if (!names_mark(n, body->start, body->bytes, named))
		return 0;
	int r = names_path(n, body->module, until_ns, &method.path);

	return r ? r : names_add(n, &method);
}

/* Names fresh addresses in JIT-compiled code: that which is gone now only if no other is there. */
static int names_match_bodies(struct trace_names *n, unsigned char *named, uint64_t until_ns)
{
	int r = 0;

	for (size_t i = 0; i < n->bodies.len && !r; i++)
		if (!n->bodies.v[i].gone_in)
			r = names_match_body(n, &n->bodies.v[i], named, until_ns);
	for (size_t i = 0; i < n->bodies.len && !r; i++) {
		const struct names_body *body = &n->bodies.v[i];
		size_t at = body->gone_in == n->step ? names_find_fresh(n, body->start) : SIZE_MAX;

		if (at < n->taken.fresh.len && !named[at])
			r = names_match_body(n, body, named, until_ns);
	}
	return r;
}

/* Whether a file has the name of its assembly, as nearly all have. */
static bool names_is_own(const char *path, const char *name, size_t len)
{
	const char *base = path_base(path), *dot = strrchr(base, '.');
	size_t n = dot ? (size_t)(dot - base) : strlen(base);
	struct outbuf signature = outbuf_to(-1);
	struct method_name_parts parts;
	bool own = !method_name_split(name, len, &parts, &signature) && parts.assembly_len == n &&
		   !memcmp(parts.assembly, base, n);

	outbuf_close(&signature);
	return own;
}

/* Names an address in precompiled code. */
static int names_match_image(struct trace_names *n, uint64_t addr, bool *ret_named)
{
	struct live_symbol symbol;
	int r = live_images_find(n->images, addr, &symbol);

	*ret_named = !r && symbol.source == SYMBOL_R2R;
	if (!*ret_named)
		return r == -ENOMEM ? r : 0;
	struct method_event method = {.start = symbol.start,
				      .bytes = (uint32_t)(symbol.end - symbol.start),
				      .flags = NAMES_FLAGS_PRECOMPILED,
				      .name = symbol.name,
				      .len = symbol.name_len};

	/* Code of an image may be that of a method of another assembly. */
	if (names_is_own(symbol.path, symbol.name, symbol.name_len)) {
		method.module = clr_jit_code_image(n->jit, addr);
		method.path = symbol.path;
	}
	return names_add(n, &method);
}

static int names_match_images(struct trace_names *n, unsigned char *named, uint64_t until_ns)
{
	bool found;
	int r = 0;

	for (size_t i = 0; i < n->taken.fresh.len && !r; i++) {
		if (named[i])
			continue;
		r = clock_monotonic_ns() >= until_ns
			    ? -ETIMEDOUT
			    : names_match_image(n, n->taken.fresh.v[i], &found);
		named[i] = !r && found;
	}
	return r;
}

/* Names all fresh addresses, with the maps of the process as they were read last. */
static int names_match(struct trace_names *n, unsigned char *named, uint64_t until_ns)
{
	for (size_t i = 0; i < n->listed_ranges.len; i++)
		(void)names_mark(n, n->listed_ranges.v[i].start, n->listed_ranges.v[i].bytes,
				 named);
	int r = names_match_bodies(n, named, until_ns);

	if (!r)
		r = names_match_images(n, named, until_ns);
	/* A file may have been mapped since. */
	if (!r && memchr(named, 0, n->taken.fresh.len) && !live_images_read_maps(n->images))
		r = names_match_images(n, named, until_ns);
	return r;
}

/* Adds the nameless addresses of the last step, and sorts all. They were found or not in `named`.
 */
static int names_begin(struct trace_names *n, unsigned char **ret_named)
{
	size_t kept = 0;

	for (size_t i = 0; i < n->retry.len; i++)
		if (vec_push(&n->taken.fresh, n->retry.v[i]))
			return -ENOMEM;
	if (n->taken.fresh.len)
		qsort(n->taken.fresh.v, n->taken.fresh.len, sizeof(*n->taken.fresh.v), names_order);
	for (size_t i = 0; i < n->taken.fresh.len; i++)
		if (!i || n->taken.fresh.v[i] != n->taken.fresh.v[i - 1])
			n->taken.fresh.v[kept++] = n->taken.fresh.v[i];
	n->taken.fresh.len = kept;
	*ret_named = calloc(kept + 1, 1);
	return *ret_named ? 0 : -ENOMEM;
}

/*
 * Begins a new interval. Addresses without a name are tried once more, because code may be newer
 * than the scan. Without memory for that they stay nameless.
 */
static void names_end(struct trace_names *n, const unsigned char *named, bool last)
{
	size_t old = 0, ntries = n->retry.len, nameless = 0;

	for (size_t i = 0; i < n->taken.fresh.len; i++) {
		uint64_t addr = n->taken.fresh.v[i];

		while (old < ntries && n->retry.v[old] < addr)
			old++;
		bool again = old < ntries && n->retry.v[old] == addr;

		n->stats.addresses += !again;
		if (named[i])
			continue;
		if (again || last)
			n->stats.nameless++;
		if (!again)
			n->taken.fresh.v[nameless++] = addr;
	}
	n->retry.len = 0;
	n->taken.fresh.len = nameless;
	for (size_t i = 0; i < nameless && !last; i++)
		if (vec_push(&n->retry, n->taken.fresh.v[i]))
			n->stats.nameless++;
	stack_addresses_clear(&n->taken);
}

int trace_names_step(struct trace_names *n, uint64_t until_ns, bool last)
{
	const struct clr_jit_code_listener listener = {names_take_body, names_take_gone, n};
	AUTO_FREE unsigned char *named = NULL;
	uint64_t begin_ns = clock_monotonic_ns();

	n->step++;
	if (last)
		clr_jit_code_compare_all(n->jit);
	int scanned = clr_jit_code_scan(n->jit, &listener, until_ns);
	int r = names_begin(n, &named);

	/* The code that is known has names also when the scan could not find more. */
	if (!r)
		r = names_match(n, named, until_ns);
	if (named)
		names_end(n, named, last);
	uint64_t end_ns = clock_monotonic_ns(), took_ns = end_ns - begin_ns;

	n->stats.step_ns += took_ns;
	/* The first step reads all that was compiled before, and the others what is new. */
	n->next_ns = end_ns + (took_ns * NAMES_STEP_PART > NAMES_STEP_NS && n->step > 1
				       ? took_ns * NAMES_STEP_PART
				       : NAMES_STEP_NS);
	return scanned ? scanned : r;
}

struct trace_names_stats trace_names_stats(const struct trace_names *n)
{
	struct trace_names_stats stats = n->stats;

	stats.left_out += n->taken.left_out;
	stats.stacks_left_out = n->taken.stacks_left_out;
	return stats;
}

int trace_names_write(struct trace_names *n, const struct nettrace_trace *trace, uint64_t whole,
		      uint32_t last_kind_id, struct outbuf *out)
{
	struct nettrace_writer w = nettrace_writer_to(out, trace->version < 6 ? 4 : 6, whole);
	struct method_events_result result = {0};
	size_t kept = 0;

	if (trace->version < 4 || last_kind_id > INT32_MAX - METHOD_EVENTS_KINDS)
		return -EBADMSG;
	for (size_t i = 0; i < n->methods.len; i++)
		if (!hashmap_get(&n->listed, n->methods.v[i].start))
			n->methods.v[kept++] = n->methods.v[i];
	n->methods.len = kept;
	int r = method_events_write(&w, trace, last_kind_id + 1, clock_monotonic_ns(), n->methods.v,
				    kept, &result);

	nettrace_writer_end(&w);
	n->stats.written = result.written;
	n->stats.replaced = result.replaced;
	return r ? r : out->error;
}
