#include "profcpu/stacks/snapshot.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/access.h"
#include "container/ask.h"
#include "container/dotnet_process.h"
#include "profcpu/stacks/by_runtime.h"
#include "profcpu/stacks/taker.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Each sample has its number as its weight. */
static int snapshot_note_sample(void *ctx, const struct profile_sample *sample)
{
	struct snapshot *s = ctx;
	struct stacks_thread *thread = stacks_threads_find(
		&s->threads, profile_thread_of(s->profile, sample->thread)->tid);

	if (thread && thread->sample == sample->weight)
		thread->stack = sample->stack;
	return 0;
}

/* Names the stacks in the files. */
static int snapshot_load(const struct snapshot_options *o, struct snapshot *s, int dir_fd,
			 const char *dir)
{
	struct post_source source;
	struct post_result result;
	char name[32];
	int r = post_open_dir(dir_fd, dir, NULL, &source);

	if (r)
		return r;
	/* The files are gone when a message is read. */
	snprintf(name, sizeof(name), "process %d", o->pid);
	r = post_load_source(&source, name, &o->load, s->profile, &result);
	post_open_close(&source);
	if (!r)
		r = profile_each_sample(s->profile, snapshot_note_sample, s);
	return r;
}

static int snapshot_failed(const struct snapshot_options *o, int error)
{
	if (error == -ESRCH)
		log_error("process %d has ended", o->pid);
	else if (error == -ETIME)
		log_error("process %d: it " ASK_SILENT_WHY "; " ASK_SILENT_REMEDY, o->pid);
	else
		log_error("process %d: cannot take its stacks: %s%s", o->pid, strerror(-error),
			  remedy_for(error));
	return error;
}

/* Writes why memory may not be read, and the remedy. */
static void snapshot_why(const struct snapshot_options *o, int error, char *text, size_t cap)
{
	struct access_denial denial;
	char why[ACCESS_TEXT_BYTES];

	if (error == -ENOTSUP) {
		snprintf(text, cap, "stacks are unwound only on x86_64");
	} else if ((error == -EPERM || error == -EACCES) && !access_probe(o->pid, &denial) &&
		   denial.reason != ACCESS_ELSEWHERE) {
		access_text(&denial, why, sizeof(why));
		snprintf(text, cap,
			 "its memory may not be read: %s; run with CAP_SYS_PTRACE and "
			 "CAP_DAC_OVERRIDE",
			 why);
	} else if (error == -EPERM || error == -EACCES) {
		snprintf(text, cap,
			 "its memory may not be read; a seccomp filter, ptrace_scope or a security "
			 "module may forbid it, or its user namespace");
	} else {
		snprintf(text, cap, "the kernel does not show its memory: %s", strerror(-error));
	}
}

/*
 * Takes stacks from memory into the files. 0; -errno after one log_error line. *ret_refused: the
 * -errno of memory that may not be read, instead of a message.
 */
static int snapshot_from_memory(const struct snapshot_options *o, struct snapshot *s, int dir_fd,
				int *ret_refused)
{
	struct stacks_files files;
	uint64_t begin_ns = clock_monotonic_ns();
	int r = stacks_files_begin(&files, dir_fd, o->pid, o->load.lines);
	const struct taker_options taker = {.threads = &s->threads,
					    .files = &files,
					    .opener = o->opener,
					    .limit_ns = SNAPSHOT_NS +
							s->threads.list.len * SNAPSHOT_THREAD_NS};

	if (!r) {
		r = taker_run(&taker);
		*ret_refused =
			r == -EPERM || r == -EACCES || r == -ENOSYS || r == -ENOENT || r == -ENOTSUP
				? r
				: 0;
	}
	s->duration_ns = clock_monotonic_ns() - begin_ns;
	if (!r)
		r = stacks_files_end(&files, o->opener);
	if (!r)
		jit_capture_report(files.capture, true);
	stacks_files_free(&files);
	return r && !*ret_refused ? snapshot_failed(o, r) : 0;
}

/* Without memory, the runtime may still show something. */
static int snapshot_from_runtime(const struct snapshot_options *o, struct snapshot *s,
				 const char *dir, int error)
{
	enum dotnet_port_state state = DOTNET_PORT_NONE;
	char why[512], path[DOTNET_PORT_BYTES];

	snapshot_why(o, error, why, sizeof(why));
	if (dotnet_port(o->opener, o->pid, &state, path, sizeof(path)) ||
	    state != DOTNET_PORT_OPEN) {
		log_error("process %d: %s", o->pid, why);
		s->refused = true;
		for (size_t i = 0; i < s->threads.list.len; i++)
			if (stacks_thread_why(&s->threads.list.v[i],
					      "the memory of its process may not be read"))
				return snapshot_failed(o, -ENOMEM);
		return 0;
	}
	log_warn("process %d: %s; these are managed stacks by the runtime's sampler, which stops "
		 "all threads for a moment",
		 o->pid, why);
	s->by_runtime = true;
	return by_runtime_take(dir, &o->load, s->profile, &s->threads);
}

int snapshot_take(const struct snapshot_options *o, struct snapshot *s)
{
	struct temp_dir *temp = NULL;
	AUTO_CLOSE int dir_fd = -1;
	int refused = 0;

	*s = (struct snapshot){.realtime_ns = clock_realtime_ns()};
	int r = stacks_threads_list(o->pid, &s->threads);

	if (r == -ESRCH) {
		log_error("process %d does not exist", o->pid);
		return r;
	}
	if (!r)
		r = profile_new(&s->profile);
	if (r)
		return snapshot_failed(o, r);
	r = post_open_temp_dir(&temp, &dir_fd);
	if (r)
		return r;
	(void)opener_pin(o->opener, o->pid);
	r = snapshot_from_memory(o, s, dir_fd, &refused);
	if (!r && refused)
		r = snapshot_from_runtime(o, s, temp_dir_path(temp), refused);
	else if (!r)
		r = snapshot_load(o, s, dir_fd, temp_dir_path(temp));
	temp_dir_remove(temp);
	return r;
}

void snapshot_free(struct snapshot *s)
{
	stacks_threads_free(&s->threads);
	profile_free(s->profile);
}
