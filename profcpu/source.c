#include "profcpu/source.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/replace.h"
#include "profcpu/mend.h"
#include "recording/archive.h"
#include "recording/perfdata.h"
#include "recording/perfdata_format.h"
#include "symbols/jit_methods_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SOURCE_TEXT_BYTES 16384
#define SOURCE_NONE ((struct source){.fd = -1, .dir_fd = -1, .store_fd = -1, .samples_fd = -1, .offcpu_fd = -1})
#define SOURCE_MAGIC_BYTES 512 /* a plain tar has its magic at 257 */

/* Up to len first bytes of a pipe, by tee: they stay in it. */
static ssize_t source_peek_pipe(int fd, void *buf, size_t len)
{
	int pipes[2];

	if (pipe2(pipes, O_CLOEXEC))
		return -errno;
	ssize_t n = tee(fd, pipes[1], len, 0);

	if (n > 0)
		n = read(pipes[0], buf, (size_t)n);
	if (n < 0)
		n = errno == EINVAL ? 0 : -errno; /* a terminal: what is typed can only be text */
	close(pipes[0]);
	close(pipes[1]);
	return n;
}

/* Up to len first bytes of fd without consuming them. */
static ssize_t source_peek(int fd, void *buf, size_t len)
{
	ssize_t n = pread(fd, buf, len, 0);

	if (n >= 0 || errno != ESPIPE)
		return n < 0 ? -errno : n;
	n = recv(fd, buf, len, MSG_PEEK);
	if (n >= 0 || errno != ENOTSOCK)
		return n < 0 ? -errno : n;
	return source_peek_pipe(fd, buf, len);
}

/* The program that packs so; NULL: it is not compressed. */
static const char *source_packer(const unsigned char *m, size_t n)
{
	static const struct {
		const char *packer, *magic;
		size_t len;
	} packers[] = {
		{"gzip", "\x1f\x8b", 2},
		{"zstd", "\x28\xb5\x2f\xfd", 4},
		{"xz", "\xfd"
		       "7zXZ",
		 6},
	};

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++)
		if (n >= packers[i].len && !memcmp(m, packers[i].magic, packers[i].len))
			return packers[i].packer;
	return n >= 10 && !memcmp(m, "BZh", 3) && !memcmp(m + 4, "1AY&SY", 6) ? "bzip2" : NULL;
}

static bool source_is_tar(const unsigned char *m, size_t n)
{
	return n >= 262 && !memcmp(m + 257, "ustar", 5);
}

/* What fd holds, by its first bytes, without consuming them (works on files and pipes): kind and packer. 0 or -errno. */
static int source_sniff(int fd, struct source *s)
{
	unsigned char m[SOURCE_MAGIC_BYTES];
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (S_ISDIR(st.st_mode)) {
		s->kind = SOURCE_RECORDING;
		return 0;
	}
	ssize_t n = source_peek(fd, m, sizeof(m));

	if (n < 0)
		return (int)n;
	/* Byte-swapped files too: the reader has the clear words for them. */
	if (n >= 8 && (!memcmp(m, "PERFILE2", 8) || !memcmp(m, "2ELIFREP", 8))) {
		s->kind = SOURCE_PERF_DATA;
		return 0;
	}
	s->packer = source_packer(m, (size_t)n);
	s->kind = s->packer || source_is_tar(m, (size_t)n) ? SOURCE_ARCHIVE : SOURCE_TEXT;
	return 0;
}

/* perf script's frame lines: white space, an address, a space. */
static bool source_is_frame_line(const char *line, size_t len)
{
	size_t at = 0, digits;

	while (at < len && (line[at] == ' ' || line[at] == '\t'))
		at++;
	for (digits = at; digits < len && isxdigit((unsigned char)line[digits]);)
		digits++;
	return at && digits > at && digits < len && line[digits] == ' ';
}

/* Ends in white space and a count. */
static bool source_is_folded_line(const char *line, size_t len)
{
	size_t at = len;

	while (at && (isdigit((unsigned char)line[at - 1]) || line[at - 1] == '.'))
		at--;
	return at < len && at && isspace((unsigned char)line[at - 1]);
}

bool source_text_is_folded(int fd)
{
	char text[SOURCE_TEXT_BYTES];
	ssize_t n = source_peek(fd, text, sizeof(text));
	const char *at = text, *end = text + (n > 0 ? n : 0);

	while (at < end) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		if (!nl)
			break;
		if (source_is_frame_line(at, (size_t)(nl - at)))
			return false;
		if (*at != '#' && source_is_folded_line(at, (size_t)(nl - at)))
			return true;
		at = nl + 1;
	}
	/* A first line that is longer than this: perf script has no semicolons. */
	return at == end || memchr(text, ';', (size_t)(end - text));
}

/* Nothing that is read here as text has a NUL; said before all of a large or endless file was read. */
static bool source_is_binary(int fd)
{
	char text[SOURCE_TEXT_BYTES];
	ssize_t n = source_peek(fd, text, sizeof(text));

	return n > 0 && memchr(text, 0, (size_t)n);
}

static const char *source_mend(int error)
{
	return error == -EACCES ? "; recordings are for their owner alone: run profcpu as that user or as root" : "";
}

static int source_check_size(const struct source *s, const char *path)
{
	bool archive = !faccessat(s->dir_fd, RECORDING_ARCHIVE, F_OK, AT_SYMLINK_NOFOLLOW);
	struct stat st;

	if (fstat(s->fd, &st) || st.st_size)
		return 0;
	log_error("cannot read %s/%s: it is empty%s", path, RECORDING_PERF_DATA,
		  archive ? "; what it held may be in " RECORDING_ARCHIVE " beside it" : "");
	return -EBADMSG;
}

/* What its recorder, or who unpacked it, said is missing. */
static void source_heed_damage(struct source *s, const char *path)
{
	if (!s->has_manifest || !s->manifest.damage || !*s->manifest.damage)
		return;
	s->damaged = true;
	log_warn("%s is not whole: %s", path, s->manifest.damage);
}

/*
 * Whether what stands beside perf.data is of the same recording, and whole: 0, or -EBADMSG with *err. Who was killed, or could write no more, has
 * written no end.
 */
static int source_judge_index(const struct source *s, const struct idx_file_state *file, struct parse_error *err)
{
	struct perfdata *data = NULL;
	bool ended = s->has_manifest && s->manifest.finished && !(s->manifest.ended && *s->manifest.ended) &&
		     !(s->manifest.damage && *s->manifest.damage);
	uint64_t start_ns = 0;

	/* What is wrong with it whoever reads it will say. */
	if (!perfdata_open(s->fd, &data, NULL)) {
		start_ns = perfdata_info(data)->start_realtime_ns;
		ended |= !s->has_manifest && !perfdata_stats(data)->unfinished;
		perfdata_close(data);
	}
	if (start_ns && file->identity != start_ns)
		return parse_fail(err, -EBADMSG, "it is of another recording", 0);
	return ended && !file->ended ? parse_fail(err, -EBADMSG, "it is cut", 0) : 0;
}

/* What the recorder said of the stacks. Without it samples have them all the same. */
static void source_read_samples(struct source *s, int dir_fd, const char *path)
{
	struct parse_error err = {0};
	int r = file_open_regular(dir_fd, RECORDING_SAMPLES, &s->samples_fd);

	if (!r)
		r = samples_idx_read(s->samples_fd, &s->samples, &err);
	if (!r && (r = source_judge_index(s, &s->samples.file, &err)))
		samples_idx_free(&s->samples);
	s->has_samples = !r;
	if (r && r != -ENOENT)
		log_warn("%s/%s cannot be used (%s): how far stacks can be trusted is not known", path, RECORDING_SAMPLES,
			 err.what ? err.what : strerror(-r));
}

/* What the recorder said of waits. Without it they have their lengths and stacks all the same. */
static void source_read_offcpu(struct source *s, int dir_fd, const char *path)
{
	struct parse_error err = {0};
	int r = file_open_regular(dir_fd, RECORDING_OFFCPU, &s->offcpu_fd);

	if (!r)
		r = offcpu_idx_read(s->offcpu_fd, &s->offcpu, &err);
	if (!r && (r = source_judge_index(s, &s->offcpu.file, &err)))
		offcpu_idx_free(&s->offcpu);
	s->has_offcpu = !r;
	if (r && r != -ENOENT)
		log_warn("%s/%s cannot be used (%s): who ended waits is not known, nor what threads did in all", path, RECORDING_OFFCPU,
			 err.what ? err.what : strerror(-r));
}

/* Opens what a recording's directory holds. */
static int source_open_recording(const char *path, struct source *s)
{
	struct parse_error err = {0};

	int r = file_open_regular(s->dir_fd, RECORDING_PERF_DATA, &s->fd);

	if (r == -EACCES) {
		log_error("cannot open %s/%s: %s%s", path, RECORDING_PERF_DATA, strerror(-r), source_mend(r));
		return r;
	}
	if (r) {
		log_error("%s is no recording: cannot open %s in it: %s", path, RECORDING_PERF_DATA,
			  r == -EINVAL ? "it is not a regular file" : strerror(-r));
		return r;
	}
	r = source_check_size(s, path);
	if (r)
		return r;
	s->store_fd = openat(s->dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = recording_manifest_read(s->dir_fd, &s->manifest, &err);

	s->has_manifest = !r;
	s->lacks_manifest = r == -ENOENT;
	if (r == -ENOTSUP) {
		log_error("%s was made by a newer profcpu; use that or a later version to open it", path);
		return r;
	}
	if (r && r != -ENOENT)
		log_warn("%s/%s is not readable (%s); going on without it", path, RECORDING_MANIFEST,
			 err.what ? err.what : strerror(-r));
	source_heed_damage(s, path);
	source_read_samples(s, s->dir_fd, path);
	source_read_offcpu(s, s->dir_fd, path);
	return 0;
}

static int source_make_temp_dir(char **ret_dir)
{
	const char *base = getenv("TMPDIR");
	AUTO_FREE char *dir = file_join(base && *base ? base : "/tmp", "profcpu-XXXXXX");

	if (!dir) {
		log_error("out of memory");
		return -ENOMEM;
	}
	if (!mkdtemp(dir)) {
		int r = -errno;

		log_error("cannot make a temporary directory in %s: %s; set TMPDIR to a place with room",
			  base && *base ? base : "/tmp", strerror(-r));
		return r;
	}
	*ret_dir = TAKE_PTR(dir);
	return 0;
}

/* What was left out of an archive, or is not there, and whether there is something to go on with. 0 or r. */
static int source_judge_archive(struct source *s, const char *path, const struct archive_stats *stats, int r,
				const struct parse_error *err)
{
	const char *why = err->what ? err->what : strerror(-r);

	if (stats->refused_names || stats->refused_types || stats->refused_duplicates)
		log_warn("%s: left out %llu members with unsafe names, %llu that are no plain files, %llu that came twice", path,
			 (unsigned long long)stats->refused_names, (unsigned long long)stats->refused_types,
			 (unsigned long long)stats->refused_duplicates);
	if (stats->unwritten) {
		log_error("cannot unpack %s: %s: %s%s", path, why, strerror(-r),
			  s->temp_dir && mend_is_room(r) ? "; set TMPDIR to a directory with room" : mend_of(r));
		return r;
	}
	s->damaged = r || stats->refused_names || stats->refused_types || stats->refused_duplicates;
	if (!r)
		return 0;
	if (!faccessat(s->dir_fd, RECORDING_PERF_DATA, R_OK, 0))
		log_warn("%s: %s; going on with what could be unpacked", path, why);
	else if (stats->no_tar && s->packer)
		log_error("cannot read %s: it is compressed by %s, and no archive of a recording is in it; unpack it first (%s -d)", path,
			  s->packer, s->packer);
	else if (stats->files)
		log_error("cannot unpack %s: %s, and %s is not in what could be unpacked; copy it again", path, why,
			  RECORDING_PERF_DATA);
	else
		log_error("cannot unpack %s: %s", path, why);
	return faccessat(s->dir_fd, RECORDING_PERF_DATA, R_OK, 0) ? r : 0;
}

/* Whether a cut archive lost nothing but outputs, which are made again: they are behind all else in ours. */
static bool source_lost_outputs_only(const struct source *s, const struct archive_stats *stats)
{
	static const char *const outputs[] = {"", RECORDING_SVG, RECORDING_FOLDED, RECORDING_REPORT, RECORDING_SCRIPT,
					     RECORDING_OFFCPU_SVG, RECORDING_OFFCPU_FOLDED, RECORDING_WALL_SVG, RECORDING_WALL_FOLDED,
					     RECORDING_WAKEUP_SVG, RECORDING_WAKEUP_FOLDED};
	bool is_output = false;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		is_output |= !strcmp(stats->cut_member, outputs[i]);
	return is_output && stats->cut && s->has_manifest && s->manifest.finished &&
	       s->store_fd >= 0 && !faccessat(s->store_fd, RECORDING_NAMES, R_OK, 0);
}

/* What is missing of a recording that was just unpacked, in words that stay with it; NULL: nothing, or memory is out. */
static char *source_damage(const struct source *s, const struct archive_stats *stats, int error)
{
	uint64_t refused = stats->refused_names + stats->refused_types + stats->refused_duplicates;
	const char *before = s->has_manifest && s->manifest.damage ? s->manifest.damage : "";
	char cut[256] = "", *text = NULL;

	if (error && !source_lost_outputs_only(s, stats)) {
		int n = snprintf(cut, sizeof(cut), "the archive it came from was %s", stats->cut ? "cut off" : "damaged");

		if (*stats->cut_member)
			snprintf(cut + n, sizeof(cut) - (size_t)n, ", and of %.64s %llu of %llu bytes were left", stats->cut_member,
				 (unsigned long long)stats->cut_bytes, (unsigned long long)stats->cut_of_bytes);
	} else if (refused) {
		snprintf(cut, sizeof(cut), "of the archive it came from %llu members were left out", (unsigned long long)refused);
	}
	if (!*cut || asprintf(&text, "%s%s%s", before, *before ? "; " : "", cut) < 0)
		return NULL;
	return text;
}

/* Keeps what is missing in the manifest, which is made where there is none. */
static void source_keep_damage(struct source *s, const char *name, const struct archive_stats *stats, int error)
{
	char *damage = source_damage(s, stats, error);

	if (!damage)
		return;
	if (!s->has_manifest)
		s->manifest = (struct recording_manifest){.format = RECORDING_FORMAT, .finished = true};
	s->has_manifest = true;
	s->lacks_manifest = false;
	free(s->manifest.damage);
	s->manifest.damage = damage;
	int r = recording_manifest_write(s->dir_fd, &s->manifest);

	if (r)
		log_warn("cannot write into %s of %s what is missing: %s%s", RECORDING_MANIFEST, name, strerror(-r), mend_of(r));
}

/* Unpacks the archive and goes on as with a directory. */
static int source_open_archive(struct source *s, const char *name, int unpack_dir_fd)
{
	struct parse_error err = {0};
	struct archive_stats stats = {0};
	AUTO_CLOSE int fd = TAKE_FD(s->fd);
	int r = unpack_dir_fd < 0 ? source_make_temp_dir(&s->temp_dir) : 0;

	if (r)
		return r;
	s->dir_fd = unpack_dir_fd < 0 ? open(s->temp_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
				      : fcntl(unpack_dir_fd, F_DUPFD_CLOEXEC, 0);
	if (s->dir_fd < 0) {
		r = -errno;
		log_error("cannot open the directory to unpack %s into: %s%s", name, strerror(-r), mend_of(r));
		return r;
	}
	int error = archive_read(fd, s->dir_fd, &stats, &err);

	r = source_judge_archive(s, name, &stats, error, &err);
	if (!r)
		r = source_open_recording(name, s);
	if (!r)
		source_keep_damage(s, name, &stats, error);
	return r;
}

/* perf's two forms of perf.data begin alike; that of a file is read here and there, which no pipe allows. */
static bool source_needs_seeking(int fd)
{
	struct perfdata_pipe_header header;

	return lseek(fd, 0, SEEK_CUR) < 0 && source_peek(fd, &header, sizeof(header)) == sizeof(header) &&
	       header.size != sizeof(header);
}

static int source_check_file(const struct source *s, const char *name)
{
	if (s->kind == SOURCE_PERF_DATA && source_needs_seeking(s->fd)) {
		log_error("cannot read %s: a perf.data in the form of a file cannot come through a pipe; give its name, or `<` it, "
			  "or have it written for a pipe by `perf record -o -`",
			  name);
		return -ESPIPE;
	}
	if (s->kind == SOURCE_TEXT && source_is_binary(s->fd)) {
		log_error("cannot read %s: it is neither perf.data, nor an archive, nor text", name);
		return -EBADMSG;
	}
	return 0;
}

/* The perf.data of a recording that is named by itself: the names and the rest of what is known of it lie beside it. */
static void source_look_beside(struct source *s, const char *path)
{
	static const char name[] = RECORDING_PERF_DATA;
	size_t len = strlen(path), at = len - (sizeof(name) - 1);
	AUTO_FREE char *dir = NULL;
	AUTO_CLOSE int dir_fd = -1;

	if (len < sizeof(name) - 1 || strcmp(path + at, name) != 0 || (at && path[at - 1] != '/'))
		return;
	dir = at ? strndup(path, at > 1 ? at - 1 : at) : strdup(".");
	dir_fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir_fd < 0 || recording_manifest_read(dir_fd, &s->manifest, NULL))
		return;
	s->has_manifest = true;
	s->store_fd = openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	source_heed_damage(s, dir);
	source_read_samples(s, dir_fd, dir);
	source_read_offcpu(s, dir_fd, dir);
}

/* One file into a directory, where it appears whole or not at all. */
static int source_copy(int fd, int dir_fd, const char *name)
{
	struct replace file;
	int r = replace_open(&file, dir_fd, name, REPLACE_PRIVATE);

	if (!r)
		r = file_copy(fd, file.fd);
	if (!r)
		r = replace_commit(&file);
	replace_abort(&file);
	return r;
}

/* One file of a recording's symbols/ into another's; ctx is that one's descriptor. */
static int source_copy_symbols(void *ctx, int from_fd, const char *name, pid_t pid)
{
	const int *to_fd = ctx;
	AUTO_CLOSE int fd = -1;
	int r = file_open_regular(from_fd, name, &fd);

	(void)pid;
	return r ? r : source_copy(fd, *to_fd, name);
}

/* What names the samples of a recording, as far as it is there, into symbols/ of another; *ret_fd is that, or -1. */
static int source_copy_names(const struct source *s, int dir_fd, int *ret_fd)
{
	AUTO_CLOSE int symbols_fd = -1;

	if (s->store_fd < 0)
		return 0;
	if (mkdirat(dir_fd, RECORDING_SYMBOLS, 0700))
		return -errno;
	symbols_fd = openat(dir_fd, RECORDING_SYMBOLS, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int r = symbols_fd < 0 ? -errno : source_copy_symbols(&symbols_fd, s->store_fd, RECORDING_NAMES, 0);

	if (!r || r == -ENOENT)
		r = source_copy_symbols(&symbols_fd, s->store_fd, RECORDING_STACKS, 0);
	if (!r || r == -ENOENT)
		r = jit_methods_each_file(s->store_fd, source_copy_symbols, &symbols_fd);
	if (!r)
		*ret_fd = TAKE_FD(symbols_fd);
	return r;
}

/* Makes what was opened a recording in a directory of its own, and goes on with that. */
static int source_take_in(struct source *s, const char *name, int own_dir_fd)
{
	AUTO_CLOSE int fd = -1, symbols_fd = -1, dir_fd = fcntl(own_dir_fd, F_DUPFD_CLOEXEC, 0);
	int r = dir_fd < 0 ? -errno : source_copy(s->fd, dir_fd, RECORDING_PERF_DATA);

	if (!r)
		r = source_copy_names(s, dir_fd, &symbols_fd);
	if (!r && s->samples_fd >= 0)
		r = source_copy(s->samples_fd, dir_fd, RECORDING_SAMPLES);
	if (!r && s->offcpu_fd >= 0)
		r = source_copy(s->offcpu_fd, dir_fd, RECORDING_OFFCPU);
	if (!r && s->has_manifest)
		r = recording_manifest_write(dir_fd, &s->manifest);
	if (!r)
		r = file_open_regular(dir_fd, RECORDING_PERF_DATA, &fd);
	if (r) {
		log_error("cannot make a copy of %s: %s%s", name, strerror(-r), mend_of(r));
		return r;
	}
	s->lacks_manifest = !s->has_manifest;
	cleanup_close(&s->fd);
	cleanup_close(&s->dir_fd);
	cleanup_close(&s->store_fd);
	s->fd = TAKE_FD(fd);
	s->dir_fd = TAKE_FD(dir_fd);
	s->store_fd = TAKE_FD(symbols_fd);
	return 0;
}

const char *source_title(const struct source *s)
{
	return s->has_manifest && s->manifest.target && *s->manifest.target ? s->manifest.target : NULL;
}

int source_begin(const char *path, struct source *ret_source)
{
	bool is_stdin = !strcmp(path, "-");
	AUTO_CLOSE int fd = is_stdin ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
	struct source s = SOURCE_NONE;
	int r;

	if (fd < 0) {
		r = -errno;
		log_error("cannot open %s: %s%s", source_name(path), strerror(-r), source_mend(r));
		return r;
	}
	r = source_sniff(fd, &s);
	if (r) {
		log_error("cannot read %s: %s", source_name(path), strerror(-r));
		return r;
	}
	*(s.kind == SOURCE_RECORDING ? &s.dir_fd : &s.fd) = TAKE_FD(fd);
	*ret_source = s;
	return 0;
}

int source_go_on(struct source *s, const char *path, int own_dir_fd)
{
	const char *name = source_name(path);
	int r;

	if (s->kind == SOURCE_RECORDING)
		r = source_open_recording(name, s);
	else if (s->kind == SOURCE_ARCHIVE)
		r = source_open_archive(s, name, own_dir_fd);
	else
		r = source_check_file(s, name);
	if (!r && s->kind == SOURCE_PERF_DATA)
		source_look_beside(s, path);
	if (!r && own_dir_fd >= 0 && (s->kind == SOURCE_RECORDING || s->kind == SOURCE_PERF_DATA))
		r = source_take_in(s, name, own_dir_fd);
	if (!r)
		return 0;
	if (own_dir_fd >= 0)
		file_remove_below(own_dir_fd);
	source_close(s);
	return r;
}

int source_open(const char *path, struct source *ret_source)
{
	struct source s;
	int r = source_begin(path, &s);

	if (!r)
		r = source_go_on(&s, path, -1);
	if (!r)
		*ret_source = s;
	return r;
}

int source_open_dir(int dir_fd, const char *path, struct source *ret_source)
{
	struct source s = SOURCE_NONE;

	s.kind = SOURCE_RECORDING;
	s.dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	if (s.dir_fd < 0) {
		int r = -errno;

		log_error("cannot open %s: %s%s", path, strerror(-r), mend_of(r));
		return r;
	}
	int r = source_go_on(&s, path, -1);

	if (!r)
		*ret_source = s;
	return r;
}

void source_close(struct source *s)
{
	if (s->temp_dir) {
		if (s->dir_fd >= 0)
			file_remove_below(s->dir_fd);
		rmdir(s->temp_dir);
	}
	free(s->temp_dir);
	cleanup_close(&s->fd);
	cleanup_close(&s->dir_fd);
	cleanup_close(&s->store_fd);
	if (s->has_manifest)
		recording_manifest_free(&s->manifest);
	cleanup_close(&s->samples_fd);
	samples_idx_free(&s->samples);
	cleanup_close(&s->offcpu_fd);
	offcpu_idx_free(&s->offcpu);
	*s = SOURCE_NONE;
}
