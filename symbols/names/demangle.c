#include "symbols/names/demangle.h"

#include "base/cleanup.h"
#include "base/vec.h"
#include "elf/budget.h"

#include <ctype.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Declared in libiberty/demangle.h, whose folder differs between distributions. */
typedef void demangle_callback(const char *text, size_t len, void *context);
extern int cplus_demangle_v3_callback(const char *mangled, int options, demangle_callback *callback,
				      void *context);
extern int rust_demangle_callback(const char *mangled, int options, demangle_callback *callback,
				  void *context);
#define DMGL_NO_OPTS 0
#define DMGL_PARAMS (1 << 0)
#define DMGL_ANSI (1 << 1)

#ifndef sigev_notify_thread_id /* glibc 2.36 lacks it */
#define sigev_notify_thread_id _sigev_un._tid
#endif

#define PLT_SUFFIX "@plt"
/* Bytes of perf's buffer for such a name, less the NUL; longer names are cut */
#define PERF_PLT_NAME_MAX 1023

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Convert camlModule__name_12 to Module.name_12. $xx is a character in hexadecimal. */
static char *demangle_ocaml(const char *name)
{
	if (strncmp(name, "caml", 4) || !isupper((unsigned char)name[4]))
		return NULL;
	char *text = malloc(strlen(name) + 1), *out = text;

	if (!text)
		return NULL;
	for (const char *p = name + 4; *p;) {
		if (p[0] == '_' && p[1] == '_') {
			*out++ = '.';
			p += 2;
		} else if (p[0] == '$' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
			*out++ = (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
			p += 3;
		} else {
			*out++ = *p++;
		}
	}
	*out = 0;
	return text;
}

/* CPU time for one name; what it counts as work; and what does not count. Most take some us. */
#define NAME_CPU_NS 50000000
#define NAME_WORK ((uint64_t)64 << 20)
#define NAME_FREE_NS 1000000
/* Shorter names end soon: the library visits a part at most 2^(bytes of the name / 4) times. */
#define TIMED_NAME_MIN 64

/*
 * Text collected piece by piece. A short name can stand for endless text, because each part may
 * refer to earlier parts twice. If the text grows too long, leave the library by longjmp. Nothing
 * leaks, because with callbacks the library holds no memory except its stack.
 *
 * The library for C++ can also visit parts without end and give no text. A timer ends that.
 */
struct text {
	VEC(char) chars;
	size_t pieces;
	sigjmp_buf give_up;
	volatile sig_atomic_t busy, late; /* in take_text; the time is over */
};

static _Thread_local struct text *volatile timed_text; /* the one that the timer may end */

static void take_text(const char *text, size_t len, void *context)
{
	struct text *t = context;

	t->busy = 1;
	/* The library for Rust gives many empty texts. */
	if (len > DEMANGLE_NAME_MAX - t->chars.len || t->pieces++ > DEMANGLE_NAME_MAX ||
	    vec_reserve(&t->chars, len + 1))
		siglongjmp(t->give_up, 1);
	if (len) /* the library passes NULL for empty text */
		memcpy(t->chars.v + t->chars.len, text, len);
	t->chars.len += len;
	t->busy = 0;
	if (t->late)
		siglongjmp(t->give_up, 1);
}

static void end_late_name(int signal)
{
	struct text *t = timed_text;

	(void)signal;
	if (!t)
		return;
	t->late = 1;
	if (!t->busy)
		siglongjmp(t->give_up, 1);
}

static void install_timer_signal(void)
{
	struct sigaction action = {.sa_handler = end_late_name,
				   .sa_flags = SA_NODEFER | SA_RESTART};

	sigaction(SIGVTALRM, &action, NULL);
}

/* Begin the time of a name on this thread. False: out of timers. */
static bool begin_time(timer_t *ret_timer)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGVTALRM};
	const struct itimerspec time = {{.tv_nsec = NAME_CPU_NS}, {.tv_nsec = NAME_CPU_NS}};
	sigset_t signals;

	pthread_once(&once, install_timer_signal);
	sigemptyset(&signals);
	sigaddset(&signals, SIGVTALRM);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	event.sigev_notify_thread_id = gettid();
	if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, ret_timer))
		return false;
	timer_settime(*ret_timer, 0, &time, NULL);
	return true;
}

static void end_time(timer_t timer, bool late)
{
	struct itimerspec left;
	uint64_t took_ns = NAME_CPU_NS;

	if (!late && !timer_gettime(timer, &left))
		took_ns -= (uint64_t)left.it_value.tv_nsec;
	timer_delete(timer);
	if (took_ns > NAME_FREE_NS)
		elf_budget_worked(took_ns * NAME_WORK / NAME_CPU_NS);
}

/*
 * Whether a C++ name may have packs, sizeof... or templates in the type of a conversion. Only these
 * make the library visit parts again and again.
 */
static bool may_multiply(const char *name)
{
	return strstr(name, "Dp") || strstr(name, "sp") || strstr(name, "sZ") ||
	       strstr(name, "cvT");
}

typedef int demangle_fn(const char *mangled, int options, demangle_callback *callback,
			void *context);

/* A function of its own, because siglongjmp changes locals. */
__attribute__((noinline)) static bool write_text(demangle_fn *fn, const char *name, int options,
						 struct text *t)
{
	if (!sigsetjmp(t->give_up, 0)) {
		timed_text = t;
		bool done = fn(name, options, take_text, t) && t->chars.len;
		timed_text = NULL;
		return done;
	}
	timed_text = NULL;
	return false;
}

static char *demangle_with(demangle_fn *fn, const char *name, int options, uint64_t *made_bytes)
{
	struct text t = {0};
	bool timed = fn == cplus_demangle_v3_callback && name[strnlen(name, TIMED_NAME_MIN)];
	timer_t timer;

	if (timed && ((may_multiply(name) && !elf_budget_work(0)) || !begin_time(&timer)))
		return NULL;
	bool done = write_text(fn, name, options, &t);

	if (timed)
		end_time(timer, t.late);
	*made_bytes += t.chars.len;
	if (!done) {
		vec_free(&t.chars);
		return NULL;
	}
	t.chars.v[t.chars.len] = 0;
	return t.chars.v;
}

/*
 * Try the languages in the order of libiberty's cplus_demangle, without those that it tries only on
 * demand.
 */
static char *demangle_any(const char *name, int options, uint64_t *made_bytes)
{
	char *text;

	if (name[0] == '_') {
		text = demangle_with(rust_demangle_callback, name, options, made_bytes);
		return text ? text
			    : demangle_with(cplus_demangle_v3_callback, name, options, made_bytes);
	}
	return demangle_ocaml(name);
}

static char *demangle_plt(const char *name, size_t len, int options, uint64_t *made_bytes)
{
	AUTO_FREE char *bare = strndup(name, len);
	AUTO_FREE char *text = bare ? demangle_any(bare, options, made_bytes) : NULL;
	char *with_plt = NULL;

	if (!text || asprintf(&with_plt, "%s" PLT_SUFFIX, text) < 0)
		return NULL;
	if (options == DMGL_NO_OPTS && strlen(with_plt) > PERF_PLT_NAME_MAX)
		with_plt[PERF_PLT_NAME_MAX] = 0;
	return with_plt;
}

static char *demangle(const char *name, int options, uint64_t *made_bytes)
{
	if (name[0] != '_' && name[0] != 'c')
		return NULL; /* most names are plain C */
	size_t len = strnlen(name, DEMANGLE_NAME_MAX + 1);
	size_t suffix = sizeof(PLT_SUFFIX) - 1;

	if (len > DEMANGLE_NAME_MAX)
		return NULL;
	if (len > suffix && !memcmp(name + len - suffix, PLT_SUFFIX, suffix))
		return demangle_plt(name, len - suffix, options, made_bytes);
	return demangle_any(name, options, made_bytes);
}

char *demangle_perf(const char *name)
{
	uint64_t made_bytes = 0;

	return demangle_perf_counted(name, &made_bytes);
}

char *demangle_perf_counted(const char *name, uint64_t *made_bytes)
{
	return demangle(name, DMGL_NO_OPTS, made_bytes);
}

char *demangle_full(const char *name)
{
	uint64_t made_bytes = 0;

	return demangle(name, DMGL_PARAMS | DMGL_ANSI, &made_bytes);
}
