/*
 * Opens an archive or a directory of `perf record --threads`: makes a recording of it in another
 * directory, and keeps what of a damaged one is usable.
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/remedy.h"
#include "profcpu/post/open_impl.h"
#include "recording/archive.h"
#include "recording/perfdata.h"
#include "symbols/jit/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int post_open_temp_dir(struct temp_dir **ret_dir, int *ret_fd)
{
	const char *base = getenv("TMPDIR");

	if (!base || !*base)
		base = "/tmp";
	int r = temp_dir_make(base, ret_dir, ret_fd);

	if (r == -ENOMEM)
		log_error("out of memory");
	else if (r)
		log_error("cannot make a temporary directory in %s: %s; set TMPDIR to a directory "
			  "with room",
			  base, strerror(-r));
	return r;
}

/*
 * Reports members that were left out or are missing. r: error of reading the archive. Returns 0 if
 * perf.data was unpacked, also in part, else r.
 */
static int archive_check(struct post_source *s, const char *path, const struct archive_stats *stats,
			 int r, const struct parse_error *err)
{
	const char *why = err->what ? err->what : strerror(-r);

	if (stats->refused_names || stats->refused_types || stats->refused_duplicates)
		log_warn("%s: members left out: %llu with unsafe names, %llu that are not plain "
			 "files, %llu duplicates",
			 path, (unsigned long long)stats->refused_names,
			 (unsigned long long)stats->refused_types,
			 (unsigned long long)stats->refused_duplicates);
	if (stats->unwritten) {
		log_error("cannot unpack %s: %s: %s%s", path, why, strerror(-r),
			  s->temp_dir && remedy_is_disk_full(r)
				  ? "; set TMPDIR to a directory with room"
				  : remedy_for(r));
		return r;
	}
	s->damaged = r || stats->refused_names || stats->refused_types || stats->refused_duplicates;
	if (!r)
		return 0;
	if (!faccessat(s->dir_fd, RECORDING_PERF_DATA, R_OK, 0))
		log_warn("%s: %s; continuing with the unpacked part", path, why);
	else if (stats->no_tar && s->packer)
		log_error("cannot read %s: it is compressed by %s, but contains no archive of a "
			  "recording; decompress it first (%s -d)",
			  path, s->packer, s->packer);
	else if (stats->files && r != -E2BIG)
		log_error("cannot unpack %s: %s, and the unpacked part has no %s; copy it again",
			  path, why, RECORDING_PERF_DATA);
	else
		log_error("cannot unpack %s: %s", path, why);
	return faccessat(s->dir_fd, RECORDING_PERF_DATA, R_OK, 0) ? r : 0;
}

/*
 * Whether a cut archive lost only outputs, which can be made again. profcpu puts them after all
 * other members.
 */
static bool archive_lost_outputs_only(const struct post_source *s,
				      const struct archive_stats *stats)
{
	static const char *const outputs[] = {"",
					      RECORDING_SVG,
					      RECORDING_FOLDED,
					      RECORDING_REPORT,
					      RECORDING_SCRIPT,
					      RECORDING_OFFCPU_SVG,
					      RECORDING_OFFCPU_FOLDED,
					      RECORDING_WALL_SVG,
					      RECORDING_WALL_FOLDED,
					      RECORDING_WAKEUP_SVG,
					      RECORDING_WAKEUP_FOLDED};
	bool is_output = false;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
		is_output |= !strcmp(stats->cut_member, outputs[i]);
	return is_output && stats->cut && s->has_manifest && s->manifest.finished &&
	       s->store_fd >= 0 && !faccessat(s->store_fd, RECORDING_NAMES, R_OK, 0);
}

/*
 * Text for the manifest: what the just unpacked recording lacks. NULL: nothing, or no memory. The
 * caller frees it.
 */
static char *archive_damage(const struct post_source *s, const struct archive_stats *stats,
			    int error)
{
	uint64_t refused = stats->refused_names + stats->refused_types + stats->refused_duplicates;
	const char *before = s->has_manifest && s->manifest.damage ? s->manifest.damage : "";
	char cut[256] = "", *text = NULL;

	if (error && !archive_lost_outputs_only(s, stats)) {
		int n = snprintf(cut, sizeof(cut), "its archive was %s",
				 stats->cut ? "cut off" : "damaged");

		if (*stats->cut_member)
			snprintf(cut + n, sizeof(cut) - (size_t)n,
				 ": it has %llu of the %llu bytes of %.64s",
				 (unsigned long long)stats->cut_bytes,
				 (unsigned long long)stats->cut_of_bytes, stats->cut_member);
	} else if (refused) {
		snprintf(cut, sizeof(cut), "%llu member%s of its archive %s left out",
			 (unsigned long long)refused, refused == 1 ? "" : "s",
			 refused == 1 ? "was" : "were");
	}
	if (!*cut || asprintf(&text, "%s%s%s", before, *before ? "; " : "", cut) < 0)
		return NULL;
	return text;
}

/* Writes the damage to the manifest, and frees its text. Makes a manifest if there is none. */
static void archive_keep_damage(struct post_source *s, const char *name, char *damage_take)
{
	if (!damage_take)
		return;
	if (!s->has_manifest)
		s->manifest =
			(struct recording_manifest){.format = RECORDING_FORMAT, .finished = true};
	s->has_manifest = true;
	s->lacks_manifest = false;
	free(s->manifest.damage);
	s->manifest.damage = damage_take;
	int r = recording_manifest_write(s->dir_fd, &s->manifest);

	if (r)
		log_warn("cannot note the damage in %s of %s: %s%s", RECORDING_MANIFEST, name,
			 strerror(-r), remedy_for(r));
}

/* Opens the directory in which the input becomes a recording. -1: a temporary one. */
static int archive_open_dir(struct post_source *s, const char *name, int unpack_dir_fd)
{
	if (unpack_dir_fd < 0)
		return post_open_temp_dir(&s->temp_dir, &s->dir_fd);
	s->dir_fd = fcntl(unpack_dir_fd, F_DUPFD_CLOEXEC, 0);
	if (s->dir_fd >= 0)
		return 0;
	int r = -errno;

	log_error("cannot open the directory to unpack %s into: %s%s", name, strerror(-r),
		  remedy_for(r));
	return r;
}

/* Merges into the perf.data of s->dir_fd. */
static int perf_dir_merge(struct post_source *s, const char *name, int perf_dir_fd,
			  struct perfdata_merged *merged)
{
	AUTO_CLOSE int out_fd = -1;
	struct parse_error err = {0};
	int r = file_create(s->dir_fd, RECORDING_PERF_DATA, O_RDWR, 0600, &out_fd);

	if (!r)
		r = perfdata_merge(perf_dir_fd, out_fd, merged, &err);
	if (r == -EBADMSG || r == -E2BIG)
		log_error("cannot read %s: %s", name, err.what);
	else if (r)
		log_error("cannot merge the files of %s: %s%s%s%s", name, err.what ? err.what : "",
			  err.what ? ": " : "", strerror(-r),
			  s->temp_dir && remedy_is_disk_full(r)
				  ? "; set TMPDIR to a directory with room"
				  : remedy_for(r));
	return r;
}

int post_open_perf_dir(struct post_source *s, const char *name, int unpack_dir_fd)
{
	AUTO_CLOSE int fd = TAKE_FD(s->fd);
	struct perfdata_merged merged = {0};
	char *damage = NULL;
	int r = archive_open_dir(s, name, unpack_dir_fd);

	if (!r)
		r = perf_dir_merge(s, name, fd, &merged);
	if (!r)
		r = post_open_recording(name, s);
	if (r || !merged.damaged)
		return r;
	s->damaged = true;
	log_warn("%s: %llu of its files are missing, cut or damaged, %s the first; continuing "
		 "with the readable part",
		 name, (unsigned long long)merged.damaged, merged.first_damaged);
	if (asprintf(&damage, "%llu files of its directory were missing, cut or damaged",
		     (unsigned long long)merged.damaged) > 0)
		archive_keep_damage(s, name, damage);
	return 0;
}

int post_open_archive(struct post_source *s, const char *name, int unpack_dir_fd)
{
	struct parse_error err = {0};
	struct archive_stats stats = {0};
	AUTO_CLOSE int fd = TAKE_FD(s->fd);
	int r = archive_open_dir(s, name, unpack_dir_fd);

	if (r)
		return r;
	int error = archive_read(fd, s->dir_fd, &stats, &err);

	/* Its author may have forged the users. */
	(void)unlinkat(s->dir_fd, RECORDING_SYMBOLS "/" JIT_USERS_FILE, 0);
	r = archive_check(s, name, &stats, error, &err);
	if (!r)
		r = post_open_recording(name, s);
	if (!r)
		archive_keep_damage(s, name, archive_damage(s, &stats, error));
	return r;
}
