#include "profcpu/post/open.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/opener.h"
#include "profcpu/post/open_impl.h"
#include "symbols/jit/methods_file.h"
#include "symbols/jit/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define POST_SOURCE_NONE                        \
	((struct post_source){.fd = -1,         \
			      .dir_fd = -1,     \
			      .store_fd = -1,   \
			      .samples_fd = -1, \
			      .offcpu_fd = -1,  \
			      .trace_fd = -1,   \
			      .trace_threads_fd = -1})

static const char *open_remedy(int error)
{
	return error == -EACCES ? "; only its owner may read a recording: run profcpu as that "
				  "user or as root"
				: "";
}

static int open_check_size(const struct post_source *s, const char *path)
{
	bool archive = !faccessat(s->dir_fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW);
	struct stat st;

	if (fstat(s->fd, &st) || st.st_size)
		return 0;
	log_error("cannot read %s/%s: it is empty%s", path, RECORDING_PERF_DATA,
		  archive ? "; " RECORDING_ARCHIVE " beside it may have its contents" : "");
	return -EBADMSG;
}

/* Reports the damage that the recorder or the unpacker noted in the manifest. */
static void open_report_damage(struct post_source *s, const char *path)
{
	if (!s->has_manifest || !s->manifest.damage || !*s->manifest.damage)
		return;
	s->damaged = true;
	log_warn("%s: incomplete: %s", path, s->manifest.damage);
}

/*
 * Whether an index file beside perf.data belongs to the same recording and is whole. 0, or -EBADMSG
 * with *err. The index has no end if the recorder was killed or could not write more.
 */
static int open_check_index(struct post_source *s, const struct idx_file_state *file,
			    struct parse_error *err)
{
	bool ended = s->has_manifest && s->manifest.finished &&
		     !(s->manifest.ended && *s->manifest.ended) &&
		     !(s->manifest.damage && *s->manifest.damage);
	uint64_t start_ns = 0;

	/* Ignore errors: the import opens fd again and reports them. */
	if (s->data || !perfdata_open(s->fd, &s->data, NULL)) {
		start_ns = perfdata_info(s->data)->start_realtime_ns;
		ended |= !s->has_manifest && !perfdata_stats(s->data)->unfinished;
	}
	if (start_ns && file->identity != start_ns)
		return parse_fail(err, -EBADMSG, "it is of another recording", 0);
	return ended && !file->ended ? parse_fail(err, -EBADMSG, "it is cut", 0) : 0;
}

static void open_note_user(struct post_source *s, uid_t uid)
{
	if (!uid || uid == geteuid() || uid == s->written.st_uid)
		return;
	s->forger = !s->forger || s->forger == uid ? uid : OPENER_NOBODY;
	s->only_dir_forged = false;
}

/* Notes the owner of a part of the input. */
static void open_note_owner(struct post_source *s, const struct stat *st)
{
	if (S_ISREG(st->st_mode) || S_ISDIR(st->st_mode) || S_ISFIFO(st->st_mode))
		open_note_user(s, st->st_uid);
}

static void open_note_file(struct post_source *s, int fd)
{
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st))
		open_note_owner(s, &st);
}

/*
 * Opens samples.idx, after the manifest. Without it, samples still have their stacks, but no
 * grades.
 */
static void open_samples(struct post_source *s, int dir_fd, const char *path)
{
	struct parse_error err = {0};
	int r = file_open_regular(dir_fd, RECORDING_SAMPLES, &s->samples_fd);

	open_note_file(s, s->samples_fd);
	if (!r)
		r = samples_idx_read(s->samples_fd, &s->samples, &err);
	if (!r && (r = open_check_index(s, &s->samples.file, &err)))
		samples_idx_free(&s->samples);
	s->has_samples = !r;
	if (r && (r != -ENOENT || s->manifest.unwound))
		log_warn("%s/%s: cannot be used: %s; the grades of stacks are not known", path,
			 RECORDING_SAMPLES, err.what ? err.what : file_open_error(r));
}

/* Opens offcpu.idx. Without it, waits still have their lengths and stacks. */
static void open_offcpu(struct post_source *s, int dir_fd, const char *path)
{
	struct parse_error err = {0};
	int r = file_open_regular(dir_fd, RECORDING_OFFCPU, &s->offcpu_fd);

	open_note_file(s, s->offcpu_fd);
	if (!r)
		r = offcpu_idx_read(s->offcpu_fd, &s->offcpu, &err);
	if (!r && (r = open_check_index(s, &s->offcpu.file, &err)))
		offcpu_idx_free(&s->offcpu);
	s->has_offcpu = !r;
	if (r && r != -ENOENT)
		log_warn("%s/%s: cannot be used: %s; wakers and the times of threads are not known",
			 path, RECORDING_OFFCPU, err.what ? err.what : file_open_error(r));
}

/* Opens the events of the runtime. */
static void open_trace(struct post_source *s, int dir_fd, const char *path)
{
	int r = file_open_regular(dir_fd, RECORDING_TRACE, &s->trace_fd);

	if (r && r != -ENOENT)
		log_warn("%s/%s: cannot be used: %s; nothing is compared", path, RECORDING_TRACE,
			 file_open_error(r));
	(void)file_open_regular(dir_fd, RECORDING_TRACE_THREADS, &s->trace_threads_fd);
	open_note_file(s, s->trace_fd);
	open_note_file(s, s->trace_threads_fd);
}

/* Comes first. Its owner can replace all files, also later, but not files that we hold open. */
static void open_note_dir(struct post_source *s, int dir_fd)
{
	struct stat st;

	open_note_file(s, dir_fd);
	s->only_dir_forged = s->forger && s->written.st_ino && !fstat(s->fd, &st) &&
			     st.st_ino == s->written.st_ino && st.st_dev == s->written.st_dev;
}

static int open_note_in_symbols(void *ctx, int symbols_fd, const char *name, pid_t pid)
{
	AUTO_CLOSE int fd = -1;

	(void)pid;
	if (!file_open_regular(symbols_fd, name, &fd))
		open_note_file(ctx, fd);
	return 0;
}

/* Opens symbols/. Without it, names come from this machine. */
static void open_symbols(struct post_source *s, int dir_fd, const char *path)
{
	static const char *const files[] = {JIT_USERS_FILE, RECORDING_NAMES, RECORDING_STACKS};
	int r = file_open_dir(dir_fd, RECORDING_SYMBOLS, &s->store_fd);

	if (r && r != -ENOENT)
		log_warn("%s/%s: cannot be used: %s; its names are not known", path,
			 RECORDING_SYMBOLS, file_open_error(r));
	if (r)
		return;
	open_note_file(s, s->store_fd);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		open_note_in_symbols(s, s->store_fd, files[i], 0);
	(void)jit_methods_each_file(s->store_fd, open_note_in_symbols, s);
}

static int open_manifest(struct post_source *s, int dir_fd, struct parse_error *err)
{
	struct stat st = {0};
	int r = recording_manifest_read(dir_fd, &s->manifest, &st, err);

	open_note_owner(s, &st);
	if (!r)
		open_note_user(s, s->manifest.forger < OPENER_NOBODY ? (uid_t)s->manifest.forger
								     : OPENER_NOBODY);
	return r;
}

int post_open_recording(const char *path, struct post_source *s)
{
	struct parse_error err = {0};
	int r = file_open_regular(s->dir_fd, RECORDING_PERF_DATA, &s->fd);

	if (r == -EACCES) {
		log_error("cannot open %s/%s: %s%s", path, RECORDING_PERF_DATA, strerror(-r),
			  open_remedy(r));
		return r;
	}
	if (r) {
		log_error("%s is not a recording: cannot open its %s: %s", path,
			  RECORDING_PERF_DATA, file_open_error(r));
		return r;
	}
	r = open_check_size(s, path);
	if (r)
		return r;
	open_note_dir(s, s->dir_fd);
	open_symbols(s, s->dir_fd, path);
	open_note_file(s, s->fd);
	r = open_manifest(s, s->dir_fd, &err);

	s->has_manifest = !r;
	s->lacks_manifest = r == -ENOENT;
	if (r == -ENOTSUP) {
		log_error(
			"%s was made by a newer profcpu; open it with that version or a later one",
			path);
		return r;
	}
	if (r && r != -ENOENT)
		log_warn("%s/%s: not readable: %s; continuing without it", path, RECORDING_MANIFEST,
			 err.what ? err.what : strerror(-r));
	open_report_damage(s, path);
	open_samples(s, s->dir_fd, path);
	open_offcpu(s, s->dir_fd, path);
	open_trace(s, s->dir_fd, path);
	return 0;
}

static int open_check_file(const struct post_source *s, const char *name)
{
	if (s->kind == INPUT_PERF_DATA && post_sniff_needs_seeking(s->fd)) {
		log_error("cannot read %s: this perf.data cannot come through a pipe; give its "
			  "path, redirect it with `<`, or write it with `perf record -o -`",
			  name);
		return -ESPIPE;
	}
	if (s->kind == INPUT_TEXT && post_sniff_is_binary(s->fd)) {
		log_error("cannot read %s: it is not perf.data, an archive or text", name);
		return -EBADMSG;
	}
	return 0;
}

/* Opens the other files of the recording, if path is its perf.data. */
static void open_beside(struct post_source *s, const char *path)
{
	static const char name[] = RECORDING_PERF_DATA;
	size_t len = strlen(path), at = len - (sizeof(name) - 1);
	AUTO_FREE char *dir = NULL;
	AUTO_CLOSE int dir_fd = -1;

	if (len < sizeof(name) - 1 || strcmp(path + at, name) != 0 || (at && path[at - 1] != '/'))
		return;
	dir = at ? strndup(path, at > 1 ? at - 1 : at) : strdup(".");
	dir_fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir_fd < 0 || open_manifest(s, dir_fd, NULL))
		return;
	s->has_manifest = true;
	open_note_dir(s, dir_fd);
	open_symbols(s, dir_fd, dir);
	open_report_damage(s, dir);
	open_samples(s, dir_fd, dir);
	open_offcpu(s, dir_fd, dir);
	open_trace(s, dir_fd, dir);
}

const char *post_open_title(const struct post_source *s)
{
	return s->has_manifest && s->manifest.target && *s->manifest.target ? s->manifest.target
									    : NULL;
}

int post_open_begin(const char *path, struct post_source *ret_source)
{
	bool is_stdin = !strcmp(path, "-");
	AUTO_CLOSE int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
				     : open(path, O_RDONLY | O_CLOEXEC);
	struct post_source s = POST_SOURCE_NONE;
	struct stat st;
	int r;

	if (fd < 0) {
		r = -errno;
		log_error("cannot open %s: %s%s", post_open_name(path), strerror(-r),
			  open_remedy(r));
		return r;
	}
	r = post_sniff_kind(fd, &s.kind, &s.packer);
	if (r) {
		log_error("cannot read %s: %s", post_open_name(path), strerror(-r));
		return r;
	}
	int *place = s.kind == INPUT_RECORDING ? &s.dir_fd : &s.fd;

	*place = TAKE_FD(fd);
	/* The pipe of stdin belongs to whoever started the programs, not to the author of the data.
	 */
	if (!fstat(*place, &st) && !(is_stdin && S_ISFIFO(st.st_mode)))
		open_note_owner(&s, &st);
	*ret_source = s;
	return 0;
}

int post_open_finish(struct post_source *s, const char *path, int own_dir_fd)
{
	const char *name = post_open_name(path);
	int r;

	if (s->kind == INPUT_RECORDING)
		r = post_open_recording(name, s);
	else if (s->kind == INPUT_ARCHIVE)
		r = post_open_archive(s, name, own_dir_fd);
	else if (s->kind == INPUT_PERF_DIR)
		r = post_open_perf_dir(s, name, own_dir_fd);
	else
		r = open_check_file(s, name);
	if (!r && s->kind == INPUT_PERF_DATA)
		open_beside(s, path);
	if (!r && own_dir_fd >= 0 && (s->kind == INPUT_RECORDING || s->kind == INPUT_PERF_DATA))
		r = post_open_copy(s, name, own_dir_fd);
	s->copied = own_dir_fd >= 0;
	if (!r)
		return 0;
	if (own_dir_fd >= 0)
		file_remove_contents(own_dir_fd);
	post_open_close(s);
	return r;
}

int post_open(const char *path, struct post_source *ret_source)
{
	struct post_source s;
	int r = post_open_begin(path, &s);

	if (!r)
		r = post_open_finish(&s, path, -1);
	if (!r)
		*ret_source = s;
	return r;
}

int post_open_dir(int dir_fd, const char *path, const struct stat *written,
		  struct post_source *ret_source)
{
	struct post_source s = POST_SOURCE_NONE;

	s.written = written ? *written : (struct stat){0};
	s.kind = INPUT_RECORDING;
	s.dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (s.dir_fd < 0) {
		int r = -errno;

		log_error("cannot open %s: %s%s", path, strerror(-r), remedy_for(r));
		return r;
	}
	int r = post_open_finish(&s, path, -1);

	if (!r)
		*ret_source = s;
	return r;
}

void post_open_close(struct post_source *s)
{
	temp_dir_remove(s->temp_dir);
	perfdata_close(s->data);
	cleanup_close(&s->fd);
	cleanup_close(&s->dir_fd);
	cleanup_close(&s->store_fd);
	if (s->has_manifest)
		recording_manifest_free(&s->manifest);
	cleanup_close(&s->samples_fd);
	samples_idx_free(&s->samples);
	cleanup_close(&s->offcpu_fd);
	offcpu_idx_free(&s->offcpu);
	cleanup_close(&s->trace_fd);
	cleanup_close(&s->trace_threads_fd);
	*s = POST_SOURCE_NONE;
}
