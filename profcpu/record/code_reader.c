#include "profcpu/record/code_reader.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "base/worker.h"
#include "container/memory_left.h"
#include "container/proc.h"
#include "dotnet/coreclr/runtime.h"
#include "unwind/clr_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OPEN_TIMEOUT_NS (2 * NS_PER_S)     /* time limit to find the runtime of a process */
#define STARTING_RETRY_NS (NS_PER_S / 5)   /* retry interval for a starting process */
#define NO_RUNTIME_RETRY_NS (5 * NS_PER_S) /* retry interval for a process without a runtime */
#define CHANGING_RETRY_NS (20 * NS_PER_MS) /* retry interval for code that changes */
#define CHANGING_END_NS NS_PER_S           /* after the request; then the code counts as unknown */
#define BATCH 256                          /* requests read together */

struct code_request {
	int32_t pid;
	struct clr_code_query query; /* addr 0: forget the process */
};

struct code_requests {
	struct code_request *v;
	size_t len, cap;
};

struct code_result {
	struct code_request request;
	struct jit_code *code; /* NULL: unknown */
};

/* State of a process; used by the thread only. */
struct code_process {
	int32_t pid;
	struct clr_code_reader *clr; /* NULL: not open */
	uint64_t next_ns;            /* CLOCK_MONOTONIC; earliest retry */
};

/* One read. It is too large for the stack of a thread. */
struct code_batch {
	struct clr_code codes[BATCH];
	struct clr_code_query queries[BATCH];
	int errors[BATCH];
};

struct code_reader {
	struct worker worker;    /* its lock guards the last members */
	struct code_batch batch; /* this one and the next four are used by the thread only */
	VEC(struct code_process) processes;
	struct hashmap by_pid;
	struct code_requests retries; /* changing or new code; read again at retry_ns */
	uint64_t retry_ns;
	/* Guarded by the lock */
	struct code_requests requests;
	size_t pending; /* lookups without a taken result */
	VEC(struct code_result) results;
	size_t results_bytes, results_bytes_max; /* of their code */
	uint64_t left_out;
	bool busy;
};

bool code_reader_request(void *ctx, int32_t pid, uint64_t addr)
{
	struct code_reader *r = ctx;
	bool taken;

	worker_lock(&r->worker);
	/* Processes are forgotten also when no further lookup fits. */
	taken = (addr ? r->pending : r->requests.len / 2) < CODE_READER_REQUESTS_MAX &&
		!r->worker.ended &&
		!vec_push(&r->requests, ((struct code_request){pid, {addr, clock_monotonic_ns()}}));
	r->pending += taken && addr;
	r->left_out += !taken && addr;
	if (taken && r->requests.len == 1)
		worker_wake(&r->worker);
	worker_unlock(&r->worker);
	return taken;
}

uint64_t code_reader_left_out(struct code_reader *r)
{
	worker_lock(&r->worker);
	uint64_t n = r->left_out;

	worker_unlock(&r->worker);
	return n;
}

void code_reader_forget(struct code_reader *r, int32_t pid)
{
	(void)code_reader_request(r, pid, 0);
}

static void free_code(struct jit_code *code)
{
	if (code)
		code_rules_free(&code->rules);
	free(code);
}

int code_reader_take(struct code_reader *r, struct unwinder *u)
{
	uint64_t now = clock_monotonic_ns();
	int error = 0, n = 0;

	worker_lock(&r->worker);
	for (size_t i = 0; i < r->results.len; i++, n++) {
		struct code_result *a = &r->results.v[i];

		if (!error)
			error = unwinder_add_code(u, a->request.pid, a->request.query.addr, a->code,
						  now);
		free_code(a->code);
	}
	r->pending -= r->results.len;
	r->results.len = r->results_bytes = 0;
	worker_unlock(&r->worker);
	return error ? error : n;
}

void code_reader_wait(struct code_reader *r, uint64_t until_ns)
{
	worker_lock(&r->worker);
	while ((r->requests.len || r->busy) && !r->worker.ended &&
	       worker_wait(&r->worker, until_ns))
		;
	worker_unlock(&r->worker);
}

/* Opens the runtime of a process. NULL: not readable now. */
static struct clr_code_reader *open_process(struct code_process *p)
{
	struct clr_io io = clr_runtime_io(p->pid);
	uint64_t now = clock_monotonic_ns();
	struct clr_contract contract;
	struct clr_anchors anchors;
	AUTO_FREE char *maps = NULL;
	struct parse_error err;
	int r;

	if (p->clr || now < p->next_ns)
		return p->clr;
	r = proc_read_maps(p->pid, &maps);
	if (!r)
		r = clr_runtime_locate(p->pid, now + OPEN_TIMEOUT_NS, maps, &anchors);
	if (!r)
		r = clr_contract_load(&io, &anchors, &contract, &err);
	if (!r)
		r = clr_code_reader_new(&io, &contract, &p->clr);
	/* Do not retry a process without a runtime for some time. */
	p->next_ns = now + (r == -EAGAIN ? STARTING_RETRY_NS : NO_RUNTIME_RETRY_NS);
	return p->clr;
}

static struct code_process *process_of(struct code_reader *r, int32_t pid)
{
	const uint32_t *known = hashmap_get(&r->by_pid, (uint32_t)pid);

	if (known)
		return &r->processes.v[*known];
	if (vec_push(&r->processes, (struct code_process){.pid = pid}))
		return NULL;
	if (hashmap_put(&r->by_pid, (uint32_t)pid, (uint32_t)r->processes.len - 1)) {
		r->processes.len--;
		return NULL;
	}
	return &r->processes.v[r->processes.len - 1];
}

/* Adds a result and takes its rules; code NULL: unknown. */
static void add_result(struct code_reader *r, const struct code_request *q, struct clr_code *code)
{
	struct code_result result = {.request = *q};
	size_t bytes = 0;

	if (code && code->kind != CLR_CODE_OF_IMAGE &&
	    (result.code = malloc(sizeof(*result.code)))) {
		*result.code =
			(struct jit_code){code->start, code->end, code->movable, code->rules};
		code->rules = (struct code_rules){0};
		bytes = sizeof(*result.code) + code_rules_bytes(&result.code->rules);
	}
	worker_lock(&r->worker);
	if (bytes > r->results_bytes_max - r->results_bytes) {
		free_code(TAKE_PTR(result.code));
		r->left_out++;
		bytes = 0;
	}
	/* Out of memory: the sample is unwound without this code. */
	if (vec_push(&r->results, result)) {
		free_code(result.code);
		r->pending--;
	} else {
		r->results_bytes += bytes;
	}
	worker_unlock(&r->worker);
}

static void close_process(struct code_process *p, uint64_t next_ns)
{
	clr_code_reader_free(p->clr);
	p->clr = NULL;
	p->next_ns = next_ns;
}

static void drop_process(struct code_reader *r, int32_t pid)
{
	const uint32_t *known = hashmap_get(&r->by_pid, (uint32_t)pid);
	struct code_process *p = known ? &r->processes.v[*known] : NULL;

	if (!p)
		return;
	clr_code_reader_free(p->clr);
	hashmap_remove(&r->by_pid, (uint32_t)pid);
	*p = r->processes.v[--r->processes.len];
	if (p->pid != pid)
		*hashmap_get(&r->by_pid, (uint32_t)p->pid) = (uint32_t)(p - r->processes.v);
}

/* False: it was tried for too long, or memory is exhausted. */
static bool retry_later(struct code_reader *r, const struct code_request *request)
{
	uint64_t now = clock_monotonic_ns();

	if (now - request->query.seen_ns > CHANGING_END_NS)
		return false;
	if (!r->retries.len)
		r->retry_ns = now + CHANGING_RETRY_NS;
	return !vec_push(&r->retries, *request);
}

/* Reads the code of n requests of one process. Requests to repeat go to r->retries. */
static void read_batch(struct code_reader *r, const struct code_request *requests, size_t n)
{
	struct code_process *p = process_of(r, requests[0].pid);
	struct clr_code_reader *clr = p ? open_process(p) : NULL;
	struct code_batch *b = &r->batch;
	int error;

	memset(b->codes, 0, n * sizeof(*b->codes));
	for (size_t i = 0; i < n; i++)
		b->queries[i] = requests[i].query;
	error = clr ? clr_code_read(clr, b->queries, n, b->codes, b->errors) : -ENOENT;
	/* The process has ended or executed another program; open it again on the next request. */
	if (clr && error && error != -ENOMEM)
		close_process(p, clock_monotonic_ns() + STARTING_RETRY_NS);
	for (size_t i = 0; i < n; i++) {
		bool known = !error && !b->errors[i];

		if (!error && b->errors[i] == -EAGAIN && retry_later(r, &requests[i]))
			continue;
		add_result(r, &requests[i], known ? &b->codes[i] : NULL);
		if (known)
			clr_code_free(&b->codes[i]);
	}
}

static int by_process(const void *a, const void *b)
{
	const struct code_request *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->query.addr < y->query.addr ? -1 : x->query.addr > y->query.addr;
}

/* Reads the code of n requests, none of which forgets a process. */
static void read_all(struct code_reader *r, struct code_request *requests, size_t n)
{
	if (n)
		qsort(requests, n, sizeof(*requests), by_process);
	for (size_t from = 0, to; from < n; from = to) {
		for (to = from + 1;
		     to < n && to - from < BATCH && requests[to].pid == requests[from].pid;)
			to++;
		read_batch(r, requests + from, to - from);
	}
}

static void keep_others(struct code_requests *requests, const struct hashmap *forgotten)
{
	size_t kept = 0;

	for (size_t i = 0; i < requests->len; i++)
		if (!hashmap_get(forgotten, (uint32_t)requests->v[i].pid))
			requests->v[kept++] = requests->v[i];
	requests->len = kept;
}

/*
 * Closes the runtimes of processes that the list forgets, and drops older requests for them, so
 * that none is made to the next program of the PID. Out of memory, some are made and fail.
 */
static void forget_processes(struct code_reader *r, struct code_requests *now)
{
	struct hashmap forgotten = {0};
	size_t kept = now->len, dropped = 0;

	for (size_t i = now->len; i-- > 0;) {
		const struct code_request *q = &now->v[i];

		if (!q->query.addr) {
			(void)hashmap_put(&forgotten, (uint32_t)q->pid, 1);
			drop_process(r, q->pid);
		} else if (!hashmap_get(&forgotten, (uint32_t)q->pid)) {
			now->v[--kept] = *q;
		} else {
			dropped++;
		}
	}
	now->len -= kept;
	if (kept)
		memmove(now->v, now->v + kept, now->len * sizeof(*now->v));
	dropped += r->retries.len;
	keep_others(&r->retries, &forgotten);
	dropped -= r->retries.len;
	hashmap_free(&forgotten);
	worker_lock(&r->worker);
	r->pending -= dropped;
	worker_unlock(&r->worker);
}

/* Waits for requests, or for the time to repeat some. The caller frees the list. False: stop. */
static bool next_requests(struct code_reader *r, struct code_requests *ret_requests)
{
	bool stopping;

	worker_lock(&r->worker);
	r->busy = r->retries.len > 0;
	worker_wake(&r->worker);
	while (!r->worker.stopping && !r->requests.len &&
	       worker_wait(&r->worker, r->retries.len ? r->retry_ns : WORKER_FOREVER))
		;
	*ret_requests = r->requests;
	r->requests = (struct code_requests){0};
	r->busy = true;
	stopping = r->worker.stopping;
	worker_unlock(&r->worker);
	return !stopping;
}

static void code_reader_main(void *ctx)
{
	struct code_reader *r = ctx;
	struct code_requests now, retries;

	while (next_requests(r, &now)) {
		forget_processes(r, &now);
		if (clock_monotonic_ns() >= r->retry_ns) {
			retries = r->retries;
			r->retries = (struct code_requests){0};
			read_all(r, retries.v, retries.len);
			vec_free(&retries);
		}
		read_all(r, now.v, now.len);
		vec_free(&now);
	}
	vec_free(&now);
}

static void free_all(struct code_reader *r)
{
	for (size_t i = 0; i < r->processes.len; i++)
		clr_code_reader_free(r->processes.v[i].clr);
	for (size_t i = 0; i < r->results.len; i++)
		free_code(r->results.v[i].code);
	vec_free(&r->processes);
	hashmap_free(&r->by_pid);
	vec_free(&r->requests);
	vec_free(&r->retries);
	vec_free(&r->results);
	free(r);
}

int code_reader_new(uint64_t memory, struct code_reader **ret_reader)
{
	struct code_reader *r = calloc(1, sizeof(*r));

	if (r)
		r->results_bytes_max = memory_left_eighth(memory, CODE_READER_RESULTS_BYTES);
	int error = r ? worker_start(&r->worker, "code-reader", code_reader_main, r) : -ENOMEM;

	if (error)
		free(r);
	else
		*ret_reader = r;
	return error;
}

/* If the kernel blocks the thread in a read, its memory is not freed. */
void code_reader_free(struct code_reader *r)
{
	if (r && worker_end(&r->worker, CODE_READER_END_NS))
		free_all(r);
}
