#include "profcpu/stacks/by_runtime.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/exit_status.h"
#include "base/file.h"
#include "base/log.h"
#include "profcpu/trace/trace.h"

#include <errno.h>

#define BY_RUNTIME_BUFFER_MB 64
#define BY_RUNTIME_RUNDOWN UINT64_C(0x138) /* methods and modules that have been loaded */

static int runtime_trace(pid_t pid, const char *path)
{
	struct provider_list providers = {0};
	struct trace_options options = {
		.target = {.pid = pid, .quiet = true},
		.rundown_keywords = BY_RUNTIME_RUNDOWN,
		.buffer_mb = BY_RUNTIME_BUFFER_MB,
		.duration_ns = BY_RUNTIME_NS,
		.out = path,
	};
	struct stop_event none = {0};
	int r = provider_list_add_profile(&providers, "dotnet-sampled-thread-time");

	if (r)
		log_error("out of memory");
	options.providers = providers.v.v;
	options.nproviders = providers.v.len;
	options.stop = &none;
	if (!r && trace_run(&options) != EXIT_DONE)
		r = -EIO;
	provider_list_free(&providers);
	return r;
}

/* Threads by their ids in the namespace of the process, as the runtime knows them. */
static int runtime_map(const struct stacks_threads *threads, struct hashmap *by_ns_tid)
{
	int r = 0;

	for (size_t i = 0; i < threads->list.len && !r; i++)
		r = hashmap_put(by_ns_tid, (uint64_t)threads->list.v[i].ns_tid, (uint32_t)i);
	return r;
}

static int runtime_assign(struct profile *profile, struct stacks_threads *threads)
{
	struct hashmap by_ns_tid = {0};
	size_t n;
	const struct profile_group *groups = profile_groups(profile, &n);
	int r = runtime_map(threads, &by_ns_tid);

	for (size_t i = 0; i < n && !r; i++) {
		const struct profile_thread *of = profile_thread_of(profile, groups[i].thread);
		const uint32_t *index = hashmap_get(&by_ns_tid, (uint64_t)of->tid);
		struct stacks_thread *thread = index ? &threads->list.v[*index] : NULL;

		if (!thread || groups[i].weight <= thread->weight)
			continue;
		thread->how = STACKS_MANAGED;
		thread->weight = groups[i].weight;
		thread->stack = groups[i].stack;
	}
	for (size_t i = 0; i < threads->list.len && !r; i++)
		if (threads->list.v[i].how == STACKS_NO_STACK)
			r = stacks_thread_why(&threads->list.v[i],
					      "the runtime's sampler shows only managed threads");
	hashmap_free(&by_ns_tid);
	if (r)
		log_error("out of memory");
	return r;
}

int by_runtime_take(const char *dir, const struct post_options *load, struct profile *profile,
		    struct stacks_threads *threads)
{
	AUTO_FREE char *path = file_join(dir, "stacks.nettrace");
	struct post_source source;
	struct post_result result;

	if (!path) {
		log_error("out of memory");
		return -ENOMEM;
	}
	int r = runtime_trace(threads->pid, path);

	if (!r)
		r = post_open(path, &source);
	if (r)
		return r;
	r = post_load_source(&source, "the runtime's trace", load, profile, &result);
	post_open_close(&source);
	return r ? r : runtime_assign(profile, threads);
}
