#include "container/dotnet_text.h"

#include "container/proc_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define DOTNET_CORECLR "/libcoreclr.so"
#define DOTNET_SHARED "/shared/Microsoft.NETCore.App/"
#define DOTNET_DELETED " (deleted)"

static bool dotnet_starts(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/*
 * Copies a version: a digit, then digits, letters, dots, dashes and pluses. False: not a version.
 */
static bool dotnet_take_version(const char *text, size_t len, char *version, size_t cap)
{
	if (!len || len >= cap || text[0] < '0' || text[0] > '9')
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];

		if (!(c >= '0' && c <= '9') && !((c | 32) >= 'a' && (c | 32) <= 'z') &&
		    !strchr(".-+", c))
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
	/* Debuggers and profilers also map the library, but not to execute it. */
	if (maps->coreclr || !(m->prot & PROT_EXEC))
		return;
	if (len > deleted && !strcmp(m->path + len - deleted, DOTNET_DELETED))
		len -= deleted;
	if (len >= name && !memcmp(m->path + len - name, DOTNET_CORECLR, name))
		dotnet_scan_coreclr(m, len - name, maps);
}

void dotnet_text_scan_maps(char *lines, struct dotnet_maps *maps)
{
	struct proc_map m;

	while (proc_map_next(&lines, &m))
		if (m.path_len)
			dotnet_scan_map(&m, maps);
}

/*
 * Finds the JSON string that follows `"key" :` in [p, end), without decoding escapes; NULL if there
 * is none.
 */
static const char *dotnet_json_text(const char *p, const char *end, const char *key,
				    size_t *ret_len)
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

int dotnet_text_config_version(const char *json, char *version, size_t cap)
{
	static const char name[] = "\"Microsoft.NETCore.App\"";
	const char *at = strstr(json, name);

	/*
	 * The form is "framework": {"name": NAME, "version": V}, or the same in "frameworks" or
	 * "includedFrameworks": [...].
	 */
	for (; at; at = strstr(at + 1, name)) {
		const char *end = strchrnul(at, '}');
		size_t len;
		const char *text = dotnet_json_text(at, end, "version", &len);

		if (text && dotnet_take_version(text, len, version, cap))
			return 0;
	}
	return -ENOENT;
}
