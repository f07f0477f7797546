/* Messages at the end of a recording, and its damage for the manifest. */
#include "profcpu/record/record_impl.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/remedy.h"
#include "sampler/permission.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int record_report_io(const struct record *rec, const char *verb, const char *name, int error)
{
	log_error("cannot %s %s%s%s: %s%s", verb, rec->options->dir, *name ? "/" : "", name,
		  strerror(-error), remedy_for(error));
	return error;
}

/* "CPU 3", "CPU 3 and 2 more". */
static const char *cpus_text(char *buf, size_t cap, int first, uint64_t n)
{
	int len = snprintf(buf, cap, "CPU %d", first);

	if (n > 1)
		snprintf(buf + len, cap - (size_t)len, " and %llu more", (unsigned long long)n - 1);
	return buf;
}

static void report_cpus(const struct record *rec, const struct sampler_stats *s)
{
	char text[64];

	if (s->cpus_missed)
		log_warn("not sampled: %s, which came online later: %s",
			 cpus_text(text, sizeof(text), s->cpu_missed, s->cpus_missed),
			 rec->result->setup.mode == SAMPLER_CPUS
				 ? "its events cannot be opened"
				 : "events of processes do not follow new CPUs; record the whole "
				   "machine (-a)");
	if (s->cpus_added && !rec->options->quiet)
		log_note("sampled since it came online: %s",
			 cpus_text(text, sizeof(text), s->cpu_added, s->cpus_added));
}

/* Adds to the manifest's "damage". */
static void keep_damage(struct record *rec, const char *what)
{
	const char *before = rec->manifest.damage ? rec->manifest.damage : "";
	char *both;

	if (asprintf(&both, "%s%s%s", before, *before ? "; " : "", what) < 0)
		return;
	free(rec->manifest.damage);
	rec->manifest.damage = both;
}

/* Reports why samples are missing, to the user and in the manifest. */
static void report_early_end(struct record *rec)
{
	double passed = (double)rec->result->duration_ns / (double)NS_PER_S,
	       whole = (double)rec->options->duration_ns / (double)NS_PER_S;
	char after[64], damage[256];
	int n = snprintf(after, sizeof(after), "after %.2f ", passed);

	if (rec->options->duration_ns)
		n += snprintf(after + n, sizeof(after) - (size_t)n, "of %.6g ", whole);
	snprintf(after + n, sizeof(after) - (size_t)n, "s");
	log_error("%s/" RECORDING_PERF_DATA ": cannot be written further %s: %s%s",
		  rec->options->dir, after, strerror(-rec->error), remedy_for(rec->error));
	snprintf(damage, sizeof(damage), "the recording ended %s: %s", after,
		 strerror(-rec->error));
	keep_damage(rec, damage);
}

/* Reports a limit that ended the recording. Its samples are complete until then. */
static void report_limit(const struct record *rec)
{
	const struct record_result *result = rec->result;
	double after = (double)result->duration_ns / (double)NS_PER_S;

	if (result->end == RECORD_END_SIGNAL && result->end_signal == SIGXCPU)
		log_warn("recording: ended after %.2f s: profcpu used up its CPU time; raise the "
			 "limit (ulimit -t)",
			 after);
	if (result->end == RECORD_END_SIZE)
		log_warn("recording: ended after %.2f s: %s has %.1f MiB, the limit of --max-size "
			 "is %.1f MiB; raise it, or record fewer processes (-p) or samples (-F)",
			 after, RECORDING_PERF_DATA,
			 (double)perfdata_writer_bytes(rec->writer) / 0x1p20,
			 (double)rec->options->max_bytes / 0x1p20);
}

/* Reports stacks and records that the recording lacks. */
static void report_unwinding(const struct record *rec)
{
	struct record_unwind_stats unwind = record_unwind_stats(rec->unwind);
	struct permission_facts facts;
	char why[PERMISSION_TEXT_BYTES];

	if (unwind.damaged)
		log_warn("%s/" RECORDING_PERF_DATA ": left out: %llu damaged kernel record%s",
			 rec->options->dir, (unsigned long long)unwind.damaged,
			 unwind.damaged == 1 ? "" : "s");
	if (unwind.refused) {
		permission_probe(&rec->options->roots, &facts);
		permission_memory_text(&facts, why, sizeof(why));
		log_warn("off-CPU: no stack of %llu blocked thread%s: %s",
			 (unsigned long long)unwind.refused, unwind.refused == 1 ? "" : "s", why);
	}
	if (unwind.dropped)
		log_warn("off-CPU: no stack of %llu blocked thread%s: too many threads, or their "
			 "memory was not read in time; record fewer processes (-p)",
			 (unsigned long long)unwind.dropped, unwind.dropped == 1 ? "" : "s");
}

void record_report_end(struct record *rec)
{
	if (rec->error)
		report_early_end(rec);
	report_limit(rec);
	record_detached_report(&rec->detached);
	if (rec->capture)
		jit_capture_report(rec->capture, rec->options->quiet);
	if (rec->result->names_lost)
		keep_damage(rec, "names of JIT-compiled code could not all be written");
	report_cpus(rec, sampler_stats(rec->sampler));
	if (rec->unwind)
		report_unwinding(rec);
	if (!rec->options->quiet)
		record_switches_report(&rec->switches, rec->options->off_cpu_min_ns);
}
