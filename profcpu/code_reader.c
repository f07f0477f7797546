#include "profcpu/code_reader.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hashmap.h"
#include "base/vec.h"
#include "base/worker.h"
#include "container/proc.h"
#include "symbols/clr_process.h"
#include "unwind/clr_code.h"

#include <errno.h>
#include <stdlib.h>

#define OPEN_NS (2 * NS_PER_S) /* to find the runtime of a process */
#define AGAIN_NS (NS_PER_S / 5) /* until one that begins is looked at again */
#define NEVER_NS (5 * NS_PER_S) /* until one without a runtime is */
#define LATER_NS (20 * NS_PER_MS) /* until code that changes is */
#define BATCH 256 /* questions that are read together */

struct code_question {
	int32_t pid;
	uint64_t addr;
};

struct code_questions {
	struct code_question *v;
	size_t len, cap;
};

struct code_answer {
	struct code_question question;
	bool known;
	struct jit_code code;
};

/* What is known of a process; the thread's. */
struct code_process {
	int32_t pid;
	struct clr_code_reader *clr; /* NULL: not open */
	uint64_t next_ns; /* CLOCK_MONOTONIC: then it may be tried again */
};

struct code_reader {
	struct worker worker; /* its lock is of the last part */
	VEC(struct code_process) processes; /* the thread's, until it has ended */
	struct hashmap by_pid;
	struct code_questions later; /* code that changes: to be looked at again */
	/* With the lock */
	struct code_questions questions;
	VEC(struct code_answer) answers;
	bool busy;
};

bool code_reader_ask(void *ctx, int32_t pid, uint64_t addr)
{
	struct code_reader *r = ctx;
	bool taken;

	worker_lock(&r->worker);
	taken = r->questions.len < CODE_READER_QUESTIONS_MAX && !r->worker.ended &&
		!vec_push(&r->questions, ((struct code_question){pid, addr}));
	if (taken && r->questions.len == 1)
		worker_wake(&r->worker);
	worker_unlock(&r->worker);
	return taken;
}

void code_reader_forget(struct code_reader *r, int32_t pid)
{
	(void)code_reader_ask(r, pid, 0);
}

int code_reader_answer(struct code_reader *r, struct unwinder *u)
{
	uint64_t now = clock_monotonic_ns();
	int error = 0, n = 0;

	worker_lock(&r->worker);
	for (size_t i = 0; i < r->answers.len; i++, n++) {
		struct code_answer *a = &r->answers.v[i];

		if (!error)
			error = unwinder_code(u, a->question.pid, a->question.addr, a->known ? &a->code : NULL, now);
		code_rules_free(&a->code.rules);
	}
	r->answers.len = 0;
	worker_unlock(&r->worker);
	return error ? error : n;
}

void code_reader_wait(struct code_reader *r, uint64_t until_ns)
{
	worker_lock(&r->worker);
	while ((r->questions.len || r->busy) && !r->worker.ended && worker_wait(&r->worker, until_ns))
		;
	worker_unlock(&r->worker);
}

/* The runtime of a process, NULL: it has none that we can read, for now. */
static struct clr_code_reader *open_process(struct code_process *p)
{
	struct clr_io io = clr_process_io(p->pid);
	uint64_t now = clock_monotonic_ns();
	struct clr_contract contract;
	struct clr_anchors anchors;
	AUTO_FREE char *maps = NULL;
	struct parse_error err;
	size_t len;
	int r;

	if (p->clr || now < p->next_ns)
		return p->clr;
	r = proc_read(p->pid, 0, "maps", PROC_MAPS_MAX, &maps, &len);
	if (!r)
		r = clr_process_find(p->pid, now + OPEN_NS, maps, &anchors);
	if (!r)
		r = clr_contract_load(&io, &anchors, &contract, &err);
	if (!r)
		r = clr_code_reader_new(&io, &contract, &p->clr);
	/* What is no runtime now is none for some time. */
	p->next_ns = now + (r == -EAGAIN ? AGAIN_NS : NEVER_NS);
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

/* An answer, whose rules are taken; NULL: nobody knows. */
static void give(struct code_reader *r, const struct code_question *q, struct clr_code *code)
{
	struct code_answer answer = {.question = *q};

	if (code && code->kind != CLR_CODE_OF_IMAGE) {
		answer.known = true;
		answer.code = (struct jit_code){code->start, code->end, code->movable, code->rules};
		code->rules = (struct code_rules){0};
	}
	worker_lock(&r->worker);
	/* Without room for it the sample does without. */
	if (vec_push(&r->answers, answer))
		code_rules_free(&answer.code.rules);
	worker_unlock(&r->worker);
}

static void close_process(struct code_process *p, uint64_t next_ns)
{
	clr_code_reader_free(p->clr);
	p->clr = NULL;
	p->next_ns = next_ns;
}

/* Reads the code that n questions of one process are of; those that are to be asked again go to the end of r->later. */
static void read_batch(struct code_reader *r, const struct code_question *questions, size_t n)
{
	struct code_process *p = process_of(r, questions[0].pid);
	struct clr_code_reader *clr = p ? open_process(p) : NULL;
	struct clr_code codes[BATCH] = {0};
	uint64_t addrs[BATCH];
	int errors[BATCH], error;

	for (size_t i = 0; i < n; i++)
		addrs[i] = questions[i].addr;
	error = clr ? clr_code_read(clr, addrs, n, codes, errors) : -ENOENT;
	/* It has ended, or runs another program: looked for anew, should it be asked for again. */
	if (clr && error && error != -ENOMEM)
		close_process(p, clock_monotonic_ns() + AGAIN_NS);
	for (size_t i = 0; i < n; i++) {
		bool known = !error && !errors[i];

		if (!error && errors[i] == -EAGAIN && !vec_push(&r->later, questions[i]))
			continue;
		give(r, &questions[i], known ? &codes[i] : NULL);
		if (known)
			clr_code_free(&codes[i]);
	}
}

static int by_process(const void *a, const void *b)
{
	const struct code_question *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void read_all(struct code_reader *r, struct code_question *questions, size_t n)
{
	if (n)
		qsort(questions, n, sizeof(*questions), by_process);
	for (size_t from = 0, to; from < n; from = to) {
		to = from + 1;
		if (!questions[from].addr) {
			struct code_process *p = process_of(r, questions[from].pid);

			if (p)
				close_process(p, 0);
			continue;
		}
		for (; to < n && to - from < BATCH && questions[to].pid == questions[from].pid;)
			to++;
		read_batch(r, questions + from, to - from);
	}
}

/* Waits for questions, or until some are to be asked again. Those that there are, which the caller frees; false: it is the end. */
static bool next_questions(struct code_reader *r, struct code_questions *ret_questions)
{
	uint64_t later_ns = clock_monotonic_ns() + LATER_NS;
	bool stopping;

	worker_lock(&r->worker);
	r->busy = r->later.len > 0;
	worker_wake(&r->worker);
	while (!r->worker.stopping && !r->questions.len && worker_wait(&r->worker, r->later.len ? later_ns : WORKER_EVER))
		;
	*ret_questions = r->questions;
	r->questions = (struct code_questions){0};
	r->busy = true;
	stopping = r->worker.stopping;
	worker_unlock(&r->worker);
	return !stopping;
}

static void code_reader_main(void *ctx)
{
	struct code_reader *r = ctx;
	struct code_questions now, later;

	while (next_questions(r, &now)) {
		later = r->later;
		r->later = (struct code_questions){0};
		read_all(r, later.v, later.len);
		read_all(r, now.v, now.len);
		vec_free(&later);
		vec_free(&now);
	}
	vec_free(&now);
}

static void free_all(struct code_reader *r)
{
	for (size_t i = 0; i < r->processes.len; i++)
		clr_code_reader_free(r->processes.v[i].clr);
	for (size_t i = 0; i < r->answers.len; i++)
		code_rules_free(&r->answers.v[i].code.rules);
	vec_free(&r->processes);
	hashmap_free(&r->by_pid);
	vec_free(&r->questions);
	vec_free(&r->later);
	vec_free(&r->answers);
	free(r);
}

int code_reader_new(struct code_reader **ret_reader)
{
	struct code_reader *r = calloc(1, sizeof(*r));
	int error = r ? worker_start(&r->worker, code_reader_main, r) : -ENOMEM;

	if (error)
		free(r);
	else
		*ret_reader = r;
	return error;
}

/* A thread that the kernel holds, as a process's memory does not answer, keeps what is its. */
void code_reader_free(struct code_reader *r)
{
	if (r && worker_end(&r->worker, CODE_READER_END_NS))
		free_all(r);
}
