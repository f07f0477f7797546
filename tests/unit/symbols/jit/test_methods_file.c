/* symbols/jit/methods_file: a recording's file of methods. */
#include "tests/unit/jit_methods_check.h"

static int parse(const char *text, struct jit_methods *m, struct jit_methods_file *file)
{
	char *copy = strdup(text);
	int r = jit_methods_parse(copy, strlen(copy), m, file, NULL);

	free(copy);
	return r;
}

static void written_rows_are_read_back(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_writer *w;
	struct jit_methods_file file;
	struct jit_method method = {
		.start = 0x1000, .bytes = 0x100, .source = SOURCE, .name = "a\nb\\ c", .len = 6};
	char dir[] = "/tmp/test_jit_methods.XXXXXX";
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(jit_methods_writer_open(fd, getpid(), NULL, &w), 0);
	jit_methods_writer_way(w, "memory");
	jit_methods_writer_scan(w, 100);
	jit_methods_writer_found(w, &method);
	jit_methods_writer_scan(w, 200);
	jit_methods_writer_lost(w, SOURCE, 0x1000);
	method.start = 0x2000;
	jit_methods_writer_found(w, &method);
	assert_int_equal(jit_methods_writer_flush(w), 0);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(jit_methods_writer_open(fd, getpid(), NULL, &w), 0);
	method = (struct jit_method){.start = 0x3000,
				     .bytes = 8,
				     .source = SYMBOL_RUNDOWN,
				     .from_ns = 5,
				     .until_ns = 9,
				     .name = "event",
				     .len = 5};
	jit_methods_writer_add(w, &method);
	assert_int_equal(jit_methods_writer_close(w), 0);

	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.pid, getpid());
	assert_true(file.start_ticks > 0);
	assert_int_equal(file.bad_lines, 0);
	assert_false(file.cut);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_at(m, 0x1000, 199, "a\nb\\ c", 0, 200);
	assert_at(m, 0x2000, 99, NULL, 0, 100);
	assert_non_null(at(m, 0x2000, 100).method);
	/* After the second header the program may have changed. */
	assert_true(at(m, 0x2000, 100).until_ns != UINT64_MAX);
	jit_methods_free(m);

	assert_int_equal(jit_methods_remove(fd), 0);
	m = new_methods();
	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), -ENOENT);
	jit_methods_free(m);
	close(fd);
	assert_int_equal(rmdir(dir), 0);
}

static void assert_il(const struct jit_methods *m, enum symbol_source source, uint64_t addr,
		      uint64_t time, const char *path, uint32_t rid, uint32_t il)
{
	struct jit_methods_result a;
	struct jit_il_place place;

	jit_methods_find(m, source, addr, time, &a);
	assert_non_null(a.method);
	assert_true(a.method->il > 0);
	assert_int_equal(jit_il_find(jit_methods_il(m), a.method->il - 1,
				     (uint32_t)(addr - a.method->start), &place),
			 0);
	assert_string_equal(jit_il_module(jit_methods_il(m), place.module)->path, path);
	assert_int_equal(place.rid, rid);
	assert_int_equal(place.il, il);
}

static void code_has_the_il_of_its_rows(void **state)
{
	static const char bad[] = "profcpu-methods 1\nscan 10\nfound 1000 10 runtime-memory a\nil "
				  "1000 runtime-memory 0 5 0+0\nmodule 1 - - /b\n"
				  "module 0 mvid 00 /b\nmodule 0 - - /a\nil 1000 runtime-memory 0 "
				  "5 0*0\nil 1000 runtime-memory 1 5 0+0\n"
				  "il 2000 runtime-memory 0 5 0+0\nil 1000 runtime-memory 0 0 "
				  "0+0\nil 1000 nothing 0 5 0+0\n";
	const struct jit_il_module first = {.path = "/app/a b.dll",
					    .kind = JIT_IL_MVID,
					    .id = {1, 2, 0xff}},
				   second = {.path = "/app/c.dll"};
	struct il_point points[] = {{0, IL_POINTS_PROLOG}, {8, 3}, {0x20, 9}};
	struct jit_method method = {
		.bytes = 0x100, .source = SOURCE, .until_ns = UINT64_MAX, .name = "a", .len = 1};
	char dir[] = "/tmp/test_jit_methods.XXXXXX";
	struct jit_methods *m = new_methods();
	struct jit_methods_writer *w;
	struct jit_methods_file file;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	for (int program = 0; program < 2; program++) {
		assert_int_equal(jit_methods_writer_open(fd, getpid(), NULL, &w), 0);
		jit_methods_writer_scan(w, program ? 20 : 10);
		for (uint64_t i = 0; i < 2; i++) {
			uint32_t number = jit_methods_writer_module(
				w, i == (uint64_t)program ? &first : &second);

			assert_int_equal(number, i);
			method.start = 0x1000 * (i + 1) + 0x10000 * (uint64_t)program;
			jit_methods_writer_found(w, &method);
			jit_methods_writer_il(w, SOURCE, method.start, number, (uint32_t)i + 7,
					      points, 3);
		}
		assert_int_equal(jit_methods_writer_close(w), 0);
	}
	assert_int_equal(jit_methods_read(fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_il_modules(jit_methods_il(m)), 4);
	assert_int_equal(jit_il_module(jit_methods_il(m), 0)->kind, JIT_IL_MVID);
	assert_memory_equal(jit_il_module(jit_methods_il(m), 0)->id, first.id, sizeof(first.id));
	assert_int_equal(jit_methods_finish(m), 0);
	assert_il(m, SOURCE, 0x1007, 50, "/app/a b.dll", 7, 0);
	assert_il(m, SOURCE, 0x2008, 50, "/app/c.dll", 8, 3);
	assert_il(m, SOURCE, 0x11008, UINT64_MAX - 1, "/app/c.dll", 7, 3);
	assert_il(m, SOURCE, 0x120ff, UINT64_MAX - 1, "/app/a b.dll", 8, 9);
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(fd), 0);
	close(fd);
	assert_int_equal(rmdir(dir), 0);

	m = new_methods();
	assert_int_equal(parse(bad, m, &file), 0);
	assert_int_equal(file.bad_lines, 8);
	assert_int_equal(jit_methods_finish(m), 0);
	assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, 0)->il, 0);
	jit_methods_free(m);
}

/* Line of a file without a bad line. */
static struct jit_methods *finished(const char *text)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	assert_int_equal(parse(text, m, &file), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_methods_finish(m), 0);
	return m;
}

static void repeated_methods_keep_their_il(void **state)
{
	static const char text[] =
		"profcpu-methods 1\nmodule 0 - - /a\nadd 5 1000 10 rundown a\nadd 0 2000 10 "
		"rundown b\n"
		"il 1000 rundown 0 5 0+0\nadd 9 2000 10 rundown b\nil 2000 rundown 0 6 0+1\n";
	struct jit_methods *m = finished(text);

	(void)state;
	assert_il(m, SYMBOL_RUNDOWN, 0x1001, 50, "/a", 5, 0);
	assert_il(m, SYMBOL_RUNDOWN, 0x2001, 50, "/a", 6, 1);
	jit_methods_free(m);
}

/* Methods that a poll did not reach may have existed before it. */
static void a_partial_poll_gives_no_begin(void **state)
{
	char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nscan 100\nfound 1000 10 "
		      "runtime-memory one\npartial\n"
		      "scan 200\nfound 2000 10 runtime-memory two\n"
		      "scan 300\nfound 3000 10 runtime-memory three\npartial\n"
		      "scan 400\nfound 4000 10 runtime-memory four\n"
		      "scan 500\nfound 5000 10 runtime-memory five\n";
	static const uint64_t from[] = {0, 0, 0x200, 0x200, 0x400};
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	(void)state;
	assert_int_equal(jit_methods_parse(text, strlen(text), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, i)->from_ns, from[i]);
		assert_int_equal(jit_methods_get(m, SYMBOL_MEMORY, i)->sure_ns, 0x100 * (i + 1));
	}
	jit_methods_free(m);
	char early[] = "profcpu-methods 1\npartial\nscan 100\n";

	m = new_methods();
	assert_int_equal(jit_methods_parse(early, strlen(early), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 1);
	jit_methods_free(m);
}

/* Scans do not check it each time: since then another method may have its place. */
static void code_unseen_for_some_time_is_doubtful(void **state)
{
	char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nscan 100\nfound 1000 10 "
		      "runtime-memory one\nscan 200\nscan 300\n"
		      "scan 400\ndoubt 200 1000 runtime-memory\nlost 1000 runtime-memory\nfound "
		      "1000 10 runtime-memory two\n";
	char bad[] = "profcpu-methods 1\nscan 100\ndoubt 1 1000 runtime-memory\ndoubt x 1000 "
		     "runtime-memory\ndoubt 1\n";
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;
	struct jit_methods_result a;

	(void)state;
	assert_int_equal(jit_methods_parse(text, strlen(text), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_methods_finish(m), 0);
	jit_methods_find(m, SYMBOL_MEMORY, 0x1000, 0x350, &a);
	assert_memory_equal(a.method->name, "one", 3);
	assert_int_equal(a.method->doubt_ns, 0x200);
	jit_methods_find(m, SYMBOL_MEMORY, 0x1000, 0x400, &a);
	assert_memory_equal(a.method->name, "two", 3);
	assert_true(a.method->doubt_ns == UINT64_MAX);
	jit_methods_free(m);
	m = new_methods();
	assert_int_equal(jit_methods_parse(bad, strlen(bad), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 3);
	jit_methods_free(m);
}

static const char whole[] = "profcpu-methods 1\n"
			    "process 12 1 ab 10\n"
			    "way memory\n"
			    "scan 100\n"
			    "found 1000 100 runtime-memory one\n"
			    "\n"
			    "scan 200\n"
			    "found 2000 100 runtime-memory two\\x0a\n"
			    "lost 1000 runtime-memory\n"
			    "add 150 3000 10 rundown three\n"
			    "gone 180 3000 rundown\n";

static void any_prefix_of_a_file_is_usable(void **state)
{
	size_t methods = 0;

	(void)state;
	for (size_t len = 0; len < sizeof(whole); len++) {
		struct jit_methods *m = new_methods();
		struct jit_methods_file file;
		char text[sizeof(whole)];
		size_t n;

		memcpy(text, whole, len);
		text[len] = '\0';
		assert_int_equal(jit_methods_parse(text, len, m, &file, NULL), 0);
		assert_int_equal(file.bad_lines, 0);
		assert_int_equal(file.cut, !len || whole[len - 1] != '\n');
		n = jit_methods_count(m, SYMBOL_MEMORY) + jit_methods_count(m, SYMBOL_RUNDOWN);
		assert_true(n >= methods);
		methods = n;
		assert_int_equal(jit_methods_finish(m), 0);
		jit_methods_free(m);
	}
	assert_int_equal(methods, 3);
}

static void rows_of_the_last_program_are_kept(void **state)
{
	static const char text[] = "profcpu-methods 1\nprocess 12 1 ab 10\nruntime 9.0.1\nway "
				   "perfmap\nwhy gone\\x0aaway\n";
	static const char exec[] = "process 12 1 cd 20\nruntime 10.0.12\nway memory\n";
	char both[sizeof(text) + sizeof(exec)];
	struct jit_methods_file file;
	struct jit_methods *m;

	(void)state;
	for (int i = 0; i < 2; i++) {
		snprintf(both, sizeof(both), "%s%s", text, i ? exec : "");
		m = new_methods();
		assert_int_equal(jit_methods_parse(both, strlen(both), m, &file, NULL), 0);
		assert_int_equal(file.bad_lines, 0);
		assert_string_equal(file.version, i ? "10.0.12" : "9.0.1");
		assert_string_equal(file.way, i ? "memory" : "perfmap");
		assert_string_equal(file.why, i ? "" : "gone\naway");
		jit_methods_free(m);
	}
}

/* A PID continues with another program: its code is not code of the previous one. */
static void code_of_a_later_program_is_invalid_before_its_exec(void **state)
{
	static const char text[] =
		"profcpu-methods 1\nprocess 12 1 ab 50\nscan 100\nfound 1000 10 runtime-memory a\n"
		"process 12 1 ab 300\nscan 400\nfound 2000 10 runtime-memory b\n";
	struct jit_methods *m = finished(text);

	(void)state;
	assert_at(m, 0x1000, 0x20, "a", 0, 0x300);
	assert_at(m, 0x2000, 0x2ff, NULL, 0, 0x300);
	assert_at(m, 0x2000, 0x300, "b", 0x300, UINT64_MAX);
	jit_methods_free(m);
}

static void damaged_lines_are_counted(void **state)
{
	static const char *const bad[] = {
		"found 1000 100 runtime-memory",
		"found 1000 0 runtime-memory x",
		"found 1000 100000000 runtime-memory x",
		"found g 1 runtime-memory x",
		"found 1000 100 nobody x",
		"found 1000 100 runtime-memory x\\x00",
		"lost 999 runtime-memory",
		"gone 1 999 rundown",
		"add zz 1 1 rundown x",
		"scan",
		"process a b c d",
		"what",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct jit_methods *m = new_methods();
		struct jit_methods_file file;
		char text[256];

		snprintf(text, sizeof(text),
			 "profcpu-methods 1\nscan 1\n%s\nfound 1 1 runtime-memory good\n", bad[i]);
		assert_int_equal(parse(text, m, &file), 0);
		/* A name may be empty. */
		assert_int_equal(file.bad_lines, i ? 1 : 0);
		assert_int_equal(jit_methods_count(m, SYMBOL_MEMORY), i ? 1 : 2);
		jit_methods_free(m);
	}
}

static void other_formats_are_refused(void **state)
{
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	(void)state;
	assert_int_equal(parse("profcpu-symbols 1\n", m, &file), -EBADMSG);
	assert_int_equal(parse("x", m, &file), -EBADMSG);
	assert_int_equal(parse("profcpu-methods 2\n", m, &file), -ENOTSUP);
	jit_methods_free(m);
}

/* Makes a writer to a file that has this many bytes, none of which is a line. */
static struct jit_methods_writer *writer_behind(int dir_fd, uint64_t bytes, int *ret_fd)
{
	struct jit_methods_writer *w;
	char name[64];

	snprintf(name, sizeof(name), "%d.methods", getpid());
	*ret_fd = openat(dir_fd, name, O_RDWR | O_CREAT, 0600);
	assert_int_equal(ftruncate(*ret_fd, (off_t)bytes), 0);
	assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), NULL, &w), 0);
	return w;
}

enum line { FOUND, LOST, ADD, GONE, SCAN, LINES };

static void write_line(struct jit_methods_writer *w, enum line line)
{
	const struct jit_method method = {.start = 0x1000,
					  .bytes = 16,
					  .source = SOURCE,
					  .until_ns = 7,
					  .name = "int T::M()",
					  .len = 10};

	switch (line) {
	case FOUND:
		jit_methods_writer_found(w, &method);
		break;
	case LOST:
		jit_methods_writer_lost(w, SOURCE, 0x1000);
		break;
	case ADD:
		jit_methods_writer_add(w, &method);
		break;
	case GONE:
		jit_methods_writer_gone(w, SOURCE, 0x1000, 7);
		break;
	default:
		jit_methods_writer_scan(w, 7);
		break;
	}
}

/* More lines could not be read again, nor could any other line of the file. */
static void a_file_grows_no_larger_than_the_read_limit(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX", why[64 * 1024], end[8192];
	struct stat st;

	(void)state;
	memset(why, 'x', sizeof(why) - 1);
	why[sizeof(why) - 1] = '\0';
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY), fd;

	for (int line = 0; line < LINES; line++) {
		struct jit_methods_writer *w = writer_behind(
			dir_fd, JIT_METHODS_FILE_BYTES_MAX - 4096 - 4 * JIT_METHODS_WHY_BYTES, &fd);

		write_line(w, line);
		assert_int_equal(jit_methods_writer_flush(w), 0);
		for (int i = 0; i < 800; i++)
			write_line(w, line);
		assert_int_equal(jit_methods_writer_flush(w), -EFBIG);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(pread(fd, end, 1, st.st_size - 1), 1);
		assert_int_equal(end[0], '\n');
		jit_methods_writer_why(w, why);
		assert_int_equal(jit_methods_writer_close(w), -EFBIG);
		assert_int_equal(pread(fd, end, sizeof(end), st.st_size),
				 4 + JIT_METHODS_WHY_BYTES);
		assert_memory_equal(end, "why x", 5);
		assert_int_equal(end[3 + JIT_METHODS_WHY_BYTES], '\n');
		/* Further programs of the PID get a reason as long as there is room for it. */
		for (int i = 0; i < 8; i++) {
			assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), NULL, &w), 0);
			jit_methods_writer_why(w, why);
			assert_int_equal(jit_methods_writer_close(w), -EFBIG);
		}
		assert_int_equal(fstat(fd, &st), 0);
		assert_true((uint64_t)st.st_size <= JIT_METHODS_FILE_BYTES_MAX);
		close(fd);
		assert_int_equal(jit_methods_remove(dir_fd), 0);
	}
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

/* The files of all processes stay within twice the limit, and each has its reason. */
static void writers_keep_to_their_share_of_the_disk(void **state)
{
	enum { LIMIT = 1 << 20, WRITERS = 2 };
	struct share_total total = {.limit = LIMIT};
	struct share shares[WRITERS] = {{.of = &total}, {.of = &total}};
	char dir[] = "/tmp/test_jit_methods_file.XXXXXX", name[64];
	struct jit_methods_file file;
	struct jit_methods *m;
	struct stat st;

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);

	for (int i = 0; i < WRITERS; i++) {
		struct jit_methods_writer *w;

		assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), &shares[i], &w), 0);
		for (int line = 0; line < 4 * LIMIT / 32; line++)
			jit_methods_writer_scan(w, UINT64_MAX);
		assert_int_equal(jit_methods_writer_flush(w), -E2BIG);
		jit_methods_writer_why(w, "its share is full");
		assert_int_equal(jit_methods_writer_close(w), -E2BIG);
	}
	snprintf(name, sizeof(name), "%d.methods", getpid());
	assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
	assert_true(st.st_size > LIMIT && st.st_size <= 2 * LIMIT + WRITERS * 4096);
	assert_int_equal(jit_methods_new(&m), 0);
	assert_int_equal(jit_methods_read(dir_fd, getpid(), m, &file, NULL), 0);
	assert_string_equal(file.why, "its share is full");
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

static void maps_leave_half_of_the_room_to_names(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX";
	const struct jit_il_module module = {.path = "/app/A.dll"};
	struct il_point point = {0};
	struct stat st[2];

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY), fd;
	struct jit_methods_writer *w =
		writer_behind(dir_fd, JIT_METHODS_FILE_BYTES_MAX / 2 - 4096, &fd);
	uint32_t number = jit_methods_writer_module(w, &module);

	assert_int_equal(number, 0);
	for (int i = 0; i < 1000; i++)
		jit_methods_writer_il(w, SOURCE, 0x1000, number, 1, &point, 1);
	assert_int_equal(jit_methods_writer_flush(w), 0);
	assert_int_equal(fstat(fd, &st[0]), 0);
	assert_true((uint64_t)st[0].st_size <= JIT_METHODS_FILE_BYTES_MAX / 2);
	assert_int_equal(jit_methods_writer_module(w, &module), JIT_METHODS_NO_MODULE);
	write_line(w, FOUND);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(fstat(fd, &st[1]), 0);
	assert_true(st[1].st_size > st[0].st_size);
	close(fd);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

static void at_most_the_readable_number_of_modules_is_written(void **state)
{
	char dir[] = "/tmp/jit_methods.XXXXXX";
	struct jit_il_module module = {.path = "/app/A.dll"};
	struct il_point point = {0};
	struct jit_methods_file file;
	struct jit_methods_writer *w;
	struct jit_methods *m = new_methods();

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);

	assert_int_equal(jit_methods_writer_open(dir_fd, getpid(), NULL, &w), 0);
	for (uint32_t i = 0; i < JIT_IL_MODULES_MAX; i++)
		assert_int_equal(jit_methods_writer_module(w, &module), i);
	assert_int_equal(jit_methods_writer_module(w, &module), JIT_METHODS_NO_MODULE);
	jit_methods_writer_il(w, SOURCE, 0x1000, JIT_METHODS_NO_MODULE, 1, &point, 1);
	assert_int_equal(jit_methods_writer_close(w), 0);
	assert_int_equal(jit_methods_read(dir_fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.bad_lines, 0);
	assert_int_equal(jit_il_modules(jit_methods_il(m)), JIT_IL_MODULES_MAX);
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

/* Lines longer than the buffer are bad, and those across its end are read. */
static void lines_of_any_length_are_read(void **state)
{
	enum { COUNT = 100000, LONG = 5 << 20 };
	char dir[] = "/tmp/jit_methods.XXXXXX", name[32];
	struct jit_methods *m = new_methods();
	struct jit_methods_file file;

	(void)state;
	assert_non_null(mkdtemp(dir));
	int dir_fd = open(dir, O_RDONLY | O_DIRECTORY);

	snprintf(name, sizeof(name), "%d.methods", (int)getpid());
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT, 0600);
	FILE *f = fdopen(fd, "w");

	fprintf(f, "profcpu-methods 1\n");
	for (int i = 0; i < COUNT; i++) {
		fprintf(f, "add 1 %x 10 runtime-memory name of method %d\n", 16 * i, i);
		if (i == COUNT / 2)
			fprintf(f, "add 1 1 1 runtime-memory %*s\n", LONG, "x");
	}
	fprintf(f, "add 1 1 1 runtime-memory cut");
	fflush(f);
	assert_int_equal(jit_methods_read(dir_fd, getpid(), m, &file, NULL), 0);
	assert_int_equal(file.lines, COUNT + 1);
	assert_int_equal(file.bad_lines, 1);
	assert_true(file.cut);
	assert_int_equal(jit_methods_count(m, SYMBOL_MEMORY), COUNT);
	assert_string_equal(jit_methods_get(m, SYMBOL_MEMORY, COUNT - 1)->name,
			    "name of method 99999");
	/* Holes cost its maker nothing. */
	assert_int_equal(ftruncate(fd, JIT_METHODS_FILE_BYTES_MAX), 0);
	assert_int_equal(jit_methods_read(dir_fd, getpid(), m, &file, NULL), -EBADMSG);
	fclose(f);
	jit_methods_free(m);
	assert_int_equal(jit_methods_remove(dir_fd), 0);
	close(dir_fd);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_rows_are_read_back),
		cmocka_unit_test(code_has_the_il_of_its_rows),
		cmocka_unit_test(repeated_methods_keep_their_il),
		cmocka_unit_test(a_partial_poll_gives_no_begin),
		cmocka_unit_test(code_unseen_for_some_time_is_doubtful),
		cmocka_unit_test(any_prefix_of_a_file_is_usable),
		cmocka_unit_test(rows_of_the_last_program_are_kept),
		cmocka_unit_test(code_of_a_later_program_is_invalid_before_its_exec),
		cmocka_unit_test(damaged_lines_are_counted),
		cmocka_unit_test(other_formats_are_refused),
		cmocka_unit_test(a_file_grows_no_larger_than_the_read_limit),
		cmocka_unit_test(writers_keep_to_their_share_of_the_disk),
		cmocka_unit_test(maps_leave_half_of_the_room_to_names),
		cmocka_unit_test(at_most_the_readable_number_of_modules_is_written),
		cmocka_unit_test(lines_of_any_length_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
