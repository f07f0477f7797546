#include "symbols/jit/methods_file_impl.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/outbuf.h"
#include "container/proc.h"
#include "symbols/store/store_fields.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define JIT_FILE_TAIL ".methods"

#define JIT_FILE_POINT_MAX 18 /* bytes of a point of a map */
/* bytes of the file up to which maps are written: names are worth more */
#define JIT_FILE_IL_MAX (JIT_METHODS_FILE_BYTES_MAX / 2)
/* bytes of a line without its name; each byte of a name can become 4 */
#define JIT_FILE_LINE_MAX 128
/* bytes kept free for the reason why nothing more is written */
#define JIT_FILE_WHY_BYTES (4 * JIT_METHODS_WHY_BYTES + JIT_FILE_LINE_MAX)

struct jit_methods_writer {
	int fd;
	uint64_t begun; /* bytes of the file before this writer */
	uint32_t modules;
	int full;           /* if not 0: out.error because of a limit */
	struct share *disk; /* NULL also when full */
	uint64_t counted;   /* bytes in it */
	struct outbuf out;
};

void jit_file_name(pid_t pid, char *name)
{
	snprintf(name, JIT_FILE_NAME_BYTES, "%d" JIT_FILE_TAIL, (int)pid);
}

/* Writing */

/* Whether a line whose name has `bytes` bytes fits below a limit, and into the share. */
static bool jit_writer_has_room(struct jit_methods_writer *w, uint64_t bytes, uint64_t limit)
{
	bytes += w->out.written + w->out.len + JIT_FILE_LINE_MAX;
	return w->begun + bytes <= limit && !share_count(w->disk, &w->counted, bytes);
}

/* Stops writing at the limit, because a larger file is not read at all. */
static void jit_writer_check_limit(struct jit_methods_writer *w, uint64_t len)
{
	if (w->out.error ||
	    jit_writer_has_room(w, 4 * len, JIT_METHODS_FILE_BYTES_MAX - JIT_FILE_WHY_BYTES) ||
	    outbuf_flush(&w->out))
		return;
	w->out.error = w->full = w->disk ? -E2BIG : -EFBIG;
	w->disk = NULL;
}

static void jit_writer_head(struct jit_methods_writer *w, pid_t pid, bool begun)
{
	struct proc_status status = {.ns_pid = pid};
	uint64_t ticks = 0;

	if (proc_start_ticks(pid, &ticks))
		ticks = 0;
	if (proc_status(pid, &status) || !status.ns_pid)
		status.ns_pid = pid;
	jit_writer_check_limit(w, 0);
	/* The file may end within a line, so begin a new one. */
	if (begun)
		outbuf_char(&w->out, '\n');
	else
		outbuf_printf(&w->out, JIT_FILE_HEAD "%d\n", JIT_FILE_FORMAT);
	outbuf_printf(&w->out, "process %d %d %llx %llx\n", (int)pid, (int)status.ns_pid,
		      (unsigned long long)ticks, (unsigned long long)clock_monotonic_ns());
}

int jit_methods_writer_open(int dir_fd, pid_t pid, struct share *disk,
			    struct jit_methods_writer **ret_writer)
{
	AUTO_FREE struct jit_methods_writer *w = calloc(1, sizeof(*w));
	char name[JIT_FILE_NAME_BYTES];
	AUTO_CLOSE int fd = -1;
	struct stat st;

	if (!w)
		return -ENOMEM;
	jit_file_name(pid, name);
	int r = file_open_to_write(dir_fd, name, O_WRONLY | O_APPEND | O_CREAT, &fd);

	if (r)
		return r;
	if (fstat(fd, &st))
		return -errno;
	w->out = outbuf_to(fd);
	w->fd = TAKE_FD(fd);
	w->begun = (uint64_t)st.st_size;
	w->disk = disk;
	jit_writer_head(w, pid, st.st_size > 0);
	*ret_writer = TAKE_PTR(w);
	return 0;
}

/* The fields of a line up to its name, each after a blank. */
static void jit_writer_hex(struct jit_methods_writer *w, uint64_t x)
{
	outbuf_char(&w->out, ' ');
	outbuf_hex(&w->out, x);
}

static void jit_writer_source(struct jit_methods_writer *w, enum symbol_source source)
{
	outbuf_char(&w->out, ' ');
	outbuf_str(&w->out, symbol_source_name(source));
}

static void jit_writer_method(struct jit_methods_writer *w, const struct jit_method *method)
{
	jit_writer_hex(w, method->start);
	jit_writer_hex(w, method->bytes);
	jit_writer_source(w, method->source);
	outbuf_char(&w->out, ' ');
	store_text_put_name(&w->out, method->name, method->len);
}

static void jit_writer_place(struct jit_methods_writer *w, uint64_t start,
			     enum symbol_source source)
{
	jit_writer_hex(w, start);
	jit_writer_source(w, source);
	outbuf_char(&w->out, '\n');
}

void jit_methods_writer_way(struct jit_methods_writer *w, const char *way)
{
	jit_writer_check_limit(w, strlen(way));
	outbuf_printf(&w->out, "way %s\n", way);
}

void jit_methods_writer_runtime(struct jit_methods_writer *w, const char *version)
{
	jit_writer_check_limit(w, strlen(version));
	outbuf_str(&w->out, "runtime ");
	store_text_put_name(&w->out, version, strlen(version));
}

void jit_methods_writer_why(struct jit_methods_writer *w, const char *why)
{
	size_t len = strnlen(why, JIT_METHODS_WHY_BYTES - 1);

	/* Programs of the same PID before may have used the room for it. */
	if (w->full && !jit_writer_has_room(w, 4 * len, JIT_METHODS_FILE_BYTES_MAX))
		return;
	if (w->full)
		w->out.error = 0;
	else
		jit_writer_check_limit(w, len);
	outbuf_str(&w->out, "why ");
	store_text_put_name(&w->out, why, len);
	if (w->full && !outbuf_flush(&w->out))
		w->out.error = w->full;
}

void jit_methods_writer_scan(struct jit_methods_writer *w, uint64_t time_ns)
{
	jit_writer_check_limit(w, 0);
	outbuf_printf(&w->out, "scan %llx\n", (unsigned long long)time_ns);
}

void jit_methods_writer_partial(struct jit_methods_writer *w)
{
	jit_writer_check_limit(w, 0);
	outbuf_str(&w->out, "partial\n");
}

void jit_methods_writer_found(struct jit_methods_writer *w, const struct jit_method *method)
{
	jit_writer_check_limit(w, method->len);
	outbuf_str(&w->out, "found");
	jit_writer_method(w, method);
}

void jit_methods_writer_doubt(struct jit_methods_writer *w, enum symbol_source source,
			      uint64_t start, uint64_t time_ns)
{
	jit_writer_check_limit(w, 0);
	outbuf_printf(&w->out, "doubt %llx", (unsigned long long)time_ns);
	jit_writer_place(w, start, source);
}

void jit_methods_writer_lost(struct jit_methods_writer *w, enum symbol_source source,
			     uint64_t start)
{
	jit_writer_check_limit(w, 0);
	outbuf_str(&w->out, "lost");
	jit_writer_place(w, start, source);
}

void jit_methods_writer_add(struct jit_methods_writer *w, const struct jit_method *method)
{
	jit_writer_check_limit(w, method->len);
	outbuf_str(&w->out, "add");
	jit_writer_hex(w, method->from_ns);
	jit_writer_method(w, method);
	if (method->until_ns != UINT64_MAX)
		jit_methods_writer_gone(w, method->source, method->start, method->until_ns);
}

void jit_methods_writer_gone(struct jit_methods_writer *w, enum symbol_source source,
			     uint64_t start, uint64_t time_ns)
{
	jit_writer_check_limit(w, 0);
	outbuf_str(&w->out, "gone");
	jit_writer_hex(w, time_ns);
	jit_writer_place(w, start, source);
}

const char *const jit_id_kinds[] = {
	[JIT_IL_NO_ID] = "-", [JIT_IL_MVID] = "mvid", [JIT_IL_PDB] = "pdb"};

uint32_t jit_methods_writer_module(struct jit_methods_writer *w, const struct jit_il_module *module)
{
	if (w->modules >= JIT_IL_MODULES_MAX ||
	    !jit_writer_has_room(w, 4 * (uint64_t)strlen(module->path), JIT_FILE_IL_MAX))
		return JIT_METHODS_NO_MODULE;
	outbuf_printf(&w->out, "module %x %s ", (unsigned int)w->modules,
		      jit_id_kinds[module->kind]);
	for (size_t i = 0; i < JIT_IL_ID_BYTES && module->kind; i++)
		outbuf_printf(&w->out, "%02x", module->id[i]);
	outbuf_str(&w->out, module->kind ? " " : "- ");
	store_text_put_name(&w->out, module->path, strlen(module->path));
	return w->modules++;
}

void jit_methods_writer_il(struct jit_methods_writer *w, enum symbol_source source, uint64_t start,
			   uint32_t module, uint32_t rid, struct il_point *points, size_t n)
{
	size_t most = n < IL_POINTS_METHOD_MAX ? n : IL_POINTS_METHOD_MAX;

	if (module == JIT_METHODS_NO_MODULE ||
	    !jit_writer_has_room(w, most * JIT_FILE_POINT_MAX, JIT_FILE_IL_MAX))
		return;
	outbuf_str(&w->out, "il");
	jit_writer_hex(w, start);
	jit_writer_source(w, source);
	jit_writer_hex(w, module);
	jit_writer_hex(w, rid);
	outbuf_char(&w->out, ' ');
	jit_il_put(&w->out, points, n);
	outbuf_char(&w->out, '\n');
}

int jit_methods_writer_flush(struct jit_methods_writer *w)
{
	return outbuf_flush(&w->out);
}

int jit_methods_writer_close(struct jit_methods_writer *w)
{
	int r;

	if (!w)
		return 0;
	r = outbuf_close(&w->out);
	if (close(w->fd) && !r)
		r = -errno;
	free(w);
	return r;
}

bool jit_methods_has_file(int dir_fd, pid_t pid)
{
	char name[JIT_FILE_NAME_BYTES];
	struct stat st;

	jit_file_name(pid, name);
	return !fstatat(dir_fd, name, &st, 0) && S_ISREG(st.st_mode);
}

/* The PID in the name of such a file, or 0. */
static pid_t jit_file_pid(const char *name)
{
	char again[JIT_FILE_NAME_BYTES];
	long pid = strtol(name, NULL, 10);

	if (pid <= 0 || pid > INT32_MAX)
		return 0;
	jit_file_name((pid_t)pid, again);
	return strcmp(name, again) ? 0 : (pid_t)pid;
}

int jit_methods_each_file(int dir_fd, int (*fn)(void *ctx, int dir_fd, const char *name, pid_t pid),
			  void *ctx)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), r = 0;
	const struct dirent *entry;
	DIR *dir;

	if (fd < 0)
		return -errno;
	dir = fdopendir(fd);
	if (!dir) {
		r = -errno;
		close(fd);
		return r;
	}
	while (!r && (entry = readdir(dir))) {
		pid_t pid = jit_file_pid(entry->d_name);

		if (pid)
			r = fn(ctx, dir_fd, entry->d_name, pid);
	}
	closedir(dir);
	return r;
}

static int jit_file_remove(void *ctx, int dir_fd, const char *name, pid_t pid)
{
	(void)ctx;
	(void)pid;
	return unlinkat(dir_fd, name, 0) && errno != ENOENT ? -errno : 0;
}

int jit_methods_remove(int dir_fd)
{
	return jit_methods_each_file(dir_fd, jit_file_remove, NULL);
}
