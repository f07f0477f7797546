#include "profcpu/post/symbols_images.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/log.h"
#include "base/remedy.h"
#include "container/opener.h"
#include "container/proc.h"
#include "profcpu/post/load.h"
#include "symbols/core/image_file.h"
#include "symbols/images.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void post_symbols_images_free(struct symbols_images *images)
{
	for (size_t i = 0; i < images->list.len; i++) {
		free(images->list.v[i].path);
		free(images->list.v[i].debug_path);
	}
	vec_free(&images->list);
	for (size_t i = 0; i < images->pdbs.len; i++)
		free(images->pdbs.v[i].name);
	vec_free(&images->pdbs);
	opener_free(images->opener);
}

int post_symbols_images_open(struct symbols_images *images, const struct symbols_image *image,
			     const char *path, int *ret_fd)
{
	int r = images->opener ? 0 : opener_new(&images->opener);

	if (r)
		return r;
	if (image->recorded || image->foreign)
		return opener_named_file(images->opener, path, IMAGE_FILE_BYTES_MAX, ret_fd);
	if (!image->pid)
		return file_open_regular(AT_FDCWD, path, ret_fd);
	(void)opener_pin(images->opener, image->pid);
	return opener_own_file(images->opener, image->pid, OPENER_NOBODY, path,
			       IMAGE_FILE_BYTES_MAX, ret_fd);
}

static int symbols_push(struct symbols_images *images, const struct symbols_image *from,
			const char *path)
{
	struct symbols_image image = *from;

	image.path = strdup(path);
	if (image.path && !vec_push(&images->list, image))
		return 0;
	free(image.path);
	free(image.debug_path);
	return -ENOMEM;
}

/* Sets the place and path of the debug file, if there is one. */
static int symbols_find(const struct debug_file_query *query, struct symbols_image *image)
{
	struct debug_file debug;
	int r = debug_file_find(query, &debug);

	if (r)
		return r == -ENOMEM ? r : 0;
	image->place = debug.place;
	image->debug_path = debug.path[0] ? strdup(debug.path) : NULL;
	r = debug.path[0] && !image->debug_path ? -ENOMEM : 0;
	debug_file_close(&debug);
	return r;
}

/* Adds an ELF file. -EBADMSG: it is none. */
static int symbols_add_elf(struct symbols_images *images, int fd, const char *path, bool elsewhere,
			   const struct opener_place *roots, size_t nroots)
{
	struct symbols_image image = {.elsewhere = elsewhere};
	struct elf_file elf;
	int r = elf_file_open(&elf, fd, NULL, 0, NULL);

	if (r)
		return r;
	image.own = debug_file_has(&elf, DEBUG_FILE_SYMBOLS)        ? SYMBOL_SYMTAB
		    : elf_file_section(&elf, ".dynsym", SHT_DYNSYM) ? SYMBOL_DYNSYM
								    : SYMBOL_NONE;
	if (elf_file_build_id(&elf, &image.build_id))
		image.build_id.len = 0;
	r = symbols_find(
		&(struct debug_file_query){
			.image = &elf, .path = path, .roots = roots, .nroots = nroots},
		&image);
	elf_file_close(&elf);
	image.stripped = image.own != SYMBOL_SYMTAB && !image.place;
	return r ? r : symbols_push(images, &image, path);
}

static int symbols_add_file(struct symbols_images *images, const char *path)
{
	AUTO_FREE char *real = realpath(path, NULL);
	struct opener_place root = {.own = true};
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = real ? file_open_regular(AT_FDCWD, real, &fd) : -errno;

	if (!r)
		r = fstat(fd, &st) ? -errno : opener_new(&root.opener);
	/* Another user may not lead us to files that he cannot read. */
	bool foreign = !r && st.st_uid && st.st_uid != geteuid();

	if (foreign)
		root = opener_named_place(root.opener);
	if (!r)
		r = symbols_add_elf(images, fd, real, false, &root, 1);
	if (!r)
		images->list.v[images->list.len - 1].foreign = foreign;
	opener_free(root.opener);
	if (r == -EBADMSG)
		log_error("%s: neither an ELF file nor a recording", path);
	else if (r)
		log_error("cannot read %s: %s%s", path, strerror(-r), remedy_for(r));
	return r;
}

/* Processes */

static int symbols_add_map(struct symbols_images *images, struct opener *opener, pid_t pid,
			   const struct proc_map *m)
{
	struct opener_place roots[2] = {{.opener = opener, .pid = pid},
					{.opener = opener, .pid = pid, .own = true}};
	AUTO_CLOSE int fd = -1;
	struct opener_process process;
	int r = opener_file(opener, pid, m->path, IMAGE_FILE_BYTES_MAX, &fd);

	if (r)
		r = opener_map_file(opener, pid, m->start, m->end, IMAGE_FILE_BYTES_MAX, &fd);
	if (r) {
		log_warn("cannot read %s of process %d: %s", m->path, (int)pid, strerror(-r));
		return 0;
	}
	bool elsewhere = opener_process(opener, pid, &process) || process.other_root;

	r = symbols_add_elf(images, fd, m->path, elsewhere, roots, 2);
	if (!r)
		images->list.v[images->list.len - 1].pid = pid;
	return r == -ENOMEM ? r : 0;
}

static int symbols_add_process(struct symbols_images *images, pid_t pid)
{
	struct opener *opener = NULL;
	AUTO_FREE char *text = NULL;
	struct intern paths = {0};
	struct proc_map m;
	int r = proc_read_maps(pid, &text);

	if (!r)
		r = opener_new(&opener);
	for (char *cursor = text; !r && proc_map_next(&cursor, &m);) {
		size_t had = paths.len;
		uint32_t path;

		if (!(m.prot & PROT_EXEC) || m.path[0] != '/' || !strncmp(m.path, "/memfd:", 7))
			continue;
		r = intern_str(&paths, m.path, &path);
		if (!r && path == had)
			r = symbols_add_map(images, opener, pid, &m);
	}
	intern_free(&paths);
	opener_free(opener);
	if (r == -ESRCH)
		log_error("no process %d; give a file of this name as ./%d", (int)pid, (int)pid);
	else if (r == -E2BIG)
		log_error("cannot inspect process %d: its list of memory maps is too long; the "
			  "limits are %zu MiB and an eighth of the memory that is left",
			  (int)pid, PROC_MAPS_MAX >> 20);
	else if (r)
		log_error("cannot inspect process %d: %s%s", (int)pid, strerror(-r),
			  r == -EACCES ? "; `profcpu doctor -p PID` prints the remedy" : "");
	return r;
}

/* Recordings */

static int symbols_add_recorded(struct symbols_images *images, struct opener *opener,
				const struct symbolizer_image *from)
{
	struct opener_place root = opener_named_place(opener);
	struct symbols_image image = {.build_id = from->build_id,
				      .recorded = true,
				      .stripped = from->stripped,
				      .placed = from->addrs[SYMBOL_BOUNDS],
				      .unknown = from->addrs[SYMBOL_NONE]};
	uint64_t named = 0;

	for (int s = 0; s < SYMBOL_SOURCES; s++)
		named += s == SYMBOL_NONE || s == SYMBOL_BOUNDS ? 0 : from->addrs[s];
	image.named = named;
	/* Skip images that were mapped but not sampled. */
	if (!named && !image.placed && !image.unknown)
		return 0;
	image.own = from->addrs[SYMBOL_SYMTAB]                              ? SYMBOL_SYMTAB
		    : from->addrs[SYMBOL_R2R]                               ? SYMBOL_R2R
		    : from->addrs[SYMBOL_DYNSYM] || from->addrs[SYMBOL_PLT] ? SYMBOL_DYNSYM
									    : SYMBOL_NONE;
	int r = from->build_id.len
			? symbols_find(&(struct debug_file_query){.build_id = from->build_id,
								  .path = from->path,
								  .roots = &root,
								  .nroots = 1},
				       &image)
			: 0;

	return r ? r : symbols_push(images, &image, from->path);
}

static int symbols_add_recording(struct symbols_images *images, const char *path, bool lines)
{
	struct symbolizer_images found = {0};
	struct post_options options = {.ret_images = &found, .improve = true, .lines = lines};
	struct post_result result = {0};
	struct profile *profile = NULL;
	struct opener *opener = NULL;
	int r = profile_new(&profile);

	if (!r)
		r = opener_new(&opener);

	if (r) {
		log_error("out of memory");
	} else {
		profile_only_groups(profile);
		r = post_load(path, &options, profile, &result);
	}
	for (size_t i = 0; i < found.list.len && !r; i++)
		r = symbols_add_recorded(images, opener, &found.list.v[i]);
	for (size_t i = 0; i < found.pdbs.len && !r; i++) {
		r = vec_push(&images->pdbs, found.pdbs.v[i]);
		found.pdbs.v[i].name = r ? found.pdbs.v[i].name : NULL;
	}
	symbolizer_images_free(&found);
	profile_free(profile);
	opener_free(opener);
	return r;
}

static bool symbols_is_pid(const char *what)
{
	return *what && strlen(what) < 10 && strspn(what, "0123456789") == strlen(what);
}

static bool symbols_is_elf(const char *path)
{
	AUTO_CLOSE int fd = -1;
	char magic[SELFMAG];

	return !file_open_regular(AT_FDCWD, path, &fd) &&
	       !file_pread_all(fd, magic, sizeof(magic), 0) && !memcmp(magic, ELFMAG, SELFMAG);
}

int post_symbols_images_add(struct symbols_images *images, const char *what, bool lines,
			    bool *ret_is_recording)
{
	*ret_is_recording = false;
	if (symbols_is_pid(what))
		return symbols_add_process(images, (pid_t)strtol(what, NULL, 10));
	if (symbols_is_elf(what))
		return symbols_add_file(images, what);
	*ret_is_recording = true;
	return symbols_add_recording(images, what, lines);
}
