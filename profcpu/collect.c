#include "profcpu/collect.h"

#include "base/clock.h"
#include "base/heap.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "container/access.h"
#include "container/dotnet_process.h"
#include "profcpu/command.h"
#include "profcpu/default_target.h"
#include "profcpu/managed/kinds.h"
#include "profcpu/post/outdir.h"
#include "profcpu/record/child.h"
#include "profcpu/trace/beside.h"
#include "recording/manifest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* descriptors reserved for the manifest, /proc, files of targets and files for names */
#define COLLECT_RESERVED_DESCRIPTORS 16
#define COLLECT_GC_KEYWORD 1
#define COLLECT_BUFFER_MB 256
#define COLLECT_IDS_MAX ((MANAGED_KINDS + 1) * MANAGED_IDS_MAX)

/* Notes why the default event was not used. */
static void collect_note_event(const struct record_result *result)
{
	if (result->event_why[0])
		log_note("sampled %s: %s", result->event, result->event_why);
}

/* Notes how the command ended, unless with status 0. */
static void collect_note_command(const struct record_result *result)
{
	if (!result->command_ended || !result->command_status)
		return;
	if (WIFEXITED(result->command_status))
		log_note("the command ended with status %d", WEXITSTATUS(result->command_status));
	else
		log_note("signal %d ended the command", WTERMSIG(result->command_status));
}

/*
 * The exit status of a successful recording: that of the command, as with perf record, if it ended
 * by itself and no signal ended the recording.
 */
static int collect_status(const struct record_result *result)
{
	if (!result->command_ended || result->end == RECORD_END_SIGNAL)
		return EXIT_DONE;
	return record_child_exit_status(result->command_status);
}

/*
 * Writes a warning about the first target whose files we may not open; "": there is none. Call it
 * while the targets run. Children and other processes of the machine are not checked.
 */
static void collect_find_denied(const struct collect_arguments *a, struct opener *opener,
				char *text, size_t cap)
{
	char why[ACCESS_TEXT_BYTES];
	struct access_denial denial;

	*text = 0;
	for (size_t i = 0; i < a->record.npids && !*text; i++) {
		int r = opener_pin(opener, a->record.pids[i]);

		if ((r != -EACCES && r != -EPERM) || access_probe(a->record.pids[i], &denial))
			continue;
		access_text(&denial, why, sizeof(why));
		snprintf(text, cap,
			 "process %d: cannot read its files and perf map: %s; some names will be "
			 "missing%s",
			 a->record.pids[i], why,
			 denial.reason == ACCESS_ELSEWHERE ? "" : "; run with CAP_SYS_PTRACE");
	}
}

static int collect_outputs(const struct collect_arguments *a, const struct outdir *dir,
			   const struct stat *written)
{
	struct post_source source;
	uint64_t trimmed_ns = 0;

	/* The recorder's memory is free now. */
	heap_trim(&trimmed_ns, clock_monotonic_ns());
	if (post_open_dir(dir->fd, dir->path, written, &source))
		return EXIT_FAILED;
	int status = postprocess_run(&source, dir->path, dir, &a->post, NULL);

	post_open_close(&source);
	return status;
}

/* The session of events beside the samples. */
struct collect_session {
	struct session_provider providers[BESIDE_PROVIDERS_MAX];
	size_t nproviders;
	uint32_t ids[COLLECT_IDS_MAX];
	struct outbuf events; /* manifest "trace_events" */
	struct beside *beside;
};

static void collect_add_ids(struct session_provider *runtime, uint32_t *ids, const uint32_t *more)
{
	for (; *more; more++) {
		uint32_t i = 0;

		while (i < runtime->nids && ids[i] != *more)
			i++;
		ids[i] = *more;
		runtime->nids += i == runtime->nids;
	}
}

/* The needs of a kind, for runtimes that ignore the list of events. */
static void collect_add_all(struct session_provider *runtime, const struct managed_kind_info *info)
{
	uint32_t level = info->all_keywords ? info->all_level : info->level;

	runtime->all_keywords |= info->all_keywords ? info->all_keywords : info->keywords;
	if (runtime->all_level < level)
		runtime->all_level = level;
}

/* Adds what the wanted event profiles need to the runtime's provider. */
static void collect_add_profiles(const struct collect_arguments *a, struct collect_session *s,
				 struct session_provider *runtime)
{
	/* Suspensions, for the comparison. */
	static const uint32_t of_sampler[] = {MANAGED_ID_SUSPEND_BEGIN, MANAGED_ID_RESTART_END, 0};

	if (a->eventpipe && a->profiles)
		collect_add_ids(runtime, s->ids, of_sampler);
	runtime->all_keywords = runtime->keywords;
	runtime->all_level = runtime->level;
	for (unsigned k = 0; k < MANAGED_KINDS; k++) {
		const struct managed_kind_info *info = managed_kind_info(k);

		if (!(a->profiles & 1u << k))
			continue;
		runtime->keywords |= info->keywords;
		if (runtime->level < info->level)
			runtime->level = info->level;
		collect_add_ids(runtime, s->ids, info->ids);
		collect_add_all(runtime, info);
		outbuf_printf(&s->events, "%s%s", s->events.len ? "," : "", info->name);
	}
	runtime->ids = runtime->nids ? s->ids : NULL;
	if (runtime->all_level > 4)
		runtime->all_keywords &= ~MANAGED_KEYWORD_POOL;
}

/* Prepares the session of --eventpipe, --alloc and so on. 0; -errno after one log_error line. */
static int collect_beside(struct collect_arguments *a, const struct outdir *dir,
			  struct collect_session *s)
{
	struct session_provider runtime = {.name = PROVIDER_RUNTIME};

	*s = (struct collect_session){.events = outbuf_to(-1)};
	if (!a->eventpipe && !a->profiles)
		return 0;
	/* The sampler's samples, and its suspensions, which say when their threads were stopped. */
	if (a->eventpipe) {
		s->providers[s->nproviders++] =
			(struct session_provider){.name = PROVIDER_SAMPLER, .level = 4};
		runtime.keywords = COLLECT_GC_KEYWORD;
		runtime.level = 4;
		outbuf_str(&s->events, RECORDING_TRACE_SAMPLER);
	}
	collect_add_profiles(a, s, &runtime);
	s->providers[s->nproviders++] = runtime;
	if (a->profiles & 1u << MANAGED_CAUSES)
		s->providers[s->nproviders++] =
			(struct session_provider){.name = PROVIDER_PRIVATE,
						  .keywords = COLLECT_GC_KEYWORD,
						  .level = 4,
						  .ids = managed_private_ids,
						  .nids = MANAGED_PRIVATE_IDS};
	outbuf_char(&s->events, 0);
	const struct beside_options options = {.pid = a->record.npids ? a->record.pids[0] : 0,
					       .providers = s->providers,
					       .nproviders = s->nproviders,
					       .events = s->events.data,
					       .buffer_mb = COLLECT_BUFFER_MB,
					       .dir_fd = dir->fd};
	int r = s->events.error ? s->events.error : beside_new(&options, &s->beside);

	if (r)
		log_error("out of memory");
	else
		a->record.beside = beside_of_recording(s->beside);
	return r;
}

/* Whether a runtime whose events are wanted can be in the target. Logs an error if not. */
static bool collect_may_be_dotnet(const struct collect_arguments *a)
{
	const struct proc_maps_limit limit = {PROC_MAPS_SMALL, clock_monotonic_ns() + NS_PER_S};
	struct dotnet_runtime runtime = {.is_dotnet = true};
	struct opener *opener;

	if ((!a->eventpipe && !a->profiles) || !a->record.npids || opener_new(&opener))
		return true;
	int r = dotnet_probe(opener, a->record.pids[0], &limit, &runtime);

	opener_free(opener);
	if (!r && !runtime.is_dotnet)
		log_error("process %d is not a .NET process; `profcpu ps --dotnet` lists those in "
			  "sight",
			  a->record.pids[0]);
	return r || runtime.is_dotnet;
}

static int collect_record(struct collect_arguments *a, const struct outdir *dir)
{
	struct record_result result = {0};
	struct opener *opener = NULL;
	struct collect_session session;
	int status = EXIT_FAILED;
	char denied[ACCESS_TEXT_BYTES * 2];

	if (opener_new(&opener)) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	a->record.dir = dir->path;
	a->record.dir_fd = dir->fd;
	a->record.opener = opener;
	a->record.reserved_descriptors = COLLECT_RESERVED_DESCRIPTORS;
	a->post.load.opener = opener;
	collect_find_denied(a, opener, denied, sizeof(denied));
	int r = collect_beside(a, dir, &session);

	if (r) {
		outbuf_close(&session.events);
		opener_free(opener);
		return EXIT_FAILED;
	}
	r = record_run(&a->record, &result);
	int beside_failed = session.beside && result.started ? beside_check(session.beside) : 0;

	beside_free(session.beside);
	outbuf_close(&session.events);

	a->post.none_expected = result.detached;
	if (result.started) {
		if (*denied)
			log_warn("%s", denied);
		if (!a->record.quiet)
			collect_note_event(&result);
		collect_note_command(&result);
		status = a->record_only ? EXIT_DONE : collect_outputs(a, dir, &result.written);
	}
	opener_free(opener);
	if (result.started && !a->record.quiet)
		printf("written   %s\n", dir->path);
	if (result.command_error)
		return result.command_error == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	if (r || result.names_lost || beside_failed)
		return EXIT_FAILED;
	return status == EXIT_DONE ? collect_status(&result) : status;
}

int collect_run(struct collect_arguments *a)
{
	struct outdir dir;
	int status = EXIT_FAILED;

	if (!a->record.system_wide && !a->record.argv && !a->record.npids) {
		status = default_target(&a->pids, a->eventpipe || a->profiles);
		if (status != EXIT_DONE)
			return status;
		a->record.pids = a->pids.list.v;
		a->record.npids = a->pids.list.len;
	}
	if (!collect_may_be_dotnet(a) || post_outdir_make(a->out, &dir))
		return EXIT_FAILED;
	status = collect_record(a, &dir);
	if (status != EXIT_DONE)
		post_outdir_remove_empty(&dir);
	post_outdir_release(&dir);
	return command_end(status);
}

void collect_free(struct collect_arguments *a)
{
	vec_free(&a->pids.list);
	vec_free(&a->events);
	download_missing_options_free(&a->fetch);
}
