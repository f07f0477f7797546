#include "container/dotnet_process.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "base/path.h"
#include "container/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DOTNET_ENVIRON_MAX ((size_t)4 << 20)

/*
 * Reads the version of an application that was published with its own runtime:
 * PROGRAM.runtimeconfig.json is beside libcoreclr.so.
 */
static void dotnet_own_version(struct opener *o, pid_t pid, const char *dir, char *version,
			       size_t cap)
{
	char exe[PATH_MAX], path[PATH_MAX];
	AUTO_FREE char *json = NULL;
	AUTO_CLOSE int fd = -1;
	size_t len;

	if (proc_link(pid, "exe", exe, sizeof(exe)))
		return;
	int used = snprintf(path, sizeof(path), "%s/%s.runtimeconfig.json", dir, path_base(exe));

	if (used < 0 || (size_t)used >= sizeof(path) ||
	    opener_file(o, pid, path, DOTNET_CONFIG_MAX, &fd) ||
	    file_read_fd(fd, DOTNET_CONFIG_MAX, &json, &len))
		return;
	dotnet_text_config_version(json, version, cap);
}

/*
 * Returns whether our own /tmp has the diagnostic port of a process that we may not read. PID and
 * start time in its name identify the process.
 */
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
	AUTO_CLOSE int fd = -1;

	return !resolve_own(0, path, &fd) && !fstat(fd, &st) && S_ISSOCK(st.st_mode) &&
	       st.st_uid == status.uid;
}

/* Most processes have no .NET, and one search is cheaper than parsing the lines. */
static int dotnet_scan_lines(void *ctx, char *lines, size_t len)
{
	struct dotnet_maps **maps = ctx;

	if (!memmem(lines, len, "/libcoreclr.so", 14) && !memmem(lines, len, "/memfd:do", 9))
		return 0;
	if (!*maps)
		*maps = calloc(1, sizeof(**maps));
	if (!*maps)
		return -ENOMEM;
	dotnet_text_scan_maps(lines, *maps);
	return 0;
}

int dotnet_probe(struct opener *o, pid_t pid, const struct proc_maps_limit *limit,
		 struct dotnet_runtime *ret_runtime)
{
	struct dotnet_runtime runtime = {0};
	AUTO_FREE struct dotnet_maps *maps = NULL;
	int r = proc_scan_maps(pid, limit, dotnet_scan_lines, &maps);

	if (r == -EACCES || r == -EPERM) {
		runtime.is_dotnet = dotnet_port_in_own_tmp(pid);
		if (!runtime.is_dotnet)
			return r;
		*ret_runtime = runtime;
		return 0;
	}
	if (r)
		return r;
	if (maps) {
		runtime.is_dotnet = maps->coreclr || maps->jit || maps->port;
		memcpy(runtime.version, maps->version, sizeof(runtime.version));
		if (maps->coreclr && !runtime.version[0])
			dotnet_own_version(o, pid, maps->coreclr_dir, runtime.version,
					   sizeof(runtime.version));
	}
	*ret_runtime = runtime;
	return 0;
}

enum { LOADER_CORELIB, LOADER_CONTEXT, LOADER_EMIT, LOADER_FILES };
static const char *const loader_files[LOADER_FILES] = {
	"/System.Private.CoreLib.dll", "/System.Runtime.Loader.dll", "/System.Reflection.Emit.dll"};

static int dotnet_find_loaders(void *ctx, char *lines, size_t len)
{
	bool *found = ctx;

	for (int i = 0; i < LOADER_FILES; i++)
		found[i] |= memmem(lines, len, loader_files[i], strlen(loader_files[i])) != NULL;
	return 0;
}

int dotnet_loader_file(pid_t pid, uint64_t until_ns, const char **ret_file)
{
	const struct proc_maps_limit limit = {PROC_MAPS_MAX, until_ns};
	bool found[LOADER_FILES] = {false};
	int r = proc_scan_maps(pid, &limit, dotnet_find_loaders, found);

	if (r)
		return r;
	if (!found[LOADER_CORELIB])
		return -ENODATA;
	*ret_file = found[LOADER_CONTEXT] ? loader_files[LOADER_CONTEXT] + 1
		    : found[LOADER_EMIT]  ? loader_files[LOADER_EMIT] + 1
					  : NULL;
	return 0;
}

/*
 * Reads an environment variable that the process was started with. 0; -ENOENT; -ENAMETOOLONG;
 * errors of proc_read.
 */
static int dotnet_env(pid_t pid, const char *name, char *buf, size_t cap)
{
	AUTO_FREE char *env = NULL;
	size_t len, n = strlen(name);
	int r = proc_read(pid, 0, "environ", DOTNET_ENVIRON_MAX, &env, &len);

	if (r)
		return r;
	for (const char *p = env; p < env + len; p += strlen(p) + 1) {
		if (strncmp(p, name, n) || p[n] != '=')
			continue;
		if (strlen(p + n + 1) >= cap)
			return -ENAMETOOLONG;
		strcpy(buf, p + n + 1);
		return 0;
	}
	return -ENOENT;
}

/* Reads the target's TMPDIR; "/tmp" if its environment is not readable or does not set it. */
static void dotnet_tmpdir(pid_t pid, char *dir, size_t cap)
{
	if (dotnet_env(pid, "TMPDIR", dir, cap) || dir[0] != '/')
		snprintf(dir, cap, "/tmp");
	for (size_t n = strlen(dir); n > 1 && dir[n - 1] == '/';)
		dir[--n] = 0;
}

/* Connects to the port. *ret_pin: 0 or the error of opener_pin. */
static int dotnet_port_open(struct opener *o, pid_t pid, char *path, size_t cap, int *ret_pin,
			    int *ret_fd)
{
	struct opener_process process;
	char dir[PATH_MAX];

	*ret_pin = opener_pin(o, pid);
	if (opener_process(o, pid, &process))
		return *ret_pin;
	dotnet_tmpdir(pid, dir, sizeof(dir));
	int len = snprintf(path, cap, "%s/dotnet-diagnostic-%d-%llu-socket", dir, process.ns_pid,
			   (unsigned long long)process.start_ticks);

	if (*ret_pin)
		return *ret_pin;
	/* The path is too long for a socket's address, so the runtime cannot have it either. */
	int r = len < 0 || (size_t)len >= cap ? -ENOENT : opener_socket(o, pid, path, ret_fd);

	return r == -ENOTDIR ? -ENOENT : r;
}

int dotnet_port_connect(struct opener *o, pid_t pid, int *ret_fd)
{
	char path[DOTNET_PORT_BYTES];
	int pin;

	return dotnet_port_open(o, pid, path, sizeof(path), &pin, ret_fd);
}

int dotnet_port(struct opener *o, pid_t pid, enum dotnet_port_state *ret_state, char *path,
		size_t cap)
{
	AUTO_CLOSE int fd = -1;
	int pin, r = dotnet_port_open(o, pid, path, cap, &pin, &fd);

	if (pin)
		return pin;
	if (!r || r == -EAGAIN) /* -EAGAIN: its queue is full, so the runtime listens */
		*ret_state = DOTNET_PORT_OPEN;
	else if (r == -ENOENT)
		*ret_state = DOTNET_PORT_NONE;
	else
		*ret_state = r == -EACCES || r == -EPERM ? DOTNET_PORT_DENIED : DOTNET_PORT_DEAD;
	return 0;
}
