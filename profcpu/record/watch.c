#include "profcpu/record/watch.h"

#include "base/descriptor_budget.h"
#include "base/file.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

#define WATCH_EVENTS 16
#define WATCH_FD_RESERVE 64 /* descriptors left for other uses */

sigset_t record_watch_signals(void)
{
	static const int some[] = {SIGINT,  SIGTERM,   SIGHUP,  SIGQUIT,   SIGUSR1,
				   SIGUSR2, SIGALRM,   SIGXCPU, SIGVTALRM, SIGPROF,
				   SIGIO,   SIGSTKFLT, SIGPWR};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
		sigaddset(&set, some[i]);
	for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal++)
		sigaddset(&set, signal);
	return set;
}

/*
 * A shell ignores SIGINT and SIGQUIT for commands in the background, but then `kill -INT` still
 * means us.
 */
static bool ends_though_ignored(int signal)
{
	return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM;
}

/* nohup ignores SIGHUP; then closing the terminal must not end the recording. */
static bool is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

static int add_fd(const struct record_watch *w, int fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};

	return epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

int record_watch_new(struct record_watch *w)
{
	sigset_t mask = record_watch_signals();

	*w = RECORD_WATCH_NONE;
	for (int signal = 1; signal <= SIGRTMAX; signal++)
		if (!ends_though_ignored(signal) && is_ignored(signal))
			sigdelset(&mask, signal);
	if (sigprocmask(SIG_BLOCK, &mask, &w->old_mask))
		return -errno;
	w->masked = true;
	w->signal_fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
	if (w->signal_fd < 0)
		return -errno;
	w->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return w->epoll_fd < 0 ? -errno : add_fd(w, w->signal_fd);
}

void record_watch_survive_writes(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
}

void record_watch_unmask(struct record_watch *w)
{
	if (w->masked)
		sigprocmask(SIG_SETMASK, &w->old_mask, NULL);
	w->masked = false;
}

void record_watch_free(struct record_watch *w)
{
	for (size_t i = 0; i < w->pidfds.len; i++)
		close(w->pidfds.v[i]);
	vec_free(&w->pidfds);
	vec_free(&w->polled);
	if (w->signal_fd >= 0)
		close(w->signal_fd);
	if (w->epoll_fd >= 0)
		close(w->epoll_fd);
	w->signal_fd = w->epoll_fd = -1;
	record_watch_unmask(w);
}

int record_watch_sampler(struct record_watch *w, int fd)
{
	w->sampler_fd = fd;
	return add_fd(w, fd);
}

int record_watch_fd(struct record_watch *w, int fd)
{
	return add_fd(w, fd);
}

int record_watch_process(struct record_watch *w, pid_t pid)
{
	if (vec_reserve(&w->pidfds, 1) || vec_reserve(&w->polled, 1))
		return -ENOMEM;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno == ESRCH)
		return 0;
	/* Poll instead: no pidfd_open, few descriptors, or the limit of epoll watches is reached.
	 */
	if (fd < 0 || descriptor_budget_above(fd) < WATCH_FD_RESERVE || add_fd(w, fd)) {
		if (fd >= 0)
			close(fd);
		w->polled.v[w->polled.len++] = pid;
		return 0;
	}
	w->pidfds.v[w->pidfds.len++] = fd;
	return 0;
}

/* Closing a pidfd also removes it from epoll. */
static void remove_pidfd(struct record_watch *w, int pidfd)
{
	for (size_t i = 0; i < w->pidfds.len; i++)
		if (w->pidfds.v[i] == pidfd) {
			w->pidfds.v[i] = w->pidfds.v[--w->pidfds.len];
			close(pidfd);
			return;
		}
}

static void check_polled(struct record_watch *w)
{
	for (size_t i = 0; i < w->polled.len;) {
		if (!kill(w->polled.v[i], 0) || errno != ESRCH)
			i++;
		else
			w->polled.v[i] = w->polled.v[--w->polled.len];
	}
}

void record_watch_ignore_more(int number)
{
	if (number == SIGHUP || number == SIGXCPU)
		signal(number, SIG_IGN);
}

int record_watch_signal(struct record_watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	record_watch_ignore_more((int)info.ssi_signo);
	return (int)info.ssi_signo;
}

/* Uses epoll, because poll would pass all descriptors to the kernel on each call. */
int record_watch_wait(struct record_watch *w, int timeout_ms, int *ret_signal)
{
	struct epoll_event events[WATCH_EVENTS];
	int n = epoll_wait(w->epoll_fd, events, WATCH_EVENTS, timeout_ms);

	*ret_signal = 0;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	for (int i = 0; i < n; i++) {
		int fd = events[i].data.fd;

		if (fd == w->signal_fd)
			*ret_signal = record_watch_signal(w);
		else if (fd != w->sampler_fd)
			remove_pidfd(w, fd);
	}
	check_polled(w);
	return 0;
}

size_t record_watch_alive(const struct record_watch *w)
{
	return w->pidfds.len + w->polled.len;
}
