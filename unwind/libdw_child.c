#include "unwind/libdw_child.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/hashmap.h"
#include "base/thread.h"
#include "base/vec.h"
#include "container/memory_left.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILD_FD 3 /* its end of the socket */
#define STATM_BYTES_MAX 256

/*
 * A walk: the parent sends walk_request, the registers and the stack. The child sends find_request
 * for each address of which it needs the code, and the parent answers with find_answer and, the
 * first time, the image. At last the child sends walk_answer in place of a find_request, and the
 * frames. After the fork both have the same static data, so a machine is sent as its address.
 */
struct walk_request {
	const struct machine *machine;
	uint64_t regs_mask, stack_bytes, frames_max;
	uint32_t space;
	bool early;
};
struct child_message {
	bool done;
	uint8_t end;   /* done: enum walk_end */
	int32_t error; /* done: of the walk */
	uint64_t n;    /* done: frames that follow; else the address */
	struct libdw_cost cost;
};
struct find_answer {
	int32_t error;
	uint32_t number; /* of the image */
	uint64_t start, end, elf_start;
	bool has_image;
	uint64_t bytes; /* of the image, which follows; 0: it was sent before */
};

struct libdw_child {
	libdw_child_find_fn *find_code;
	void *ctx;
	pid_t pid;           /* 0: not started */
	int fd;              /* -1: not started */
	struct hashmap sent; /* numbers of images that the child has */
	bool has_walked;     /* it made other walks */
	/* Shared with the child; outlives it: the image whose rules are being read. */
	volatile uint32_t *now_in;
};

/* Sends or receives all of it, until a time of CLOCK_MONOTONIC (0: none). 0; -EPIPE; -ETIME;
 * -errno. */
static int transfer(int fd, void *data, size_t bytes, bool sends, uint64_t until_ns)
{
	unsigned char *at = data;

	while (bytes) {
		struct pollfd p = {.fd = fd, .events = sends ? POLLOUT : POLLIN};
		uint64_t now_ns = until_ns ? clock_monotonic_ns() : 0;

		if (until_ns && now_ns >= until_ns)
			return -ETIME;
		ssize_t n = sends ? send(fd, at, bytes, MSG_NOSIGNAL | MSG_DONTWAIT)
				  : recv(fd, at, bytes, MSG_DONTWAIT);

		if (!n)
			return -EPIPE;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0 &&
		    poll(&p, 1, until_ns ? (int)((until_ns - now_ns) / NS_PER_MS) + 1 : -1) < 0 &&
		    errno != EINTR)
			return -errno;
		at += n > 0 ? n : 0;
		bytes -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The child. */

struct child {
	struct libdw_walk *walk;
	struct hashmap numbers; /* number of an image -> index */
	VEC(Elf *) elves;       /* NULL: no CFI */
};

static int child_take_image(struct child *c, const struct find_answer *answer)
{
	Elf *elf = NULL;

	if (answer->bytes) {
		char *file = malloc(answer->bytes);

		if (!file || transfer(CHILD_FD, file, answer->bytes, false, 0))
			_exit(EXIT_FAILURE);
		elf = elf_memory(file, answer->bytes);
	}
	return vec_push(&c->elves, elf) ||
			       hashmap_put(&c->numbers, answer->number, (uint32_t)c->elves.len - 1)
		       ? -ENOMEM
		       : 0;
}

static int child_find_code(void *ctx, uint64_t addr, struct libdw_code *ret_code)
{
	struct child *c = ctx;
	struct child_message message = {.n = addr};
	struct find_answer answer;
	uint32_t *index;

	if (transfer(CHILD_FD, &message, sizeof(message), true, 0) ||
	    transfer(CHILD_FD, &answer, sizeof(answer), false, 0))
		_exit(EXIT_FAILURE);
	if (answer.error)
		return answer.error;
	if (answer.bytes && child_take_image(c, &answer))
		return -ENOMEM;
	index = answer.has_image ? hashmap_get(&c->numbers, answer.number) : NULL;
	*ret_code = (struct libdw_code){.start = answer.start,
					.end = answer.end,
					.number = answer.number,
					.elf = index ? c->elves.v[*index] : NULL,
					.elf_start = answer.elf_start};
	return 0;
}

static void child_walk(struct child *c, struct walk *walk, const struct walk_request *request,
		       uint64_t *regs, void *stack)
{
	const struct libdw_sample sample = {.machine = request->machine,
					    .space = request->space,
					    .regs = regs,
					    .regs_mask = request->regs_mask,
					    .memory = {.data = stack, .len = request->stack_bytes}};
	struct child_message message = {.done = true};

	walk->max = request->frames_max;
	message.error = libdw_walk_stack(c->walk, &sample, walk, &message.cost);
	message.end = walk->end;
	message.n = walk->n;
	if (transfer(CHILD_FD, &message, sizeof(message), true, 0) ||
	    transfer(CHILD_FD, walk->frames, walk->n * sizeof(*walk->frames), true, 0))
		_exit(EXIT_FAILURE);
}

/* Begins the time of a walk. The kernel ends the child when it is over. */
static void child_limit_walk(bool early)
{
	const struct itimerval timer = {.it_value.tv_usec =
						early ? LIBDW_CHILD_EARLY_MS * 1000 : 0};
	struct rlimit limit;

	setitimer(ITIMER_PROF, &timer, NULL);
	if (getrlimit(RLIMIT_CPU, &limit))
		return;
	limit.rlim_cur = clock_process_ns() / NS_PER_S + 1 + LIBDW_CHILD_CPU_S;
	limit.rlim_cur = limit.rlim_cur < limit.rlim_max ? limit.rlim_cur : limit.rlim_max;
	setrlimit(RLIMIT_CPU, &limit);
}

/*
 * Crashes without a message or a core file, keeps only the socket, has a limit of memory, and ends
 * with its parent.
 */
static void child_limit(int fd, pid_t parent)
{
	const int crashes[] = THREAD_CRASH_SIGNALS;
	AUTO_FREE char *statm = NULL;
	unsigned long pages = 0;
	sigset_t limits;
	size_t len;

	for (size_t i = 0; i < sizeof(crashes) / sizeof(*crashes); i++)
		signal(crashes[i], SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGXCPU, SIG_DFL);
	signal(SIGPROF, SIG_DFL);
	sigemptyset(&limits);
	sigaddset(&limits, SIGXCPU);
	sigaddset(&limits, SIGPROF);
	sigprocmask(SIG_UNBLOCK, &limits, NULL);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != parent)
		_exit(EXIT_FAILURE);
	if (fd != CHILD_FD && dup2(fd, CHILD_FD) < 0)
		_exit(EXIT_FAILURE);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	if (!file_read_at(AT_FDCWD, "/proc/self/statm", STATM_BYTES_MAX, &statm, &len) &&
	    sscanf(statm, "%lu", &pages) == 1) {
		uint64_t left = memory_left() / LIBDW_CHILD_PART;
		rlim_t bytes = (rlim_t)pages * (rlim_t)getpagesize() +
			       (left < LIBDW_CHILD_BYTES ? left : LIBDW_CHILD_BYTES);

		setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes});
	}
	file_close_from(CHILD_FD + 1);
}

static _Noreturn void child_main(int fd, pid_t parent, volatile uint32_t *now_in)
{
	struct walk_request request;
	struct child c = {0};
	struct walk walk = {0};

	child_limit(fd, parent);
	if (libdw_walk_new(child_find_code, &c, now_in, &c.walk))
		_exit(EXIT_FAILURE);
	while (!transfer(CHILD_FD, &request, sizeof(request), false, 0)) {
		uint64_t regs[64];
		void *stack = malloc(request.stack_bytes + 1);
		size_t nregs = (size_t)__builtin_popcountll(request.regs_mask);

		if (!stack || transfer(CHILD_FD, regs, nregs * sizeof(*regs), false, 0) ||
		    transfer(CHILD_FD, stack, request.stack_bytes, false, 0))
			break;
		child_limit_walk(request.early);
		child_walk(&c, &walk, &request, regs, stack);
		free(stack);
	}
	_exit(0);
}

/* The parent. */

int libdw_child_new(libdw_child_find_fn *find_code, void *ctx, struct libdw_child **ret_child)
{
	struct libdw_child *c = calloc(1, sizeof(*c));

	void *shared = c ? mmap(NULL, sizeof(*c->now_in), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0)
			 : MAP_FAILED;

	if (shared == MAP_FAILED) {
		free(c);
		return -ENOMEM;
	}
	*c = (struct libdw_child){.find_code = find_code, .ctx = ctx, .fd = -1, .now_in = shared};
	*ret_child = c;
	return 0;
}

/* Returns whether it ended because it took its CPU time. */
static bool end_child(struct libdw_child *c)
{
	int status = 0;

	if (c->fd >= 0)
		close(c->fd);
	if (c->pid)
		kill(c->pid, SIGKILL);
	while (c->pid && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
		;
	hashmap_free(&c->sent);
	c->fd = -1;
	c->pid = 0;
	c->has_walked = false;
	return WIFSIGNALED(status) && (WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGPROF);
}

void libdw_child_forget(struct libdw_child *c)
{
	(void)end_child(c);
}

void libdw_child_free(struct libdw_child *c)
{
	if (!c)
		return;
	libdw_child_forget(c);
	munmap((void *)(uintptr_t)c->now_in, sizeof(*c->now_in));
	free(c);
}

static int start(struct libdw_child *c)
{
	int fds[2];

	if (c->pid)
		return 0;
	*c->now_in = LIBDW_NO_IMAGE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	pid_t parent = getpid(), pid = fork();
	int r = pid < 0 ? -errno : 0;

	if (!pid)
		child_main(fds[1], parent, c->now_in);
	close(fds[1]);
	if (r) {
		close(fds[0]);
		return r;
	}
	c->pid = pid;
	c->fd = fds[0];
	return 0;
}

static int answer_find(struct libdw_child *c, uint64_t addr, uint64_t until_ns)
{
	struct libdw_child_code code = {0};
	struct find_answer answer = {.error = c->find_code(c->ctx, addr, &code)};
	const void *file = NULL;
	size_t bytes = 0;

	if (answer.error == -ENOMEM)
		return -ENOMEM;
	if (!answer.error) {
		answer.number = code.number;
		answer.start = code.start;
		answer.end = code.end;
		answer.has_image =
			code.image && !libdw_image_start(code.image, code.start, code.file_off,
							 &answer.elf_start);
	}
	if (answer.has_image && !hashmap_get(&c->sent, code.number)) {
		file = libdw_image_file(code.image, &bytes);
		if (hashmap_put(&c->sent, code.number, 1))
			return -ENOMEM;
	}
	answer.bytes = bytes;
	int r = transfer(c->fd, &answer, sizeof(answer), true, until_ns);

	return r || !bytes ? r : transfer(c->fd, (void *)(uintptr_t)file, bytes, true, until_ns);
}

static int take_frames(struct libdw_child *c, const struct child_message *message,
		       struct walk *walk, uint64_t until_ns)
{
	if (message->end >= WALK_ENDS || message->n > walk->max)
		return -EPIPE;
	if (message->n > walk->cap &&
	    vec_grow((void **)&walk->frames, &walk->cap, sizeof(*walk->frames), message->n))
		return -ENOMEM;
	walk->n = message->n;
	walk->end = message->end;
	walk->edge = WALK_START;
	return transfer(c->fd, walk->frames, message->n * sizeof(*walk->frames), false, until_ns);
}

/* 0; -ENOMEM of this process; other errors: the child failed. */
static int try_walk(struct libdw_child *c, const struct libdw_sample *sample, struct walk *walk,
		    struct libdw_cost *ret_cost)
{
	struct walk_request request = {.machine = sample->machine,
				       .regs_mask = sample->regs_mask,
				       .stack_bytes = sample->memory.len,
				       .frames_max = walk->max,
				       .space = sample->space,
				       .early = sample->early};
	size_t nregs = (size_t)__builtin_popcountll(sample->regs_mask);
	uint64_t until_ns = clock_monotonic_ns() + LIBDW_CHILD_MS_MAX * NS_PER_MS;
	struct child_message message = {0};
	int r = start(c);

	if (!r)
		r = transfer(c->fd, &request, sizeof(request), true, until_ns);
	if (!r)
		r = transfer(c->fd, (void *)(uintptr_t)sample->regs, nregs * sizeof(*sample->regs),
			     true, until_ns);
	if (!r)
		r = transfer(c->fd, (void *)(uintptr_t)sample->memory.data, sample->memory.len,
			     true, until_ns);
	while (!r) {
		r = transfer(c->fd, &message, sizeof(message), false, until_ns);
		if (r || message.done)
			break;
		r = answer_find(c, message.n, until_ns);
	}
	/* Too little memory in the child is a failure of the child. */
	if (!r && message.error)
		r = -EPIPE;
	*ret_cost = message.done ? message.cost : (struct libdw_cost){.slowest = *c->now_in};
	return r ? r : take_frames(c, &message, walk, until_ns);
}

int libdw_child_walk(struct libdw_child *c, const struct libdw_sample *sample, struct walk *walk,
		     struct libdw_cost *ret_cost, bool *ret_failed)
{
	uint64_t begin_ns = clock_monotonic_ns(), failed_ns = 0;
	bool again;
	int r;

	walk->max = walk->max ? walk->max : WALK_FRAMES_MAX;
	do {
		again = c->has_walked;
		r = try_walk(c, sample, walk, ret_cost);
		c->has_walked = true;
		if (!r)
			break;
		/* The child may be in the middle of a walk. */
		again &= !end_child(c) && r != -ETIME;
		failed_ns = clock_monotonic_ns() - begin_ns;
	} while (again && r != -ENOMEM);
	*ret_failed = r;
	ret_cost->cpu_ns += failed_ns;
	if (!r || r == -ENOMEM)
		return r;
	return machine_walk_sampled(sample->machine, sample->regs, sample->regs_mask, WALK_DAMAGED,
				    walk);
}

bool libdw_child_works(void)
{
	return true;
}
