#include "profcpu/record_watch.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* Under nohup the terminal's end is to be no end. */
static bool is_ignored(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_handler == SIG_IGN;
}

int record_watch_new(struct record_watch *w)
{
	sigset_t mask;

	*w = (struct record_watch){0};
	sigemptyset(&mask);
	sigaddset(&mask, SIGINT);
	sigaddset(&mask, SIGTERM);
	if (!is_ignored(SIGHUP))
		sigaddset(&mask, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &mask, &w->old_mask))
		return -errno;
	w->masked = true;
	int fd = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return -errno;
	if (vec_reserve(&w->fds, 2)) {
		close(fd);
		return -ENOMEM;
	}
	w->fds.v[w->fds.len++] = (struct pollfd){.fd = fd, .events = POLLIN};
	w->fds.v[w->fds.len++] = (struct pollfd){.fd = -1, .events = POLLIN};
	return 0;
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
	for (size_t i = 0; i < w->fds.len; i++)
		if (w->fds.v[i].fd >= 0 && i != RECORD_WATCH_SAMPLER)
			close(w->fds.v[i].fd);
	vec_free(&w->fds);
	vec_free(&w->processes);
	vec_free(&w->polled);
	record_watch_unmask(w);
}

void record_watch_sampler(struct record_watch *w, int fd)
{
	w->fds.v[RECORD_WATCH_SAMPLER].fd = fd;
}

int record_watch_process(struct record_watch *w, pid_t pid)
{
	if (vec_reserve(&w->fds, 1) || vec_reserve(&w->processes, 1) || vec_reserve(&w->polled, 1))
		return -ENOMEM;
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd < 0 && errno == ESRCH)
		return 0;
	w->alive++;
	if (fd < 0) { /* an older kernel, seccomp, or no descriptor left */
		w->polled.v[w->polled.len++] = pid;
		return 0;
	}
	w->fds.v[w->fds.len++] = (struct pollfd){.fd = fd, .events = POLLIN};
	w->processes.v[w->processes.len++] = pid;
	return 0;
}

static void check_processes(struct record_watch *w)
{
	for (size_t i = RECORD_WATCH_PIDFDS; i < w->fds.len; i++) {
		if (w->fds.v[i].fd < 0 || !w->fds.v[i].revents)
			continue;
		close(w->fds.v[i].fd);
		w->fds.v[i].fd = -1; /* poll passes over it from now on */
		w->alive--;
	}
	for (size_t i = 0; i < w->polled.len;) {
		if (!kill(w->polled.v[i], 0) || errno != ESRCH) {
			i++;
			continue;
		}
		w->polled.v[i] = w->polled.v[--w->polled.len];
		w->alive--;
	}
}

int record_watch_signal(struct record_watch *w)
{
	struct signalfd_siginfo info;

	if (read(w->fds.v[RECORD_WATCH_SIGNALS].fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return 0;
	if (info.ssi_signo == SIGHUP)
		signal(SIGHUP, SIG_IGN);
	return (int)info.ssi_signo;
}

int record_watch_wait(struct record_watch *w, int timeout_ms, int *ret_signal)
{
	int n = poll(w->fds.v, w->fds.len, timeout_ms);

	*ret_signal = 0;
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (w->fds.v[RECORD_WATCH_SIGNALS].revents)
		*ret_signal = record_watch_signal(w);
	check_processes(w);
	return 0;
}

size_t record_watch_alive(const struct record_watch *w)
{
	return w->alive;
}
