#include "symbols/server/symbol_server.h"

#include "symbols/names/dotnet_names.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A URL without user name and password, for messages. */
static char *without_user(const char *url)
{
	const char *host = strstr(url, "://") + 3, *at = memrchr(host, '@', strcspn(host, "/"));
	char *text = NULL;

	if (!at)
		return strdup(url);
	return asprintf(&text, "%.*s%s", (int)(host - url), url, at + 1) < 0 ? NULL : text;
}

static bool is_url(const char *text, size_t len)
{
	static const char *const schemes[] = {"http://", "https://"};

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] <= ' ' || text[i] == 0x7f)
			return false;
	for (size_t i = 0; i < 2; i++)
		if (len > strlen(schemes[i]) && !strncasecmp(text, schemes[i], strlen(schemes[i])))
			return text[strlen(schemes[i])] != '/';
	return false;
}

static int add_one(struct symbol_servers *s, enum symbol_server_kind kind, const char *text,
		   size_t len)
{
	struct symbol_server server = {.kind = kind};

	while (len && text[len - 1] == '/')
		len--;
	if (s->list.len >= SYMBOL_SERVERS_MAX)
		return -E2BIG;
	server.url = strndup(text, len);
	server.shown = server.url ? without_user(server.url) : NULL;
	if (server.shown && !vec_push(&s->list, server))
		return 0;
	free(server.url);
	free(server.shown);
	return -ENOMEM;
}

int symbol_servers_add(struct symbol_servers *s, enum symbol_server_kind kind, const char *text,
		       const char *separators, const char **ret_bad)
{
	int r = 0;

	while (!r && *(text += strspn(text, separators))) {
		size_t len = strcspn(text, separators);

		/* debuginfod's list has words of IMA policy between the servers. */
		if (kind == SYMBOL_SERVER_DEBUGINFOD && !strncmp(text, "ima:", 4)) {
			text += len;
			continue;
		}
		r = is_url(text, len) ? add_one(s, kind, text, len) : -EINVAL;
		if (r)
			*ret_bad = text;
		text += len;
	}
	return r;
}

int symbol_servers_add_environment(struct symbol_servers *s, const char **ret_variable,
				   const char **ret_bad)
{
	const char *ssqp = secure_getenv(SYMBOL_SERVER_VARIABLE),
		   *urls = secure_getenv("DEBUGINFOD_URLS");
	int r = 0;

	*ret_variable = SYMBOL_SERVER_VARIABLE;
	if (!s->list.len) {
		r = symbol_servers_add(s, SYMBOL_SERVER_SSQP, ssqp ? ssqp : SYMBOL_SERVER_MICROSOFT,
				       "; ", ret_bad);
		if (!r && !ssqp)
			s->list.v[0].built_in = true;
	}
	if (r || !urls)
		return r;
	*ret_variable = "DEBUGINFOD_URLS";
	return symbol_servers_add(s, SYMBOL_SERVER_DEBUGINFOD, urls, " \t\n", ret_bad);
}

void symbol_servers_free(struct symbol_servers *s)
{
	for (size_t i = 0; i < s->list.len; i++) {
		free(s->list.v[i].url);
		free(s->list.v[i].shown);
	}
	vec_free(&s->list);
}

bool symbol_server_accepts(const struct symbol_server *s, const struct symbol_file *f)
{
	if (s->kind == SYMBOL_SERVER_DEBUGINFOD)
		return f->kind == SYMBOL_FILE_ELF;
	if (!s->built_in)
		return true;
	if (f->kind == SYMBOL_FILE_ELF)
		return f->name &&
		       (dotnet_names_is_native(f->name) || dotnet_names_is_tool(f->name));
	return f->name && dotnet_names_is_framework(f->name);
}

int symbol_server_url(const struct symbol_server *s, const struct symbol_file *f,
		      struct outbuf *out)
{
	char key[1024], hex[2 * BUILD_ID_MAX + 1];
	int r = symbol_file_key(f, key, sizeof(key));

	if (r)
		return r;
	outbuf_str(out, s->url);
	if (s->kind == SYMBOL_SERVER_DEBUGINFOD) {
		build_id_hex(&f->build_id, hex);
		outbuf_printf(out, "/buildid/%s/debuginfo", hex);
		return out->error;
	}
	outbuf_char(out, '/');
	for (const char *p = key; *p; p++) {
		if (isalnum((unsigned char)*p) || strchr("/-._~", *p))
			outbuf_char(out, *p);
		else
			outbuf_printf(out, "%%%02X", (unsigned char)*p);
	}
	return out->error;
}

/* The number in a variable. A bad or negative number means 0: no limit. */
static uint64_t limit_from_env(const char *variable, uint64_t otherwise)
{
	const char *text = secure_getenv(variable);
	char *end;

	if (!text || !*text)
		return otherwise;
	long long n = strtoll(text, &end, 10);

	return *end || n < 0 ? 0 : (uint64_t)n;
}

struct symbol_server_limits symbol_server_debuginfod_limits(void)
{
	return (struct symbol_server_limits){
		.timeout_s = limit_from_env("DEBUGINFOD_TIMEOUT", 90),
		.whole_s = limit_from_env("DEBUGINFOD_MAXTIME", 0),
		.max_bytes = limit_from_env("DEBUGINFOD_MAXSIZE", 0),
		.retries = limit_from_env("DEBUGINFOD_RETRY_LIMIT", 2),
	};
}
