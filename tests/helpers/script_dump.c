/*
 * Loads perf.data and prints each sample like `perf script -F
 * comm,pid,tid,time,period,ip,sym,symoff,dso`, for comparison line by line.
 *
 * usage: script_dump perf.data [full | count] [store DIR | offline DIR]
 */
#include "base/log.h"
#include "base/outbuf.h"
#include "container/opener.h"
#include "profcpu/post/import.h"
#include "profile/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct dump {
	struct profile *profile;
	struct outbuf out;
	bool full;
	bool count; /* only counts, for measurements */
};

static void dump_frame(struct dump *d, const struct profile_frame *f)
{
	outbuf_printf(&d->out, "\t%16" PRIx64 " ", f->addr);
	if (d->full) {
		outbuf_printf(&d->out, "%s {kind %d status %d source %d}",
			      profile_text_of(d->profile, f->name, NULL), f->kind, f->status,
			      f->source);
	} else if (f->perf_name == PROFILE_NONE) {
		outbuf_str(&d->out, "[unknown]");
	} else {
		outbuf_str(&d->out, profile_text_of(d->profile, f->perf_name, NULL));
		if (f->has_sym_off)
			outbuf_printf(&d->out, "+0x%" PRIx64, f->sym_off);
	}
	outbuf_printf(&d->out, " (%s)\n", profile_text_of(d->profile, f->module, NULL));
}

static int dump_sample(void *ctx, const struct profile_sample *s)
{
	struct dump *d = ctx;
	const struct profile_thread *t = profile_thread_of(d->profile, s->thread);

	outbuf_printf(&d->out, "%s %5d/%-5d %5" PRIu64 ".%06" PRIu64 ": %10" PRIu64 " \n",
		      d->full && t->other_pid_ns ? "[other pid namespace]"
						 : profile_text_of(d->profile, t->comm, NULL),
		      t->pid, t->tid, s->time_ns / 1000000000, s->time_ns % 1000000000 / 1000,
		      s->weight);
	for (uint32_t k = s->stack; k != PROFILE_STACK_EMPTY;
	     k = profile_stack_parent(d->profile, k))
		dump_frame(d, profile_frame_of(d->profile, profile_stack_frame(d->profile, k)));
	outbuf_char(&d->out, '\n');
	return 0;
}

static void print_message(enum log_level level, const char *text, unsigned long repeats)
{
	(void)level;
	fprintf(stderr, "script_dump: %s (%lu more)\n", text, repeats);
}

static int dump_options(int argc, char **argv, struct import_options *options, struct dump *d)
{
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "full")) {
			d->full = true;
		} else if (!strcmp(argv[i], "count")) {
			d->count = true;
		} else if (i + 1 < argc) {
			int dir = open(argv[i + 1], O_RDONLY | O_DIRECTORY);

			if (dir < 0) {
				perror(argv[i + 1]);
				return -1;
			}
			options->symbols.offline = !strcmp(argv[i], "offline");
			if (options->symbols.offline)
				options->symbols.store_dir_fd = dir;
			else
				options->write_store_dir_fd = dir;
			i++;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct import_options options = {.symbols.store_dir_fd = -1, .write_store_dir_fd = -1};
	struct import_result result;
	struct audit audit = {0};
	struct dump d = {.out = outbuf_to(1)};
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1, r;

	log_set_sink(print_message);
	if (fd < 0 || dump_options(argc, argv, &options, &d)) {
		fprintf(stderr, "usage: script_dump perf.data [full] [store DIR | offline DIR]\n");
		return 2;
	}
	if (opener_new(&options.symbols.opener) || profile_new(&d.profile))
		return 1;
	options.ret_audit = &audit;
	r = post_import_perfdata(fd, &options, d.profile, &result);
	if (!r && !d.count)
		r = profile_each_sample(d.profile, dump_sample, &d);
	fprintf(stderr,
		"samples %" PRIu64 ", complete %" PRIu64 ", missing images %" PRIu64
		", replaced %" PRIu64 "\n",
		audit.samples, audit.stacks_complete, audit.notes.images_missing,
		audit.notes.images_replaced);
	for (size_t i = 0; i < audit.groups.len; i++) {
		const struct audit_group *g = &audit.groups.v[i];

		fprintf(stderr,
			"%s %s %d: unknown %" PRIu64 ", placed %" PRIu64 ", named %" PRIu64
			"; %s\n",
			audit_kind_name(g->kind), g->path ? g->path : "-", g->pid,
			g->frames[FRAME_IS_UNKNOWN], g->frames[FRAME_IS_PLACED],
			g->frames[FRAME_IS_NAMED], audit_reason_word(g->reason));
	}
	audit_free(&audit);
	if (outbuf_close(&d.out) || r)
		fprintf(stderr, "script_dump: %s %s\n", strerror(-r),
			result.error.what ? result.error.what : "");
	profile_free(d.profile);
	opener_free(options.symbols.opener);
	return r != 0;
}
