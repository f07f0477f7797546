#include "container/dotnet.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define DOTNET_CORECLR "/libcoreclr.so"
#define DOTNET_SHARED "/shared/Microsoft.NETCore.App/"
#define DOTNET_DELETED " (deleted)"
#define DOTNET_ENVIRON_MAX ((size_t)4 << 20)

static bool dotnet_starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Copies a version: digits, letters, dots, dashes and pluses, starting with a digit; anything else is none. */
static bool dotnet_take_version(const char *text, size_t len, char *version, size_t cap)
{
	if (!len || len >= cap || text[0] < '0' || text[0] > '9')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') && !strchr(".-+", c))
			return false;
	}
	memcpy(version, text, len);
	version[len] = 0;
	return true;
}

static void dotnet_scan_coreclr(const struct proc_map *m, size_t dir_len, struct dotnet_maps *maps)
{
	maps->coreclr = true;
	if (dir_len >= sizeof(maps->coreclr_dir))
		return;
	memcpy(maps->coreclr_dir, m->path, dir_len);
	maps->coreclr_dir[dir_len] = 0;
	const char *shared = strstr(maps->coreclr_dir, DOTNET_SHARED);

	if (!shared)
		return;
	shared += strlen(DOTNET_SHARED);
	dotnet_take_version(shared, strlen(shared), maps->version, sizeof(maps->version));
}

static void dotnet_scan_map(const struct proc_map *m, struct dotnet_maps *maps)
{
	size_t len = m->path_len, name = strlen(DOTNET_CORECLR), deleted = strlen(DOTNET_DELETED);

	if (dotnet_starts(m->path, "/memfd:doublemapper"))
		maps->jit = true;
	if (dotnet_starts(m->path, "/memfd:dotnet_ipc_created"))
		maps->port = true;
	/* A debugger or profiler maps the library too, but not to run it. */
	if (maps->coreclr || !(m->prot & PROT_EXEC))
		return;
	if (len > deleted && !strcmp(m->path + len - deleted, DOTNET_DELETED))
		len -= deleted;
	if (len >= name && !memcmp(m->path + len - name, DOTNET_CORECLR, name))
		dotnet_scan_coreclr(m, len - name, maps);
}

void dotnet_scan_maps(char *maps_text, struct dotnet_maps *ret_maps)
{
	struct proc_map m;

	memset(ret_maps, 0, sizeof(*ret_maps));
	while (proc_map_next(&maps_text, &m))
		if (m.path_len)
			dotnet_scan_map(&m, ret_maps);
}

/* The text of a JSON string that follows `"key" :` in [p, end), without escapes; NULL if there is none. */
static const char *dotnet_json_text(const char *p, const char *end, const char *key, size_t *ret_len)
{
	char quoted[64];
	int n = snprintf(quoted, sizeof(quoted), "\"%s\"", key);
	const char *at = memmem(p, (size_t)(end - p), quoted, (size_t)n), *stop;

	if (!at)
		return NULL;
	at += n;
	while (at < end && strchr(" \t\r\n:", *at))
		at++;
	if (at >= end || *at++ != '"')
		return NULL;
	stop = memchr(at, '"', (size_t)(end - at));
	if (!stop)
		return NULL;
	*ret_len = (size_t)(stop - at);
	return at;
}

int dotnet_config_version(const char *json, char *version, size_t cap)
{
	static const char name[] = "\"Microsoft.NETCore.App\"";
	const char *at = strstr(json, name);

	/* "framework": {"name": NAME, "version": V}, or the same in "frameworks" or "includedFrameworks": [...]. */
	for (; at; at = strstr(at + 1, name)) {
		const char *end = strchrnul(at, '}');
		size_t len;
		const char *text = dotnet_json_text(at, end, "version", &len);

		if (text && dotnet_take_version(text, len, version, cap))
			return 0;
	}
	return -ENOENT;
}

/* A published application with its own runtime: NAME.runtimeconfig.json beside libcoreclr.so, NAME being the program's. */
static void dotnet_own_version(struct opener *o, pid_t pid, const char *dir, char *version, size_t cap)
{
	char link[64], exe[PATH_MAX], path[PATH_MAX];
	AUTO_FREE char *json = NULL;
	AUTO_CLOSE int fd = -1;
	size_t len;

	snprintf(link, sizeof(link), "/proc/%d/exe", pid);
	ssize_t n = readlink(link, exe, sizeof(exe) - 1);

	if (n <= 0)
		return;
	exe[n] = 0;
	const char *slash = strrchr(exe, '/');
	int used = snprintf(path, sizeof(path), "%s/%s.runtimeconfig.json", dir, slash ? slash + 1 : exe);

	if (used < 0 || (size_t)used >= sizeof(path) ||
	    opener_file(o, pid, path, DOTNET_CONFIG_MAX, &fd) ||
	    file_read_fd(fd, DOTNET_CONFIG_MAX, &json, &len))
		return;
	dotnet_config_version(json, version, cap);
}

/* Where nothing of the process may be read, its port's name still tells, where it is in our own /tmp: the number and the start
 * time together are this process's and no other's. */
static bool dotnet_port_in_own_tmp(pid_t pid)
{
	struct proc_status status;
	char path[DOTNET_PORT_BYTES];
	struct stat st;
	uint64_t start;

	if (proc_status(pid, &status) || proc_start_ticks(pid, &start))
		return false;
	snprintf(path, sizeof(path), "/tmp/dotnet-diagnostic-%d-%llu-socket", status.ns_pid,
		 (unsigned long long)start);
	return !lstat(path, &st) && S_ISSOCK(st.st_mode) && st.st_uid == status.uid;
}

int dotnet_look(struct opener *o, pid_t pid, struct dotnet_runtime *ret_runtime)
{
	struct dotnet_runtime runtime = {0};
	AUTO_FREE struct dotnet_maps *maps = NULL;
	AUTO_FREE char *text = NULL;
	size_t len;
	int r = proc_read(pid, 0, "maps", PROC_MAPS_MAX, &text, &len);

	if (r == -EACCES || r == -EPERM) {
		runtime.is_dotnet = dotnet_port_in_own_tmp(pid);
		if (!runtime.is_dotnet)
			return r;
		*ret_runtime = runtime;
		return 0;
	}
	if (r)
		return r;
	/* Most processes have nothing of it, and one search is cheaper than reading the lines. */
	if (strstr(text, DOTNET_CORECLR) || strstr(text, "/memfd:do")) {
		maps = malloc(sizeof(*maps));
		if (!maps)
			return -ENOMEM;
		dotnet_scan_maps(text, maps);
		runtime.is_dotnet = maps->coreclr || maps->jit || maps->port;
		memcpy(runtime.version, maps->version, sizeof(runtime.version));
		if (maps->coreclr && !runtime.version[0])
			dotnet_own_version(o, pid, maps->coreclr_dir, runtime.version,
					   sizeof(runtime.version));
	}
	*ret_runtime = runtime;
	return 0;
}

/* TMPDIR of the target, where its environment may be read and names one. */
static void dotnet_tmpdir(pid_t pid, char *dir, size_t cap)
{
	AUTO_FREE char *env = NULL;
	size_t len, n;

	snprintf(dir, cap, "/tmp");
	if (proc_read(pid, 0, "environ", DOTNET_ENVIRON_MAX, &env, &len))
		return;
	for (const char *p = env; p < env + len; p += strlen(p) + 1) {
		if (!dotnet_starts(p, "TMPDIR=/"))
			continue;
		p += strlen("TMPDIR=");
		n = strlen(p);
		while (n > 1 && p[n - 1] == '/')
			n--;
		if (n < cap)
			snprintf(dir, cap, "%.*s", (int)n, p);
		return;
	}
}

static enum dotnet_port_state dotnet_connect(int path_fd)
{
	AUTO_CLOSE int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un a = {.sun_family = AF_UNIX};

	snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d", path_fd);
	if (s >= 0 && !connect(s, (struct sockaddr *)&a, sizeof(a)))
		return DOTNET_PORT_OPEN;
	if (errno == EAGAIN) /* its queue is full: it is there */
		return DOTNET_PORT_OPEN;
	return errno == EACCES || errno == EPERM ? DOTNET_PORT_DENIED : DOTNET_PORT_DEAD;
}

int dotnet_port(struct opener *o, pid_t pid, enum dotnet_port_state *ret_state, char *path, size_t cap)
{
	struct opener_process process;
	char dir[PATH_MAX];
	AUTO_CLOSE int fd = -1;
	struct stat st;
	int r = opener_hold(o, pid);

	if (opener_process(o, pid, &process))
		return r;
	dotnet_tmpdir(pid, dir, sizeof(dir));
	snprintf(path, cap, "%s/dotnet-diagnostic-%d-%llu-socket", dir, process.ns_pid,
		 (unsigned long long)process.start_ticks);
	if (!r)
		r = opener_path(o, pid, path, &fd);
	if (r == -ENOENT || r == -ENOTDIR || (!r && (fstat(fd, &st) || !S_ISSOCK(st.st_mode)))) {
		*ret_state = DOTNET_PORT_NONE;
		return 0;
	}
	if (!r)
		*ret_state = dotnet_connect(fd);
	return r;
}
