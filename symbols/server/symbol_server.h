/*
 * Servers of debug files: the list of servers, which of them may have a file, and the file's URL.
 * symbol_fetch.c tries them in the order of the list.
 *
 * SSQP servers (Simple Symbol Query Protocol; dotnet/symstore, docs/specs/SSQP_Key_Conventions.md)
 * have files under {server}/{key}; a key is FILE/ID/FILE. debuginfod servers (debuginfod(8) of
 * elfutils) have debug files under {server}/buildid/{id}/debuginfo.
 *
 * libdebuginfod is not used. It fetches files one after another, does not check their build id, and
 * has limits of its own. With one transport, all servers have the same progress, limits and checks.
 * Its cache is searched (elf/debug_cache.h), and its variables apply.
 */
#ifndef SYMBOLS_SERVER_SYMBOL_SERVER_H
#define SYMBOLS_SERVER_SYMBOL_SERVER_H

#include "base/outbuf.h"
#include "base/vec.h"
#include "symbols/core/symbol_file.h"

#include <stdbool.h>
#include <stdint.h>

#define SYMBOL_SERVER_MICROSOFT "https://msdl.microsoft.com/download/symbols"
#define SYMBOL_SERVER_VARIABLE "DOTNET_SYMBOL_SERVER"
#define SYMBOL_SERVERS_MAX 32

enum symbol_server_kind {
	SYMBOL_SERVER_SSQP,
	SYMBOL_SERVER_DEBUGINFOD,
};

struct symbol_server {
	enum symbol_server_kind kind;
	char *url;     /* without a slash at its end */
	char *shown;   /* the same without user name and password */
	bool built_in; /* the default server: gets requests only for files of .NET */
};

/* A zeroed struct is empty. */
struct symbol_servers {
	VEC(struct symbol_server) list; /* in the order of the requests */
};

/*
 * Adds the servers of a text, separated by any of these characters. Returns 0, -EINVAL (one is not
 * an http or https URL; *ret_bad points to it in text), -E2BIG (over SYMBOL_SERVERS_MAX) or
 * -ENOMEM.
 */
int symbol_servers_add(struct symbol_servers *s, enum symbol_server_kind kind, const char *text,
		       const char *separators, const char **ret_bad);

/*
 * Adds the servers of two environment variables. DOTNET_SYMBOL_SERVER, a list with `;`, is read
 * only if the list has no server yet. An empty value adds none; without the variable, Microsoft's
 * server is added. DEBUGINFOD_URLS, a list with blanks, is always read. Errors: as for
 * symbol_servers_add; *ret_variable is the wrong variable.
 */
int symbol_servers_add_environment(struct symbol_servers *s, const char **ret_variable,
				   const char **ret_bad);
void symbol_servers_free(struct symbol_servers *s);

/*
 * Whether a server gets a request for a file. The kind must fit. The default server gets one
 * only for files of .NET, so names of private programs stay private.
 */
bool symbol_server_accepts(const struct symbol_server *s, const struct symbol_file *f);

/* Writes the URL of a file. Returns 0 or an error of symbol_file_key. */
int symbol_server_url(const struct symbol_server *s, const struct symbol_file *f,
		      struct outbuf *out);

/*
 * DEBUGINFOD_TIMEOUT, _MAXTIME, _MAXSIZE and _RETRY_LIMIT of debuginfod-client-config(7); 0: no
 * limit.
 */
struct symbol_server_limits {
	uint64_t timeout_s; /* seconds in which 100 KiB must arrive */
	uint64_t whole_s, max_bytes, retries;
};
struct symbol_server_limits symbol_server_debuginfod_limits(void);

#endif
