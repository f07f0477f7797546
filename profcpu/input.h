/* Everything that can be folded or drawn, turned into a profile: a recording's directory, perf.data, prof.tar.gz, the text of
 * perf script, from a file or from stdin. */
#ifndef PROFCPU_INPUT_H
#define PROFCPU_INPUT_H

#include "profcpu/ingest.h"
#include "profcpu/source.h"
#include "profile/profile.h"
#include "recording/script_read.h"

#include <stdbool.h>

struct input_options {
	bool raw_names, mangled, inlines, lines; /* struct symbolizer_options */
	bool offline; /* only names that the recording holds */
	bool grades; /* struct ingest_options */
	bool idle; /* outputs show waits that are idle (profile/idle.h) */
	size_t max_stack; /* struct symbolizer_options */
	bool functions_only; /* for folding and drawing: no addresses of frames (symbolizer_options.by_function) */
	bool perf_names_only; /* with functions_only; struct symbolizer_options */
	bool improve; /* struct symbolizer_options */
	bool said; /* what is damaged was said when the source was loaded before */
	struct symbolizer_images *ret_images; /* struct ingest_options */
	struct audit *ret_audit; /* struct ingest_options; stays empty for text; not with functions_only */
	int write_store_dir_fd; /* struct ingest_options; 0 or -1: none */
	struct recording_manifest *ret_manifest; /* struct ingest_options */
	struct opener *opener; /* that holds the targets; NULL: one of our own, for what runs now */
	struct script_text_options text; /* of text; full_name is set by input_load where NULL */
};

struct input_result {
	enum source_kind kind;
	bool damaged; /* something was cut or damaged, what is readable was loaded; was said by log_warn */
	bool data_damaged; /* of that, what stands in perf.data itself */
	bool unfinished; /* the recorder was stopped hard (kill -9, power cut); all that it wrote was loaded; was said */
	bool rings_free; /* rings were as large as it wanted them: the recorder had CAP_IPC_LOCK; false: not, or nobody knows */
	struct ingest_result data; /* zero for text */
	struct script_text_stats text; /* zero for others */
};

/* The argument of --max-stack. 0; -EINVAL after one line by log_error. */
int input_max_stack(struct input_options *options, const char *text);

/*
 * Loads path ("-": stdin) into the profile. On failure says why by log_error and gives -errno. 0 also where a part was
 * damaged: then ret_result->damaged, and the command's exit status is EXIT_FAILED after the outputs are made.
 */
int input_load(const char *path, const struct input_options *options, struct profile *profile,
	       struct input_result *ret_result);

/* The same from a source that is open already; name is for messages. What input_say_lines says is the caller's to say. */
int input_load_source(struct source *source, const char *name, const struct input_options *options,
		      struct profile *profile, struct input_result *ret_result);

/* Says what was asked for of inlined functions and lines and is not to be had. */
void input_say_lines(const struct input_options *options, const char *name, const struct input_result *result);

#endif
