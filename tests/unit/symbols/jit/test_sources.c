#include "symbols/jit/methods_file.h"
#include "symbols/jit/pids.h"
#include "symbols/jit/sources.h"

#include "base/clock.h"
#include "symbols/jit/users.h"
#include "tests/unit/allocated_bytes.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define PID 0x30000000 /* PID without a process */

struct fixture {
	char dir[32];
	int dir_fd;
	struct jit_sources *sources;
};

static int open_nothing(void *ctx, uint32_t image, int *ret_fd)
{
	(void)ctx;
	(void)image;
	(void)ret_fd;
	return -ENOENT;
}

static int open_no_path(void *ctx, const char *path, int *ret_fd)
{
	(void)path;
	return open_nothing(ctx, 0, ret_fd);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	struct jit_sources_options options = {.live = false};

	strcpy(f->dir, "/tmp/test_jit_sources.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	options.capture_dir_fd = f->dir_fd;
	assert_int_equal(jit_sources_new(&options, NULL, open_nothing, NULL, &f->sources), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	jit_sources_free(f->sources);
	assert_int_equal(jit_methods_remove(f->dir_fd), 0);
	close(f->dir_fd);
	assert_int_equal(rmdir(f->dir), 0);
	free(f);
	return 0;
}

static void capture(const struct fixture *f, int32_t pid, const char *text)
{
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "%d.methods", (int)pid);
	fd = openat(f->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void lines_of_many_processes_can_be_looked_up_first(void **state)
{
	enum { PROCESSES = 100 };
	static const char text[] =
		"profcpu-methods 1\nway memory\nmodule 0 - - /a.dll\nadd 0 1000 10 rundown m\n"
		"il 1000 rundown 0 1 0+0\n";
	const struct jit_lines_files files = {.open = open_no_path};
	struct fixture *f = *state;

	for (int32_t i = 0; i < PROCESSES; i++)
		capture(f, PID + i, text);
	for (int32_t i = 0; i < PROCESSES; i++) {
		struct line_source *lines = NULL;

		assert_int_equal(jit_sources_lines(f->sources, PID + i, 0, &files, &lines), 0);
		line_source_free(lines);
	}
	for (int32_t i = 0; i < PROCESSES; i++) {
		const char *way = jit_sources_way(f->sources, PID + i);

		assert_non_null(way);
		assert_string_equal(way, "memory");
		assert_true(jit_sources_has_capture(f->sources, PID + i));
	}
	assert_int_equal(jit_sources_stats(f->sources).captures, PROCESSES);
	assert_int_equal(jit_sources_stats(f->sources).il_maps, PROCESSES);
}

static void look_up(const struct fixture *f, int32_t pid)
{
	struct symbol_provider *names;

	assert_int_equal(jit_sources_provider(f->sources, pid, 0, &names), 0);
}

static void unreadable_sources_are_reported(void **state)
{
	static const char later[] = "profcpu-methods 2\n", no_capture[] = "what is this\n",
			  own[] = "profcpu-methods 1\nprocess 12 1 ab 50\nwhy it was not to be\n",
			  fine[] = "profcpu-methods 1\nadd 0 1000 10 rundown m\n";
	static const char *const texts[] = {later, no_capture, own, fine};
	static const char *const whys[] = {"a newer profcpu recorded its methods; use that version",
					   "its recorded methods are damaged", "it was not to be",
					   NULL};
	struct fixture *f = *state;
	struct lookup_cache lookup_cache = {0};

	for (int32_t i = 0; i < 4; i++)
		capture(f, PID + i, texts[i]);
	for (int32_t i = 0; i < 4; i++)
		look_up(f, PID + i);
	assert_int_equal(jit_sources_note(f->sources, &lookup_cache), 0);
	for (int32_t i = 0; i < 4; i++) {
		const struct lookup_cache_process *p =
			lookup_cache_find_process(&lookup_cache, PID + i);

		assert_non_null(p);
		if (whys[i])
			assert_string_equal(intern_text(&lookup_cache.texts, p->why), whys[i]);
		else
			assert_int_equal(p->why, LOOKUP_NONE);
	}
	assert_int_equal(jit_sources_stats(f->sources).captures, 2);
	lookup_cache_free(&lookup_cache);
}

/* A process counts with its names; a later lookup of lines adds nothing. */
static void damage_is_counted_when_names_are_looked_up(void **state)
{
	static const char text[] = "profcpu-methods 1\nwhat is this\nmodule 0 - - /a.dll\nadd 0 "
				   "1000 10 rundown m\nil 1000 rundown 0 1 0+0\nadd";
	const struct jit_lines_files files = {.open = open_no_path};
	struct fixture *f = *state;
	struct line_source *lines;
	struct jit_damage damage;

	capture(f, PID, text);
	assert_int_equal(jit_sources_lines(f->sources, PID, 0, &files, &lines), 0);
	line_source_free(lines);
	damage = jit_sources_stats(f->sources).damage;
	assert_int_equal(damage.n[JIT_CAPTURE_BAD_LINES], 0);
	look_up(f, PID);
	damage = jit_sources_stats(f->sources).damage;
	assert_int_equal(damage.n[JIT_CAPTURE_BAD_LINES], 1);
	assert_int_equal(damage.n[JIT_CAPTURES_CUT], 1);
	assert_int_equal(damage.n[JIT_DUMPS_REFUSED], 0);
}

struct opened {
	uint32_t images[64];
	size_t n;
};

static int note_image(void *ctx, uint32_t image, int *ret_fd)
{
	struct opened *opened = ctx;

	(void)ret_fd;
	assert_true(opened->n < sizeof(opened->images) / sizeof(*opened->images));
	opened->images[opened->n++] = image;
	return -ENOENT;
}

/* A process with many jitdumps does not displace those of others, and keeps its newest ones. */
static void each_process_has_room_for_jitdumps(void **state)
{
	enum { MANY = 5000, OTHER = MANY + 1 };
	struct jit_sources_options options = {.capture_dir_fd = -1, .live = true};
	struct opened opened = {.n = 0};
	struct jit_sources *s;

	(void)state;
	assert_int_equal(jit_sources_new(&options, NULL, note_image, &opened, &s), 0);
	for (uint32_t i = 0; i < MANY; i++)
		assert_int_equal(jit_sources_add_jitdump(s, PID, PID, i), 0);
	for (int twice = 0; twice < 2; twice++)
		assert_int_equal(jit_sources_add_jitdump(s, PID + 1, PID + 1, OTHER), 0);
	look_up(&(struct fixture){.sources = s}, PID + 1);
	assert_int_equal(opened.n, 1);
	assert_int_equal(opened.images[0], OTHER);
	assert_int_equal(jit_sources_stats(s).damage.n[JIT_DUMPS_REFUSED], 0);
	look_up(&(struct fixture){.sources = s}, PID);
	assert_int_equal(opened.images[1], MANY - 1);
	assert_int_equal(jit_sources_stats(s).damage.n[JIT_DUMPS_REFUSED], MANY - (opened.n - 1));
	jit_sources_free(s);
}

struct perfmap {
	const char
		*text;   /* contents; NULL: a directory; text that begins with / is a link target */
	off_t bytes;     /* size, made by a hole */
	const char *why; /* reason why it is not read; NULL: it is read */
	uid_t uid;       /* owner; 0: this user */
	bool linked;     /* it has a second name */
	mode_t mode;     /* 0: 0644 */
};

/* Files that processes of these PIDs left, read on the recording's machine. */
static void assert_perfmaps(const struct fixture *f, const struct perfmap *maps, int32_t n)
{
	struct jit_sources_options options = {.capture_dir_fd = f->dir_fd, .live = true};
	struct lookup_cache lookup_cache = {0};
	struct jit_sources *s;
	char path[64], second[] = "/tmp/test_jit_sources.link";
	uint64_t refused = 0;

	assert_int_equal(jit_sources_new(&options, NULL, open_nothing, NULL, &s), 0);
	for (int32_t i = 0; i < n; i++) {
		struct symbol_provider *names;

		snprintf(path, sizeof(path), "/tmp/perf-%d.map", PID + i);
		if (!maps[i].text) {
			assert_int_equal(mkdir(path, 0700), 0);
		} else if (maps[i].text[0] == '/') {
			assert_int_equal(symlink(maps[i].text, path), 0);
		} else {
			int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);

			assert_int_equal(write(fd, maps[i].text, strlen(maps[i].text)),
					 strlen(maps[i].text));
			assert_int_equal(maps[i].bytes ? ftruncate(fd, maps[i].bytes) : 0, 0);
			assert_int_equal(maps[i].uid ? fchown(fd, maps[i].uid, (gid_t)-1) : 0, 0);
			assert_int_equal(maps[i].linked ? link(path, second) : 0, 0);
			assert_int_equal(fchmod(fd, maps[i].mode ? maps[i].mode : 0644), 0);
			close(fd);
		}
		assert_int_equal(jit_sources_provider(s, PID + i, 0, &names), 0);
		assert_int_equal(!names, maps[i].why != NULL);
		assert_int_equal(remove(path), 0);
		assert_int_equal(maps[i].linked ? remove(second) : 0, 0);
		refused += maps[i].why != NULL;
	}
	assert_int_equal(jit_sources_stats(s).damage.n[JIT_PERFMAPS_REFUSED], refused);
	assert_int_equal(jit_sources_note(s, &lookup_cache), 0);
	for (int32_t i = 0; i < n; i++) {
		const struct lookup_cache_process *p =
			lookup_cache_find_process(&lookup_cache, PID + i);

		if (maps[i].why)
			assert_string_equal(intern_text(&lookup_cache.texts, p->why), maps[i].why);
		else
			assert_int_equal(p->why, LOOKUP_NONE);
	}
	jit_sources_free(s);
	lookup_cache_free(&lookup_cache);
}

static void a_refused_perf_map_has_a_reason(void **state)
{
	static const struct perfmap maps[] = {
		{"1000 10 f\n", 0, NULL, 0, false, 0},
		{NULL, 0, "its perf map is not a regular file, or has no valid line", 0, false, 0},
		{"", 0, "its perf map is not a regular file, or has no valid line", 0, false, 0},
		{"1000 10 f\n", (off_t)4 << 30, "its perf map exceeds 4 GiB; truncate or remove it",
		 0, false, 0},
		{"/dev/null", 0, "its perf map cannot be read", 0, false, 0},
	};

	assert_perfmaps(*state, maps, 5);
}

#define NOT_ITS_OWN                                                                             \
	"its perf map may belong to another user; if you trust it, give it to root with chown " \
	"and "                                                                                  \
	"run `profcpu postprocess` again"

#define NOT_READABLE                                                                           \
	"access to its perf map is denied; its own user, or everybody after its end, must be " \
	"able to read it, and profcpu needs CAP_SYS_PTRACE and CAP_DAC_OVERRIDE"

/* After the end of a process anybody can leave a file with its PID. */
static void a_perf_map_of_another_user_is_refused(void **state)
{
	static const struct perfmap maps[] = {
		{"1000 10 recorded\n", 0, NULL, 4321, false, 0},
		{"1000 10 other\n", 0, NOT_ITS_OWN, 4322, false, 0},
		{"1000 10 unknown\n", 0, NOT_ITS_OWN, 4321, false, 0},
		{"1000 10 later\n", 0, NULL, 4323, false, 0},
		{"1000 10 linked\n", 0, NOT_ITS_OWN, 0, true, 0},
		{"1000 10 ours\n", 0, NULL, 0, false, 0},
		{"1000 10 root's, private\n", 0, NOT_READABLE, 0, false, 0600},
		{"1000 10 root's, public\n", 0, NULL, 0, false, 0},
		{"1000 10 recorded, private\n", 0, NOT_READABLE, 4321, false, 0600},
	};
	static const struct jit_user users[] = {{PID, 0, 0, 4321},     {PID + 1, 0, 0, 4321},
						{PID + 3, 0, 0, 4322}, {PID + 3, 0, 0, 4323},
						{PID + 6, 0, 0, 4321}, {PID + 8, 0, 0, 4321}};
	struct fixture *f = *state;

	if (geteuid())
		skip(); /* only root can give files away */
	for (size_t i = 0; i < sizeof(users) / sizeof(*users); i += 2)
		assert_int_equal(jit_users_add(f->dir_fd, &users[i], 2), 0);
	assert_perfmaps(f, maps, 9);
	/* Without the file only root's and our own count. A part of an entry is none. */
	assert_int_equal(unlinkat(f->dir_fd, JIT_USERS_FILE, 0), 0);
	assert_perfmaps(f, maps + 1, 1);
	int fd = openat(f->dir_fd, JIT_USERS_FILE, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(write(fd, &(struct jit_user){PID, 0, 0, 4322}, 7), 7);
	close(fd);
	assert_perfmaps(f, maps + 1, 1);
	assert_int_equal(unlinkat(f->dir_fd, JIT_USERS_FILE, 0), 0);
}

/* A container's user has the same number, but paths in its root are others. */
static void a_user_has_rights_in_our_root_only_if_the_process_had_it(void **state)
{
	static const struct jit_user entries[] = {{PID, 0, 0, 4321},     {PID + 1, 0, 1, 4321},
						  {PID + 2, 0, 1, 4321}, {PID + 2, 0, 1, 0},
						  {PID + 3, 0, 1, 4321}, {PID + 3, 0, 0, 4322},
						  {PID + 4, 0, 0, 0},    {PID + 4, 1, 0, 0},
						  {PID, 1, 0, 0},        {PID, 0, 0, 4321}};
	static const int64_t uids[] = {-1, 4321, 0, -1, -1};
	struct fixture *f = *state;
	struct jit_users users = {.dir_fd = f->dir_fd};

	assert_int_equal(jit_users_add(f->dir_fd, entries, sizeof(entries) / sizeof(entries[0])),
			 0);
	for (int i = 0; i < 5; i++) {
		uint32_t uid = 1;

		assert_int_equal(jit_users_in_our_root(&users, PID + i, &uid), uids[i] >= 0);
		assert_int_equal(uid, uids[i] >= 0 ? uids[i] : 1);
		assert_int_equal(jit_users_in_other_root(&users, PID + i), i == 4);
	}
	jit_users_free(&users);
	/* Its owner may have forged a recording. */
	users = (struct jit_users){.dir_fd = f->dir_fd, .foreign = true, .owner = 4321};
	uint32_t uid = 0;

	assert_true(jit_users_in_our_root(&users, PID + 1, &uid));
	assert_int_equal(uid, 4321);
	assert_int_equal(*jit_users_uid(&users, PID + 3), 4321);
	assert_int_equal(*jit_users_uid(&users, PID + 9), 4321);
	jit_users_free(&users);
	assert_int_equal(unlinkat(f->dir_fd, JIT_USERS_FILE, 0), 0);
	/* A FIFO in its place has no reader. */
	assert_int_equal(mkfifoat(f->dir_fd, JIT_USERS_FILE, 0600), 0);
	assert_int_equal(jit_users_add(f->dir_fd, entries, sizeof(entries) / sizeof(entries[0])),
			 -ENXIO);
	assert_int_equal(unlinkat(f->dir_fd, JIT_USERS_FILE, 0), 0);
}

/* The rest is left out and counted, and other processes have names. */
static void captures_share_the_memory(void **state)
{
	enum { LINES = 100000, PROCESSES = 3 };
	const struct fixture *f = *state;
	const uint64_t memory = (uint64_t)8 << 20;
	struct jit_sources_options options = {.capture_dir_fd = f->dir_fd,
					      .perfmap_memory = memory};
	static char text[LINES * 64];
	struct jit_sources *s;
	uint64_t out = 0;
	size_t n = 0;

	n += (size_t)sprintf(text, "profcpu-methods 1\nway memory\nmodule 0 - - /a.dll\n");
	for (int i = 0; i < LINES; i++)
		n += (size_t)sprintf(text + n, "add 0 %x 10 rundown m\nil %x rundown 0 1 0+0\n",
				     16 * i, 16 * i);
	assert_int_equal(jit_sources_new(&options, NULL, open_nothing, NULL, &s), 0);
	for (int32_t i = 0; i < PROCESSES; i++)
		capture(f, PID + i, text);
	size_t before = allocated_bytes();

	for (int32_t i = 0; i < PROCESSES; i++) {
		struct symbol_provider *names;
		struct symbol symbol;

		assert_int_equal(jit_sources_provider(s, PID + i, 0, &names), 0);
		assert_int_equal(symbol_provider_find(names, 0x10, 1, &symbol), 0);
		assert_int_equal(symbol_provider_find(names, 16 * (LINES - 1), 1, &symbol),
				 -ENOENT);
		assert_true(jit_sources_stats(s).damage.n[JIT_METHODS_LEFT_OUT] > out + LINES / 2);
		out = jit_sources_stats(s).damage.n[JIT_METHODS_LEFT_OUT];
	}
	assert_true(allocated_bytes() - before < memory);
	jit_sources_free(s);
}

static void write_lines(int32_t pid, int lines)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	FILE *file = fopen(path, "wx");

	for (int n = 0; n < lines; n++)
		fprintf(file, "%06x 10 method %06d\n", n * 16, n);
	fclose(file);
}

/* Each map may take less than the one before, and a small one is read whole after large ones. */
static void perf_maps_share_the_memory(void **state)
{
	enum { LINES = 2000, BYTES = 24, LARGE = 10, SMALL = 20, MAPS = 60 };
	const struct fixture *f = *state;
	const uint64_t memory = (uint64_t)1 << 20;
	struct jit_sources_options options = {
		.capture_dir_fd = f->dir_fd, .live = true, .perfmap_memory = memory};
	struct lookup_cache lookup_cache = {0};
	struct symbol_provider *names;
	struct jit_sources *s;
	struct symbol symbol;
	uint64_t cut = 0;
	char path[64];
	int32_t i;

	for (i = 0; i < MAPS; i++)
		write_lines(PID + i, i == LARGE ? SMALL : LINES);
	assert_int_equal(jit_sources_new(&options, NULL, open_nothing, NULL, &s), 0);
	for (i = 0; i < MAPS; i++) {
		bool small = i == LARGE;

		assert_int_equal(jit_sources_provider(s, PID + i, 0, &names), 0);
		struct jit_damage damage = jit_sources_stats(s).damage;

		if (!names)
			break;
		assert_int_equal(
			symbol_provider_find(names, ((small ? SMALL : LINES) - 1) * 16, 1, &symbol),
			0);
		if (small) {
			assert_int_equal(symbol_provider_find(names, 0, 1, &symbol), 0);
			assert_int_equal(damage.n[JIT_PERFMAP_BYTES_CUT], cut);
		}
		assert_true(damage.n[JIT_PERFMAP_BYTES_CUT] >= cut);
		assert_true(damage.n[JIT_PERFMAP_BYTES_CUT] - cut < (uint64_t)LINES * BYTES);
		cut = damage.n[JIT_PERFMAP_BYTES_CUT];
	}
	for (int32_t n = 0; n < MAPS; n++) {
		snprintf(path, sizeof(path), "/tmp/perf-%d.map", PID + n);
		assert_int_equal(remove(path), 0);
	}
	/* Some were read in part, then no memory was left. */
	assert_in_range(i, LARGE + 2, MAPS - 1);
	assert_true(cut > 0);
	assert_int_equal(jit_sources_stats(s).damage.n[JIT_PERFMAPS_REFUSED], 1);
	assert_int_equal(jit_sources_note(s, &lookup_cache), 0);
	assert_non_null(strstr(intern_text(&lookup_cache.texts,
					   lookup_cache_find_process(&lookup_cache, PID + i)->why),
			       "too little memory is left for its perf map; "));
	assert_non_null(
		strstr(intern_text(&lookup_cache.texts,
				   lookup_cache_find_process(&lookup_cache, PID + i - 1)->why),
		       "only the end of its perf map was read"));
	jit_sources_free(s);
	lookup_cache_free(&lookup_cache);
}

/* Looks up a process that was pinned, had a root of its own with a perf map, and has ended. */
static void look_up_in_another_root(const char *root, int32_t lookups_before)
{
	struct jit_sources_options options = {.capture_dir_fd = -1, .live = true};
	struct symbol_provider *names = NULL;
	struct opener *opener;
	struct jit_sources *s;
	struct symbol found;
	char path[64];
	pid_t pid = fork();

	if (!pid) {
		if (!chroot(root) && !chdir("/"))
			raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	snprintf(path, sizeof(path), "%s/tmp/perf-%d.map", root, pid);
	FILE *file = fopen(path, "wx");

	assert_non_null(file);
	fputs("1000 100 hot\n", file);
	fclose(file);
	/* After the end of a process of root, everybody must be able to read it. */
	assert_int_equal(chmod(root, 0755) | chmod(path, 0644), 0);
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(opener_pin(opener, pid), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(jit_sources_new(&options, opener, open_nothing, NULL, &s), 0);
	for (int32_t i = 0; i < lookups_before; i++)
		assert_int_equal(jit_sources_provider(s, PID + i, 0, &names), 0);
	assert_int_equal(jit_sources_provider(s, pid, 0, &names), 0);
	assert_non_null(names);
	assert_int_equal(symbol_provider_find(names, 0x1010, 0, &found), 0);
	assert_string_equal(found.name, "hot");
	jit_sources_free(s);
	opener_free(opener);
	assert_int_equal(unlink(path), 0);
}

static void names_in_another_root_do_not_depend_on_earlier_lookups(void **state)
{
	const struct fixture *f = *state;
	char tmp[48];

	if (geteuid())
		skip(); /* only root can change its root */
	snprintf(tmp, sizeof(tmp), "%s/tmp", f->dir);
	assert_int_equal(mkdir(tmp, 0755), 0);
	look_up_in_another_root(f->dir, 0);
	look_up_in_another_root(f->dir, JIT_PIDS_UNLISTED);
	assert_int_equal(rmdir(tmp), 0);
}

/* Holes cost no disk space. They must not reduce what others may read. */
static void sparse_perf_maps_leave_room_for_others(void **state)
{
	static const struct perfmap maps[] = {
		{"1000 10 f\n", ((off_t)4 << 30) - 1, NULL, 0, false, 0},
		{"1000 10 f\n", ((off_t)4 << 30) - 1, NULL, 0, false, 0},
		{"1000 10 f\n", ((off_t)4 << 30) - 1, NULL, 0, false, 0},
		{"1000 10 f\n", ((off_t)4 << 30) - 1, NULL, 0, false, 0},
		{"1000 10 f\n", 0, NULL, 0, false, 0},
	};

	assert_perfmaps(*state, maps, 5);
}

/* A jitdump of one record: code without a name at the end, or the mark of a closed file. */
struct dump {
	uint32_t magic, version, header_bytes, machine, pad, pid;
	uint64_t header_time_ns, flags;
	uint32_t type, bytes;
	uint64_t time_ns;
	uint32_t load_pid, load_tid;
	uint64_t load_vaddr, load_addr, load_bytes, load_index;
	char load_name[2], load_code[6];
	uint32_t next_type, next_bytes; /* of a second record, which is not there yet */
};

static int open_dump(void *ctx, uint32_t image, int *ret_fd)
{
	(void)image;
	*ret_fd = dup(*(const int *)ctx);
	return *ret_fd < 0 ? -errno : 0;
}

/* Writes a jitdump without a name. */
static int make_dump(pid_t pid, bool closed)
{
	struct dump dump = {
		.magic = 0x4A695444,
		.version = 1,
		.header_bytes = 40,
		.pid = (uint32_t)pid,
		.bytes = 16 + 40 + 8,
		.time_ns = 5,
		.load_pid = (uint32_t)pid,
		.load_addr = 0x1000,
		.load_bytes = 6,
		.load_name = "f",
		.next_type = closed ? 3 : 0,
		.next_bytes = closed ? 16 : 1000,
	};
	char path[] = "/tmp/test_jit_sources_dump.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(write(fd, &dump, sizeof(dump)), sizeof(dump));
	/* The time of the second record */
	assert_int_equal(ftruncate(fd, sizeof(dump) + 8), 0);
	return fd;
}

/* One jitdump that several processes map counts for each, because it is read for each. */
static void jitdumps_share_a_limit_of_bytes(void **state)
{
	enum { PROCESSES = 10, READ = 2, SMALL = PROCESSES - 1 };
	struct jit_sources_options options = {.capture_dir_fd = -1, .live = true};
	struct lookup_cache lookup_cache = {0};
	int fd = make_dump(PID, true);
	struct jit_sources *s;

	(void)state;
	assert_int_equal(jit_sources_new(&options, NULL, open_dump, &fd, &s), 0);
	for (int32_t i = 0; i < PROCESSES; i++) {
		/* A quarter of a hole counts. */
		assert_int_equal(ftruncate(fd, i == SMALL ? 1 << 20 : (off_t)15 << 30), 0);
		assert_int_equal(jit_sources_add_jitdump(s, PID + i, PID, 0), 0);
		look_up(&(struct fixture){.sources = s}, PID + i);
		assert_int_equal(jit_sources_stats(s).jitdumps,
				 i < READ ? i + 1 : READ + (i == SMALL));
	}
	assert_int_equal(jit_sources_stats(s).damage.n[JIT_DUMPS_REFUSED], PROCESSES - READ - 1);
	assert_int_equal(jit_sources_note(s, &lookup_cache), 0);
	for (int32_t i = 0; i < PROCESSES; i++) {
		uint32_t why = lookup_cache_find_process(&lookup_cache, PID + i)->why;

		if (i < READ || i == SMALL)
			assert_int_equal(why, LOOKUP_NONE);
		else
			assert_string_equal(intern_text(&lookup_cache.texts, why),
					    "the perf maps and jitdumps of all processes exceed "
					    "16 GiB, or those of one process its share; truncate "
					    "or remove the largest");
	}
	jit_sources_free(s);
	lookup_cache_free(&lookup_cache);
	close(fd);
}

/* Reads the names of a process that has a jitdump. The caller frees the sources. */
static struct jit_sources *read_dump(const struct fixture *f, pid_t pid, bool closed)
{
	struct jit_sources_options options = {.capture_dir_fd = f->dir_fd, .live = true};
	int fd = make_dump(pid, closed);
	struct jit_sources *s;

	assert_int_equal(jit_sources_new(&options, NULL, open_dump, &fd, &s), 0);
	assert_int_equal(jit_sources_add_jitdump(s, pid, (uint32_t)pid, 0), 0);
	assert_false(jit_sources_was_open(s, pid));
	look_up(&(struct fixture){.sources = s}, pid);
	assert_int_equal(jit_sources_stats(s).jitdumps, 1);
	close(fd);
	return s;
}

static void assert_noted(const struct jit_sources *s, pid_t pid, bool open, bool early)
{
	struct lookup_cache lookup_cache = {0};

	assert_int_equal(jit_sources_was_open(s, pid), open);
	assert_int_equal(jit_sources_note(s, &lookup_cache), 0);
	const struct lookup_cache_process *p = lookup_cache_find_process(&lookup_cache, pid);

	assert_int_equal(p->open, open);
	assert_int_equal(p->jitdump_early, early);
	lookup_cache_free(&lookup_cache);
}

/* A runtime writes names in pieces, and the last ones when it ends. */
static void names_of_a_running_process_may_grow(void **state)
{
	struct fixture *f = *state;
	pid_t pid = fork();
	siginfo_t ended;

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	struct jit_sources *open = read_dump(f, pid, false), *closed = read_dump(f, pid, true);

	assert_noted(open, pid, true, false);
	assert_false(jit_sources_has_closed(open, pid));
	assert_noted(closed, pid, false, false);
	jit_sources_free(closed);
	kill(pid, SIGKILL);
	/* It has ended, although it still has its PID. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOWAIT), 0);
	assert_true(jit_sources_has_closed(open, pid));
	jit_sources_free(open);
	closed = read_dump(f, pid, false);
	assert_noted(closed, pid, false, true);
	assert_false(jit_sources_has_closed(closed, pid));
	jit_sources_free(closed);
	waitpid(pid, NULL, 0);
}

/* Files and rights of the process that has the PID now would be those of another one. */
static void another_process_with_the_pid_is_found_by_its_start_and_user(void **state)
{
	struct fixture *f = *state;
	struct jit_sources_options options = {.capture_dir_fd = f->dir_fd, .live = true},
				   untimed = options;
	uint64_t before_ns = clock_monotonic_ns() - NS_PER_S;
	struct jit_user user = {.uid = geteuid()};
	struct opener *opener;
	struct jit_sources *s;
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	untimed.untimed = true;
	assert_int_equal(opener_new(&opener), 0);
	assert_int_equal(jit_sources_new(&options, opener, open_nothing, NULL, &s), 0);
	assert_false(jit_sources_pid_is_reused(s, pid, 0));
	assert_false(jit_sources_pid_is_reused(s, pid, clock_monotonic_ns()));
	assert_true(jit_sources_pid_is_reused(s, pid, before_ns));
	jit_sources_free(s);
	assert_int_equal(jit_sources_new(&untimed, opener, open_nothing, NULL, &s), 0);
	assert_false(jit_sources_pid_is_reused(s, pid, before_ns));
	jit_sources_free(s);
	for (int other = 0; other < 2; other++) {
		user.pid = (uint32_t)pid & JIT_USERS_PID_MAX;
		user.uid += (uint32_t)other;
		assert_int_equal(jit_users_add(f->dir_fd, &user, 1), 0);
		assert_int_equal(jit_sources_new(&options, opener, open_nothing, NULL, &s), 0);
		assert_int_equal(jit_sources_pid_is_reused(s, pid, 0), other);
		jit_sources_free(s);
	}
	assert_int_equal(unlinkat(f->dir_fd, JIT_USERS_FILE, 0), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	opener_free(opener);
}

/* The capture took the names of the whole recording. */
static void captured_names_are_not_open(void **state)
{
	struct fixture *f = *state;

	capture(f, getpid(), "profcpu-methods 1\nway memory\nadd 0 2000 10 memory m\n");
	struct jit_sources *s = read_dump(f, getpid(), false);

	assert_noted(s, getpid(), false, true);
	jit_sources_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(lines_of_many_processes_can_be_looked_up_first,
						setup, teardown),
		cmocka_unit_test_setup_teardown(unreadable_sources_are_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_perf_map_has_a_reason, setup, teardown),
		cmocka_unit_test_setup_teardown(sparse_perf_maps_leave_room_for_others, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_perf_map_of_another_user_is_refused, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			a_user_has_rights_in_our_root_only_if_the_process_had_it, setup, teardown),
		cmocka_unit_test_setup_teardown(captures_share_the_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(perf_maps_share_the_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(
			names_in_another_root_do_not_depend_on_earlier_lookups, setup, teardown),
		cmocka_unit_test_setup_teardown(names_of_a_running_process_may_grow, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			another_process_with_the_pid_is_found_by_its_start_and_user, setup,
			teardown),
		cmocka_unit_test_setup_teardown(captured_names_are_not_open, setup, teardown),
		cmocka_unit_test_setup_teardown(damage_is_counted_when_names_are_looked_up, setup,
						teardown),
		cmocka_unit_test(each_process_has_room_for_jitdumps),
		cmocka_unit_test(jitdumps_share_a_limit_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
