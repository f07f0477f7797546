#include "unwind/jit_codes.h"

#include "base/hash.h"
#include "base/hashmap.h"
#include "base/vec.h"

#include <errno.h>

/* A request for an address without known code. */
struct request {
	uint64_t addr, since_ns;
	bool is_unknown; /* answered: unknown */
};

struct stretch {
	struct jit_code code;
	uint64_t seen_ns;
	bool requested; /* requested again */
};

struct jit_process {
	int32_t pid;
	VEC(struct stretch *) stretches; /* sorted, without overlaps */
	VEC(struct request) requests;
	struct hashmap requested; /* addr -> index into requests */
};

struct jit_codes {
	VEC(struct jit_process) processes;
	struct hashmap by_pid;
	size_t n, bytes, bytes_max;
	size_t nrequests; /* of all processes */
};

int jit_codes_new(size_t bytes_max, struct jit_codes **ret_codes)
{
	struct jit_codes *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->bytes_max = bytes_max;
	*ret_codes = c;
	return 0;
}

static void free_stretch(struct jit_codes *c, struct stretch *s)
{
	c->n--;
	c->bytes -= sizeof(*s) + code_rules_bytes(&s->code.rules);
	code_rules_free(&s->code.rules);
	free(s);
}

static void forget_requests(struct jit_codes *c, struct jit_process *p)
{
	c->nrequests -= p->requests.len;
	vec_free(&p->requests);
	hashmap_free(&p->requested);
}

static void forget(struct jit_codes *c, struct jit_process *p)
{
	for (size_t i = 0; i < p->stretches.len; i++)
		free_stretch(c, p->stretches.v[i]);
	vec_free(&p->stretches);
	forget_requests(c, p);
}

void jit_codes_free(struct jit_codes *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->processes.len; i++)
		forget(c, &c->processes.v[i]);
	vec_free(&c->processes);
	hashmap_free(&c->by_pid);
	free(c);
}

static struct jit_process *process_of(const struct jit_codes *c, int32_t pid)
{
	const uint32_t *known = hashmap_get(&c->by_pid, (uint32_t)pid);

	return known ? &c->processes.v[*known] : NULL;
}

void jit_codes_forget(struct jit_codes *c, int32_t pid)
{
	struct jit_process *p = process_of(c, pid), *last;

	if (!p)
		return;
	forget(c, p);
	hashmap_remove(&c->by_pid, (uint32_t)pid);
	last = &c->processes.v[--c->processes.len];
	if (p == last)
		return;
	*p = *last;
	*hashmap_get(&c->by_pid, (uint32_t)p->pid) = (uint32_t)(p - c->processes.v);
}

/* Finds or adds a process. NULL: out of memory. */
static struct jit_process *make_process(struct jit_codes *c, int32_t pid)
{
	struct jit_process *p = process_of(c, pid);

	if (p)
		return p;
	if (vec_push(&c->processes, (struct jit_process){.pid = pid}))
		return NULL;
	if (hashmap_put(&c->by_pid, (uint32_t)pid, (uint32_t)c->processes.len - 1)) {
		c->processes.len--;
		return NULL;
	}
	return &c->processes.v[c->processes.len - 1];
}

/* The first stretch that ends after addr. */
static size_t search(const struct jit_process *p, uint64_t addr)
{
	size_t low = 0, high = p->stretches.len;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (p->stretches.v[mid]->code.end <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Whether more than age_ns passed since then. A sample may be older than the answer. */
static bool is_past(uint64_t since_ns, uint64_t now_ns, uint64_t age_ns)
{
	return now_ns > since_ns && now_ns - since_ns > age_ns;
}

static int find_request(struct jit_codes *c, struct jit_process *p, uint64_t addr, uint64_t now_ns,
			bool *ret_request)
{
	const uint32_t *known = hashmap_get(&p->requested, addr);
	struct request *q = known ? &p->requests.v[*known] : NULL;
	int r;

	*ret_request = !q;
	if (q && !q->is_unknown)
		return -EAGAIN;
	/* The old answer holds until a new one arrives. */
	if (q) {
		*ret_request = is_past(q->since_ns, now_ns, JIT_CODES_UNKNOWN_NS);
		if (*ret_request)
			q->since_ns = now_ns;
		return -ENOENT;
	}
	if (c->nrequests >= JIT_CODES_REQUESTS_MAX)
		for (size_t i = 0; i < c->processes.len; i++)
			forget_requests(c, &c->processes.v[i]);
	if (vec_push(&p->requests, ((struct request){.addr = addr, .since_ns = now_ns})))
		return -ENOMEM;
	c->nrequests++;
	r = hashmap_put(&p->requested, addr, (uint32_t)p->requests.len - 1);
	return r ? r : -EAGAIN;
}

int jit_codes_find(struct jit_codes *c, int32_t pid, uint64_t addr, uint64_t now_ns,
		   const struct jit_code **ret_code, bool *ret_request)
{
	struct jit_process *p = make_process(c, pid);
	size_t i = p ? search(p, addr) : 0;
	struct stretch *s;

	if (!p)
		return -ENOMEM;
	if (i == p->stretches.len || p->stretches.v[i]->code.start > addr)
		return find_request(c, p, addr, now_ns, ret_request);
	s = p->stretches.v[i];
	*ret_request = s->code.movable && !s->requested &&
		       is_past(s->seen_ns, now_ns, JIT_CODES_MOVABLE_NS);
	s->requested |= *ret_request;
	*ret_code = &s->code;
	return 0;
}

/* Removes what overlaps [start, end). Returns the index for a stretch that begins at start. */
static size_t clear(struct jit_codes *c, struct jit_process *p, uint64_t start, uint64_t end)
{
	size_t first = search(p, start), last = first;

	while (last < p->stretches.len && p->stretches.v[last]->code.start < end)
		free_stretch(c, p->stretches.v[last++]);
	if (last > first)
		memmove(p->stretches.v + first, p->stretches.v + last,
			(p->stretches.len - last) * sizeof(*p->stretches.v));
	p->stretches.len -= last - first;
	return first;
}

static int add_stretch(struct jit_codes *c, struct jit_process *p, struct jit_code *code,
		       uint64_t now_ns)
{
	struct stretch *s = calloc(1, sizeof(*s));
	size_t at;

	if (!s || vec_reserve(&p->stretches, 1)) {
		free(s);
		return -ENOMEM;
	}
	at = clear(c, p, code->start, code->end);
	s->code = *code;
	code->rules = (struct code_rules){0};
	s->seen_ns = now_ns;
	memmove(p->stretches.v + at + 1, p->stretches.v + at,
		(p->stretches.len - at) * sizeof(*p->stretches.v));
	p->stretches.v[at] = s;
	p->stretches.len++;
	c->n++;
	c->bytes += sizeof(*s) + code_rules_bytes(&s->code.rules);
	return 0;
}

int jit_codes_put(struct jit_codes *c, int32_t pid, uint64_t addr, struct jit_code *code,
		  uint64_t now_ns)
{
	struct jit_process *p = process_of(c, pid);
	const uint32_t *known = p ? hashmap_get(&p->requested, addr) : NULL;

	if (!p)
		return 0;
	if (known) {
		p->requests.v[*known].is_unknown = true;
		p->requests.v[*known].since_ns = now_ns;
	}
	if (!code || code->end <= code->start || addr < code->start || addr >= code->end) {
		/* The code that was there is gone. */
		clear(c, p, addr, addr + 1);
		return 0;
	}
	if (c->n >= JIT_CODES_MAX || c->bytes > c->bytes_max)
		for (size_t i = 0; i < c->processes.len; i++)
			forget(c, &c->processes.v[i]);
	return add_stretch(c, p, code, now_ns);
}
