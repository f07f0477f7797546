#include "container/process_list.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct proc_maps_limit limit = {PROC_MAPS_MAX, UINT64_MAX};

#define R " r--p 00000000 08:01 99   "
#define X " r-xp 00010000 08:01 99   "

static void the_maps_show_the_runtime_and_its_version(void **state)
{
	static const struct {
		const char *maps, *version;
		int coreclr, jit, port;
	} cases[] = {
		{"1000-2000" X
		 "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so\n",
		 "10.0.12", 1, 0, 0},
		{"1000-2000" X
		 "/opt/shared/Microsoft.NETCore.App/9.0.0-rc.2.24473.5/libcoreclr.so (deleted)\n",
		 "9.0.0-rc.2.24473.5", 1, 0, 0},
		/* Only reads the process, as a profiler does. */
		{"1000-2000" R
		 "/usr/share/dotnet/shared/Microsoft.NETCore.App/10.0.12/libcoreclr.so\n",
		 "", 0, 0, 0},
		{"1000-2000" X "/app/libcoreclr.so\n", "", 1, 0, 0},
		{"1000-2000" X "/app/notlibcoreclr.so\n3000-4000" X "/app/libcoreclr.so.dbg\n", "",
		 0, 0, 0},
		{"1000-2000 r-xs 00000000 00:01 36 /memfd:doublemapper (deleted)\n", "", 0, 1, 0},
		{"1000-2000 ---p 00000000 00:01 36 /memfd:dotnet_ipc_created (deleted)\n", "", 0, 0,
		 1},
		{"1000-2000" X "/a/shared/Microsoft.NETCore.App/..\033[2J/libcoreclr.so\n", "", 1,
		 0, 0},
		{"1000-2000" X "/a/shared/Microsoft.NETCore.App/10/0/libcoreclr.so\n", "", 1, 0, 0},
		{"", "", 0, 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct dotnet_maps m = {0};
		char *text = strdup(cases[i].maps);

		dotnet_text_scan_maps(text, &m);
		assert_string_equal(m.version, cases[i].version);
		assert_int_equal(m.coreclr, cases[i].coreclr);
		assert_int_equal(m.jit, cases[i].jit);
		assert_int_equal(m.port, cases[i].port);
		free(text);
	}
}

static void the_version_of_an_own_runtime_is_in_its_config(void **state)
{
	char v[DOTNET_VERSION_BYTES] = "";

	(void)state;
	assert_int_equal(
		dotnet_text_config_version(
			"{\"runtimeOptions\": {\"tfm\": \"net10.0\", \"includedFrameworks\": [\n"
			" {\"name\": \"Microsoft.AspNetCore.App\", \"version\": \"1.2.3\"},\n"
			" {\"name\": \"Microsoft.NETCore.App\",\n \"version\" : \"10.0.1\"}]}}",
			v, sizeof(v)),
		0);
	assert_string_equal(v, "10.0.1");
	assert_int_equal(dotnet_text_config_version(
				 "{\"name\": \"Microsoft.NETCore.App\"}, {\"version\": \"1.0\"}", v,
				 sizeof(v)),
			 -ENOENT);
	assert_int_equal(
		dotnet_text_config_version("\"Microsoft.NETCore.App\", \"version\": \"x; rm -rf\"",
					   v, sizeof(v)),
		-ENOENT);
	assert_int_equal(dotnet_text_config_version("\"Microsoft.NETCore.App\", \"version\": 10", v,
						    sizeof(v)),
			 -ENOENT);
	assert_int_equal(dotnet_text_config_version("\"Microsoft.NETCore.App\", \"version\": \"1",
						    v, sizeof(v)),
			 -ENOENT);
	assert_int_equal(dotnet_text_config_version("", v, sizeof(v)), -ENOENT);
	assert_string_equal(v, "10.0.1");
}

static char dir[] = "/tmp/profcpu-dotnet-XXXXXX";

/* A process that looks like a published .NET application: it maps DIR/libcoreclr.so as code. */
static pid_t start_lookalike(const char *library, int memfd)
{
	int ready[2];
	char c;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "looks-alike");
		int fd = memfd ? memfd_create(library, MFD_CLOEXEC)
			       : open(library, O_RDWR | O_CREAT | O_CLOEXEC, 0755);

		if (fd < 0 || ftruncate(fd, 4096) ||
		    mmap(NULL, 4096, PROT_READ | PROT_EXEC, memfd ? MAP_SHARED : MAP_PRIVATE, fd,
			 0) == MAP_FAILED ||
		    write(ready[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* DIR/NAME.runtimeconfig.json, with NAME of the process's program (valgrind runs another
 * program). */
static void write_config(pid_t pid)
{
	char path[512], exe[256];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	ssize_t n = readlink(path, exe, sizeof(exe) - 1);

	assert_true(n > 0);
	exe[n] = 0;
	snprintf(path, sizeof(path), "%s%s.runtimeconfig.json", dir, strrchr(exe, '/'));
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("{\"runtimeOptions\":{\"includedFrameworks\":[{\"name\":\"Microsoft.NETCore.App\","
	      "\"version\":\"10.0.7\"}]}}",
	      f);
	fclose(f);
}

static void processes_are_found_and_distinguished(void **state)
{
	struct dotnet_runtime runtime;
	struct process_list list;
	struct opener *o;
	char path[256];
	size_t found = 0;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	snprintf(path, sizeof(path), "%s/libcoreclr.so", dir);
	pid_t published = start_lookalike(path, 0), single = start_lookalike("doublemapper", 1);

	write_config(published);
	assert_int_equal(dotnet_probe(o, published, &limit, &runtime), 0);
	assert_true(runtime.is_dotnet);
	assert_string_equal(runtime.version, "10.0.7");
	assert_int_equal(dotnet_probe(o, single, &limit, &runtime), 0);
	assert_true(runtime.is_dotnet);
	assert_string_equal(runtime.version, "");
	assert_int_equal(dotnet_probe(o, getpid(), &limit, &runtime), 0);
	assert_false(runtime.is_dotnet);
	assert_int_equal(dotnet_probe(o, 0x7ffffffe, &limit, &runtime), -ESRCH);
	assert_int_equal(process_list_load(o, true, &list), 0);
	for (size_t i = 0; i < list.len; i++) {
		assert_true(list.v[i].dotnet.is_dotnet);
		assert_true(!i || list.v[i - 1].pid < list.v[i].pid);
		found += list.v[i].pid == published || list.v[i].pid == single;
		if (list.v[i].pid == published) {
			assert_string_equal(list.v[i].comm, "looks-alike");
			assert_int_equal(list.v[i].uid, geteuid());
			assert_int_equal(list.v[i].ppid, getpid());
		}
	}
	assert_int_equal(found, 2);
	process_list_free(&list);
	assert_int_equal(process_list_load(o, false, &list), 0);
	assert_true(list.len >= 3);
	for (size_t i = 0; i < list.len; i++)
		assert_int_not_equal(list.v[i].pid, getpid());
	process_list_free(&list);
	end_child(published);
	end_child(single);
	opener_free(o);
}

static void without_a_pid_the_only_dotnet_process_is_chosen(void **state)
{
	struct process_entry three[3] = {
		{.pid = 10, .dotnet.is_dotnet = false},
		{.pid = 20, .dotnet.is_dotnet = true},
		{.pid = 30, .dotnet.is_dotnet = true},
	};
	struct process_list list = {.v = three};
	pid_t pid = -1;

	(void)state;
	assert_int_equal(process_list_choose(&list, &pid), PROCESS_LIST_PID1);
	assert_int_equal(pid, 1);
	list.len = 1;
	assert_int_equal(process_list_choose(&list, &pid), PROCESS_LIST_PID1);
	assert_int_equal(pid, 1);
	list.len = 2;
	assert_int_equal(process_list_choose(&list, &pid), PROCESS_LIST_ONLY);
	assert_int_equal(pid, 20);
	list.len = 3;
	assert_int_equal(process_list_choose(&list, &pid), PROCESS_LIST_SEVERAL);
	assert_int_equal(pid, 20);
}

static int port_socket(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	unlink(path);
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(s, 5), 0);
	return s;
}

static void the_port_is_found_and_its_state_reported(void **state)
{
	enum dotnet_port_state port;
	char path[DOTNET_PORT_BYTES], expected[DOTNET_PORT_BYTES];
	struct proc_status status;
	struct opener *o;
	uint64_t start;

	(void)state;
	assert_int_equal(opener_new(&o), 0);
	pid_t pid = start_lookalike("doublemapper", 1);

	assert_int_equal(proc_status(pid, &status), 0);
	assert_int_equal(proc_start_ticks(pid, &start), 0);
	snprintf(expected, sizeof(expected), "/tmp/dotnet-diagnostic-%d-%llu-socket", status.ns_pid,
		 (unsigned long long)start);
	assert_int_equal(dotnet_port(o, pid, &port, path, sizeof(path)), 0);
	assert_string_equal(path, expected);
	assert_int_equal(port, DOTNET_PORT_NONE);
	int s = port_socket(path);

	assert_int_equal(dotnet_port(o, pid, &port, path, sizeof(path)), 0);
	assert_int_equal(port, DOTNET_PORT_OPEN);
	close(s);
	assert_int_equal(dotnet_port(o, pid, &port, path, sizeof(path)), 0);
	assert_int_equal(port, DOTNET_PORT_DEAD);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(dotnet_port(o, pid, &port, path, sizeof(path)), 0);
	assert_int_equal(port, DOTNET_PORT_NONE);
	unlink(path);
	end_child(pid);
	opener_free(o);
}

/* In a child without rights, which sees the port in /tmp but not the process. */
static int probe_unprivileged(pid_t victim, int expected)
{
	struct dotnet_runtime runtime = {0};
	struct opener *o;

	if (setresuid(54321, 54321, 54321) || opener_new(&o))
		return 1;
	int r = dotnet_probe(o, victim, &limit, &runtime);

	opener_free(o);
	return expected ? r || !runtime.is_dotnet : r != -EACCES && r != -EPERM;
}

static void a_foreign_process_is_found_by_its_port(void **state)
{
	enum dotnet_port_state port;
	char path[DOTNET_PORT_BYTES];
	struct opener *o;
	int status;

	(void)state;
	if (geteuid())
		skip();
	assert_int_equal(opener_new(&o), 0);
	pid_t victim = start_lookalike("doublemapper", 1);

	assert_int_equal(dotnet_port(o, victim, &port, path, sizeof(path)), 0);
	for (int with_port = 0; with_port < 2; with_port++) {
		int s = with_port ? port_socket(path) : -1;
		pid_t pid = fork();

		if (!pid)
			_exit(probe_unprivileged(victim, with_port));
		waitpid(pid, &status, 0);
		assert_int_equal(status, 0);
		if (s >= 0)
			close(s);
	}
	unlink(path);
	end_child(victim);
	opener_free(o);
}

static int setup(void **state)
{
	(void)state;
	unsetenv("TMPDIR");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_maps_show_the_runtime_and_its_version),
		cmocka_unit_test(the_version_of_an_own_runtime_is_in_its_config),
		cmocka_unit_test(processes_are_found_and_distinguished),
		cmocka_unit_test(without_a_pid_the_only_dotnet_process_is_chosen),
		cmocka_unit_test(the_port_is_found_and_its_state_reported),
		cmocka_unit_test(a_foreign_process_is_found_by_its_port),
	};

	/* /proc shows the environment at the time of exec. */
	if (argc == 1 && getenv("TMPDIR")) {
		unsetenv("TMPDIR");
		execl("/proc/self/exe", argv[0], "again", NULL);
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
