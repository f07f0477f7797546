#include "profcpu/jit/capture.h"

#include "base/log.h"
#include "profcpu/jit/ended.h"
#include "symbols/jit/users.h"
#include "tests/unit/fake_events.h"
#include "tests/unit/fake_runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#define HUNG 4
#define ROOM 4096

static char dir[] = "/tmp/jit_capture.XXXXXX";
static int dir_fd = -1;
static char logged[4096];

/* Shared with the fake runtimes. */
static struct shared {
	char sessions[64]; /* each session: 'l' live, 'm' a list of methods, 'a' of assemblies */
	atomic_uint nsessions;
	uint32_t assembly_flags;
	bool is_old; /* the runtime does not know which events a list needs */
} * shared;

/* Makes this process look like .NET. Its children inherit the mappings. */
static int look_like_dotnet(void)
{
	int fd = memfd_create("doublemapper", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, 4096) ||
	    mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return -1;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	return shared == MAP_FAILED ? -1 : 0;
}

static int set_up(void **state)
{
	if (!mkdtemp(dir) || look_like_dotnet())
		return -1;
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fake_set_up(state);
}

static int tear_down(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s", dir);
	close(dir_fd);
	return system(command) || fake_tear_down(state);
}

/* In the fake runtime. */
static int streams[128], live_fd = -1;

static char session_kind(const struct fake_request *request)
{
	uint64_t keywords;

	if (request->command == IPC_COLLECT_TRACING3)
		return request->payload[8] ? 'm' : 'l';
	memcpy(&keywords, request->payload + 12, sizeof(keywords));
	return !keywords ? 'l' : keywords & 0x10 ? 'm' : 'a';
}

static void begin_live(int fd)
{
	struct outbuf s = outbuf_to(-1);

	live_fd = fd;
	nt_head(&s);
	nt_trace(&s, NS_PER_S);
	nt_kind(&s, 1, FAKE_RUNTIME, 143, "", 1);
	fake_write(fd, s.data, s.len);
	outbuf_close(&s);
}

static void stop_session(int fd, char kind)
{
	struct outbuf s = outbuf_to(-1);
	char id[] = "sessionX";

	id[7] = kind;
	if (kind == 'l')
		nt_end(&s);
	else
		fake_put_list(&s, kind == 'm', shared->assembly_flags);
	fake_write(streams[(unsigned)kind], s.data, s.len);
	close(streams[(unsigned)kind]);
	outbuf_close(&s);
	fake_reply(fd, 0xff00, id, 8);
}

static void events(int fd, const struct fake_request *request)
{
	char id[] = "sessionX";

	if (request->command == IPC_STOP_TRACING) {
		stop_session(fd, (char)request->payload[7]);
		return;
	}
	if (request->command != (shared->is_old ? IPC_COLLECT_TRACING3 : IPC_COLLECT_TRACING5)) {
		fake_hresult(fd, IPC_E_UNKNOWN_COMMAND);
		return;
	}
	id[7] = session_kind(request);
	shared->sessions[atomic_fetch_add(&shared->nsessions, 1) % sizeof(shared->sessions)] =
		id[7];
	streams[(unsigned)id[7]] = dup(fd);
	fake_reply(fd, 0xff00, id, 8);
	if (id[7] == 'l')
		begin_live(streams['l']);
}

/* Reports one more method to the session that is live. */
static void compile(void)
{
	struct outbuf method = fake_method(1, 0x9000, METHOD_JITTED, 0x06000002, "void  ()"),
		      block = nt_events(true), s = outbuf_to(-1);
	struct nettrace_blob e = {.metadata_id = 1,
				  .sequence = 1,
				  .capture_thread = 1,
				  .ticks = 60,
				  .payload = (const unsigned char *)method.data,
				  .payload_len = (uint32_t)method.len};

	nt_compressed(&block, &e, 0, 0);
	nt_block(&s, "EventBlock", &block);
	fake_write(live_fd, s.data, s.len);
}

static void compile_and_exit(int signal)
{
	(void)signal;
	compile();
	_exit(0);
}

static void events_until_a_signal(int fd, const struct fake_request *request)
{
	signal(SIGUSR1, compile_and_exit);
	events(fd, request);
}

#define NEXT_PROGRAM "the-next-program-of-this-pid"

static void compile_and_execute(int signal)
{
	(void)signal;
	compile();
	close(live_fd);
	execl("/proc/self/exe", "test_capture", NEXT_PROGRAM, dir, (char *)NULL);
	_exit(1);
}

static void events_until_exec(int fd, const struct fake_request *request)
{
	signal(SIGUSR1, compile_and_execute);
	events(fd, request);
}

/* TSan holds back signals in children of a process that has threads. */
static void skip_without_signals(void)
{
#if defined(__SANITIZE_THREAD__)
	skip();
#endif
}

static const char *sessions(void)
{
	return shared->sessions;
}

static void forget_sessions(void)
{
	memset(shared->sessions, 0, sizeof(shared->sessions));
	atomic_store(&shared->nsessions, 0);
}

static void wait_for_bytes(pid_t pid, off_t bytes)
{
	char name[64];
	struct stat st = {0};

	snprintf(name, sizeof(name), "symbols/%d.methods", pid);
	/* A thousand processes take a while under a sanitizer on a busy machine. */
	for (int i = 0; i < 3000 && (fstatat(dir_fd, name, &st, 0) || st.st_size < bytes); i++)
		usleep(20000);
	assert_true(st.st_size >= bytes);
}

static void wait_for_methods(pid_t pid)
{
	wait_for_bytes(pid, 100);
}

static void log_to_text(enum log_level level, const char *text, unsigned long more)
{
	size_t len = strlen(logged);

	if ((level == LOG_WARN || level == LOG_NOTE) && !more)
		snprintf(logged + len, sizeof(logged) - len, "%s\n", text);
}

static void report(const struct jit_capture *c, bool quiet)
{
	logged[0] = 0;
	log_set_sink(log_to_text);
	jit_capture_report(c, quiet);
	log_summarize();
	log_set_sink(NULL);
}

/* Otherwise each process would have its own time limit, and the user would wait for all of them. */
static void targets_that_hang_share_one_time_limit(void **state)
{
	struct fake_runtime fakes[HUNG + 1];
	struct jit_capture *c = NULL;
	size_t late = 0;

	(void)state;
	assert_int_equal(jit_capture_new(JIT_NAMES_RUNDOWN, dir_fd, &c), 0);
	for (int i = 0; i <= HUNG; i++) {
		fakes[i] = fake_start(events);
		jit_capture_add_process(c, fakes[i].pid);
	}
	assert_int_equal(jit_capture_start(c, false), 0);
	for (int i = 0; i <= HUNG; i++)
		wait_for_methods(fakes[i].pid);
	for (int i = 0; i < HUNG; i++)
		kill(fakes[i].pid, SIGSTOP);
	uint64_t begin = clock_monotonic_ns();

	jit_capture_end(c);
	/* The thread ended by itself. It would be abandoned 2 s after its limit. */
	assert_true(clock_monotonic_ns() - begin < (JIT_CAPTURE_END_S + 2) * NS_PER_S);
	report(c, true);
	for (const char *p = logged; (p = strstr(p, "in time")); p++)
		late++;
	/* Replies that arrive in time count, even the last one. */
	assert_int_equal(late, LOG_WARN_SHOWN < HUNG ? LOG_WARN_SHOWN : HUNG);
	jit_capture_free(c);
	for (int i = 0; i <= HUNG; i++)
		fake_stop(&fakes[i]);
}

/* Returns how long the end takes if no process answers. */
static uint64_t end_of_silent_ports(void)
{
	struct fake_runtime fakes[HUNG];
	struct jit_capture *c = NULL;

	assert_int_equal(jit_capture_new(JIT_NAMES_AUTO, dir_fd, &c), 0);
	for (int i = 0; i < HUNG; i++) {
		fakes[i] = fake_start(events);
		kill(fakes[i].pid, SIGSTOP);
		jit_capture_add_process(c, fakes[i].pid);
	}
	assert_int_equal(jit_capture_start(c, false), 0);
	wait_for_bytes(fakes[0].pid, 0);
	uint64_t begin = clock_monotonic_ns();

	jit_capture_end(c);
	uint64_t took = clock_monotonic_ns() - begin;

	report(c, true);
	assert_non_null(strstr(logged, "no known .NET runtime; rundown: "));
	jit_capture_free(c);
	for (int i = 0; i < HUNG; i++)
		fake_stop(&fakes[i]);
	return took;
}

/* Anyone can start processes that look like .NET and do not answer. */
static void silent_ports_delay_the_end_by_little(void **state)
{
	(void)state;
	/* A visit and a last round take a second each, and longer while the machine is busy. */
	for (int tries = 0; end_of_silent_ports() >= 4 * NS_PER_S; tries++)
		assert_true(tries < 3);
}

/* A capture of one process; methods becomes the name of its file in dir. */
static struct jit_capture *capture_of(enum jit_names names, pid_t pid, char methods[64])
{
	struct jit_capture *c = NULL;

	assert_int_equal(jit_capture_new(names, dir_fd, &c), 0);
	jit_capture_add_process(c, pid);
	snprintf(methods, 64, "symbols/%d.methods", pid);
	return c;
}

static void limit_files(rlim_t bytes)
{
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
	limit.rlim_cur = bytes;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void unwritable_names_are_reported(void **state)
{
	struct fake_runtime fake = fake_start(events);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_RUNDOWN, fake.pid, name);

	(void)state;
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT, 0600);

	assert_int_equal(ftruncate(fd, ROOM), 0);
	close(fd);
	limit_files(ROOM);
	assert_int_equal(jit_capture_start(c, false), 0);
	jit_capture_end(c);
	limit_files(RLIM_INFINITY);
	report(c, true);
	assert_non_null(
		strstr(logged, "they cannot all be written to the recording: File too large"));
	jit_capture_free(c);
	fake_stop(&fake);
}

/* The first program fails when it executes the second one, which fails on its own. */
static void each_program_of_a_pid_reports_its_failed_writes(void **state)
{
	static const char why[] = "they cannot all be written to the recording: File too large";

	skip_without_signals();
	struct fake_runtime fake = fake_start(events_until_exec);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_RUNDOWN, fake.pid, name);
	struct stat st;

	(void)state;
	assert_int_equal(jit_capture_start(c, false), 0);
	wait_for_methods(fake.pid);
	assert_int_equal(fstatat(dir_fd, name, &st, 0), 0);
	limit_files((rlim_t)st.st_size);
	kill(fake.pid, SIGUSR1);
	for (int i = 0; i < 500 && faccessat(dir_fd, NEXT_PROGRAM, F_OK, 0); i++)
		usleep(20000);
	jit_capture_add_process(c, fake.pid);
	jit_capture_end(c);
	limit_files(RLIM_INFINITY);
	report(c, true);
	char *first = strstr(logged, why), *second = first ? strstr(first + 1, why) : NULL;

	if (!first || !second)
		fail_msg("not one reason for each program:\n%s", logged);
	assert_false(jit_capture_is_written(c));
	jit_capture_free(c);
	fake_stop(&fake);
}

/* A second way would contact the process, and hide the failure of the first. */
static void names_that_cannot_be_written_are_taken_in_no_other_way(void **state)
{
	struct fake_runtime fake = fake_start(events);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_AUTO, fake.pid, name);

	(void)state;
	forget_sessions();
	assert_int_equal(mkdirat(dir_fd, name, 0700), 0);
	assert_int_equal(jit_capture_start(c, false), 0);
	jit_capture_end(c);
	report(c, true);
	assert_non_null(
		strstr(logged, "auto: names cannot be written to the recording: Is a directory\n"));
	assert_false(jit_capture_is_written(c));
	assert_string_equal(sessions(), "");
	jit_capture_free(c);
	fake_stop(&fake);
}

/* The capture runs all the same, because it notes the users of processes. */
static void no_runtime_is_contacted_without_a_way(void **state)
{
	struct fake_runtime fake = fake_start(events);
	char name[64];
	struct jit_capture *c = capture_of(JIT_NAMES_NONE, fake.pid, name);

	(void)state;
	forget_sessions();
	assert_int_equal(jit_capture_start(c, false), 0);
	jit_capture_end(c);
	report(c, false);
	assert_string_equal(logged, "");
	assert_string_equal(sessions(), "");
	assert_int_equal(faccessat(dir_fd, name, F_OK, 0), -1);
	jit_capture_free(c);
	fake_stop(&fake);
}

static void methods_before_the_end_of_a_process_are_kept(void **state)
{
	skip_without_signals();
	struct fake_runtime fake = fake_start(events_until_a_signal);
	char name[64], text[512] = "";
	struct jit_capture *c = capture_of(JIT_NAMES_RUNDOWN, fake.pid, name);

	(void)state;
	assert_int_equal(jit_capture_start(c, false), 0);
	wait_for_methods(fake.pid);
	/* The process becomes a zombie between two steps. */
	kill(fake.pid, SIGUSR1);
	siginfo_t info;

	assert_int_equal(waitid(P_PID, (id_t)fake.pid, &info, WEXITED | WNOWAIT), 0);
	jit_capture_end(c);
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);

	assert_true(read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_non_null(strstr(text, " 1000 40 rundown "));
	assert_non_null(strstr(text, " 9000 40 rundown "));
	report(c, false);
	assert_non_null(strstr(logged, "come from the runtime's events"));
	assert_null(strstr(logged, "ended before"));
	jit_capture_free(c);
	fake_stop(&fake);
}

/* A probe of a fake runtime that is old enough for rundown. Its memory shows no runtime. */
static void probe(struct jit_processes *all, struct jit_process *p, pid_t pid)
{
	uint64_t now = clock_monotonic_ns();

	*p = (struct jit_process){
		.pid = pid, .since_ns = now - 2 * JIT_PROCESS_READY_NS, .late = true};
	forget_sessions();
	jit_process_probe(all, p, now, now + JIT_PROCESS_READY_NS, true);
	assert_true(p->is_dotnet);
}

/* A busy machine is no reason to send a command to a runtime, which can crash it. */
static void a_late_process_is_retried_without_a_command(void **state)
{
	struct fake_runtime fake = fake_start(events);
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct jit_process p = {.pid = fake.pid};
	uint64_t now = clock_monotonic_ns();

	(void)state;
	forget_sessions();
	/* Old enough for another way to be used. */
	p.since_ns = p.next_ns = now - 2 * JIT_PROCESS_READY_NS;
	jit_process_probe(&all, &p, now, now, false);
	assert_true(p.is_dotnet && p.late);
	assert_false(p.done);
	assert_null(p.way);
	assert_true(p.next_ns > now);
	assert_string_equal(p.why, "memory: there was no time");
	assert_string_equal(sessions(), "");
	/* With enough time, its memory shows no runtime, and the next way is used. */
	now = clock_monotonic_ns();
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_ptr_equal(p.way, &jit_way_rundown);
	assert_false(p.late);
	assert_string_equal(sessions(), "alm");
	jit_process_release(&p, clock_monotonic_ns() + JIT_PROCESS_READY_NS);
	/* Nothing is retried at the end. */
	forget_sessions();
	now = clock_monotonic_ns();
	jit_process_probe(&all, &p, now, now, true);
	assert_true(p.done);
	assert_false(p.late);
	assert_string_equal(sessions(), "");
	fake_stop(&fake);
}

/* Maps an empty file with this name. Fakes started from now on have it too. */
static void *map_file(const char *name)
{
	int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *map;

	assert_int_equal(ftruncate(fd, 4096), 0);
	map = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	return map;
}

static void assert_refused(const struct jit_process *p, const char *why)
{
	assert_null(p->way);
	assert_non_null(strstr(p->why, why));
	assert_non_null(strstr(p->why, "--jit-names=rundown lists them"));
	assert_null(strchr(sessions(), 'm'));
	assert_null(strchr(sessions(), 'l'));
}

/* A list of the methods can crash a runtime that unloads assemblies. */
static void methods_are_listed_unasked_only_without_collectible_assemblies(void **state)
{
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct fake_runtime fake = fake_start(events);
	struct jit_process p;

	(void)state;
	shared->assembly_flags = FAKE_COLLECTIBLE;
	probe(&all, &p, fake.pid);
	assert_refused(&p, "it can unload 1 of its assemblies");
	assert_string_equal(sessions(), "a");
	/* It is the user's choice. */
	all.names = JIT_NAMES_RUNDOWN;
	probe(&all, &p, fake.pid);
	assert_ptr_equal(p.way, &jit_way_rundown);
	assert_string_equal(sessions(), "lm");
	jit_process_release(&p, clock_monotonic_ns() + JIT_PROCESS_READY_NS);
	all.names = JIT_NAMES_AUTO;
	shared->assembly_flags = 0;
	/* An old runtime cannot list its assemblies alone, and no file shows them. */
	shared->is_old = true;
	probe(&all, &p, fake.pid);
	assert_refused(&p, "it may unload assemblies");
	fake_stop(&fake);
	/* Now files show them. */
	void *core = map_file("System.Private.CoreLib.dll");

	fake = fake_start(events);
	probe(&all, &p, fake.pid);
	assert_ptr_equal(p.way, &jit_way_rundown);
	assert_string_equal(sessions(), "lm");
	jit_process_release(&p, clock_monotonic_ns() + JIT_PROCESS_READY_NS);
	fake_stop(&fake);
	shared->is_old = false;
	void *loader = map_file("System.Runtime.Loader.dll");

	fake = fake_start(events);
	probe(&all, &p, fake.pid);
	assert_refused(&p, "it has loaded System.Runtime.Loader.dll");
	assert_string_equal(sessions(), "");
	fake_stop(&fake);
	munmap(loader, 4096);
	munmap(core, 4096);
}

/* A lack of descriptors does not mean that the process ended. It may be over next time. */
static void unreadable_parts_are_counted(void **state)
{
	struct jit_processes all = {.names = JIT_NAMES_AUTO, .dir_fd = dir_fd, .opener = o};
	struct jit_process p = {.pid = getpid()},
			   followed = {.pid = getpid(), .way = &jit_way_memory};
	struct rlimit before, none;
	uint64_t now = clock_monotonic_ns();
	int lowest = dup(dir_fd);

	(void)state;
	close(lowest);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)lowest;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, false);
	assert_false(p.done);
	assert_int_equal(all.unseen, 0);
	jit_process_probe(&all, &p, now, now + JIT_PROCESS_READY_NS, true);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_true(p.done);
	assert_int_equal(all.unseen, 1);
	assert_int_equal(all.unseen_error, -EMFILE);
	/* When the time is over, some processes miss their last poll. */
	jit_process_note_missed_step(&all, &followed);
	assert_true(followed.broken);
	assert_non_null(strstr(followed.why, "the last read did not finish in time"));
	p = (struct jit_process){.pid = getpid()};
	jit_process_note_missed_step(&all, &p);
	assert_int_equal(all.unseen, 2);
	assert_int_equal(all.unseen_error, -ETIMEDOUT);
}

static void users_over_the_limit_are_counted(void **state)
{
	struct jit_capture *c;
	char name[64];
	int ready[2];

	(void)state;
	if (geteuid())
		skip(); /* only root can start processes of other users */
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (!pid) {
		if (setuid(4321) || write(ready[1], "", 1) != 1)
			_exit(1);
		alarm(60); /* also after a failed test */
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], name, 1), 1);
	close(ready[0]);
	close(ready[1]);
	for (size_t room = 0; room < 2; room++) {
		c = capture_of(JIT_NAMES_NONE, pid, name);
		int fd = openat(dir_fd, "symbols/" JIT_USERS_FILE, O_WRONLY | O_CREAT | O_CLOEXEC,
				0600);
		off_t len = (off_t)((JIT_USERS_MAX - room) * sizeof(struct jit_user));

		assert_int_equal(ftruncate(fd, len), 0);
		close(fd);
		assert_int_equal(jit_capture_start(c, false), 0);
		jit_capture_end(c);
		assert_int_equal(jit_capture_users_left_out(c), !room);
		jit_capture_free(c);
	}
	assert_int_equal(unlinkat(dir_fd, "symbols/" JIT_USERS_FILE, 0), 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Waits for SIGUSR1, which is blocked, and becomes root. */
static void become_root(void)
{
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigwait(&set, &got);
	if (setresuid(0, 0, 0))
		_exit(1);
}

static bool user_is_noted(pid_t pid)
{
	int symbols = openat(dir_fd, "symbols", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct jit_users users = {.dir_fd = symbols};
	bool is_noted = jit_users_uid(&users, pid) != NULL;

	jit_users_free(&users);
	close(symbols);
	return is_noted;
}

/* Else a perf map that belongs to the earlier user is the new process's. */
static void a_new_process_does_not_keep_the_user_of_an_earlier_one(void **state)
{
	enum { ENDED, OF_ROOT, NOT_TAKEN, SAME, CASES };

	(void)state;
	if (geteuid())
		skip(); /* only root can start processes of other users */
	for (int kind = 0; kind < CASES; kind++) {
		struct jit_capture *c;
		struct stat st = {.st_uid = 1};
		char name[64];
		pid_t pid = fork();

		if (!pid) {
			sigset_t set;

			sigemptyset(&set);
			sigaddset(&set, SIGUSR1);
			sigprocmask(SIG_BLOCK, &set, NULL);
			alarm(60); /* also after a failed test */
			if (setresuid(4321, 4321, 0))
				_exit(1);
			become_root();
			for (;;)
				pause();
		}
		c = capture_of(JIT_NAMES_NONE, pid, name);
		for (int i = 0; kind == NOT_TAKEN && i < 1 << 17; i++)
			jit_capture_add_process(c, pid);
		assert_int_equal(jit_capture_start(c, false), 0);
		for (int i = 0; i < 3000 && !user_is_noted(pid); i++)
			usleep(10000);
		assert_true(user_is_noted(pid));
		if (kind == ENDED) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		} else if (kind == OF_ROOT) {
			kill(pid, SIGUSR1);
			snprintf(name, sizeof(name), "/proc/%d", pid);
			while (st.st_uid)
				assert_int_equal(stat(name, &st), 0);
		}
		jit_capture_add_process(c, pid);
		jit_capture_end(c);
		assert_int_equal(user_is_noted(pid), kind == SAME);
		jit_capture_free(c);
		if (kind != ENDED) {
			kill(pid, SIGKILL);
			waitpid(pid, NULL, 0);
		}
		(void)unlinkat(dir_fd, "symbols/" JIT_USERS_FILE, 0);
	}
}

/* Serves as the program that compile_and_execute starts. Makes a file when it is ready. */
/* A long recording of a build sees thousands of .NET processes. */
static void ended_processes_are_kept_in_bounded_memory(void **state)
{
	enum { MORE = 20, N = JIT_ENDED_MAX + MORE };
	static pid_t pids[N];
	struct jit_capture *c = NULL;

	(void)state;
	assert_int_equal(jit_capture_new(JIT_NAMES_MEMORY, dir_fd, &c), 0);
	for (int i = 0; i < N; i++) {
		pids[i] = fork();
		if (!pids[i]) {
			/* A failure must not leave them behind. */
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				pause();
		}
		assert_true(pids[i] > 0);
		jit_capture_add_process(c, pids[i]);
	}
	assert_int_equal(jit_capture_start(c, false), 0);
	/* The file tells why a process has no names. */
	for (int i = 0; i < N; i++)
		wait_for_bytes(pids[i], 1);
	for (int i = 0; i < N; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
	}
	jit_capture_end(c);
	report(c, true);
	assert_non_null(strstr(logged, "it has no known .NET runtime\n"));
	if (!strstr(logged, "\n20 more .NET processes lack names"))
		fail_msg("not counted:\n%s", logged);
	jit_capture_free(c);
}

static void run_next_program(const char *in_dir)
{
	char path[108];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int listener = fake_listen(path, sizeof(path), getpid());

	if (look_like_dotnet() || chdir(in_dir) ||
	    open(NEXT_PROGRAM, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) < 0)
		abort();
	fake_run(listener, events);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], NEXT_PROGRAM))
		run_next_program(argv[2]);
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets_that_hang_share_one_time_limit),
		cmocka_unit_test(silent_ports_delay_the_end_by_little),
		cmocka_unit_test(unwritable_names_are_reported),
		cmocka_unit_test(each_program_of_a_pid_reports_its_failed_writes),
		cmocka_unit_test(names_that_cannot_be_written_are_taken_in_no_other_way),
		cmocka_unit_test(no_runtime_is_contacted_without_a_way),
		cmocka_unit_test(methods_before_the_end_of_a_process_are_kept),
		cmocka_unit_test(unreadable_parts_are_counted),
		cmocka_unit_test(users_over_the_limit_are_counted),
		cmocka_unit_test(a_new_process_does_not_keep_the_user_of_an_earlier_one),
		cmocka_unit_test(ended_processes_are_kept_in_bounded_memory),
		cmocka_unit_test(a_late_process_is_retried_without_a_command),
		cmocka_unit_test(methods_are_listed_unasked_only_without_collectible_assemblies),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
