/*
 * Servers of debug files: what is asked of which one, under which address, and whether an answer is what was asked for.
 *
 * SSQP servers (Simple Symbol Query Protocol; dotnet/symstore, docs/specs/SSQP_Key_Conventions.md) have files under
 * {server}/{key}, a key being FILE/ID/FILE. debuginfod servers have debug files under {server}/buildid/{id}/debuginfo
 * (debuginfod(8) of elfutils). libdebuginfod is not used for these: it fetches one file after the other, takes what comes without
 * looking at its build id, and would bring limits of its own; through one transport all servers have the same progress,
 * limits and checks. Its cache is looked into (symbols/debug_cache.h), and its variables count.
 */
#ifndef SYMBOLS_SYMBOL_SERVER_H
#define SYMBOLS_SYMBOL_SERVER_H

#include "base/outbuf.h"
#include "base/vec.h"
#include "symbols/image.h"

#include <stdbool.h>
#include <stdint.h>

#define SYMBOL_SERVER_MICROSOFT "https://msdl.microsoft.com/download/symbols"
#define SYMBOL_SERVER_VARIABLE "DOTNET_SYMBOL_SERVER"
#define SYMBOL_SERVERS_MAX 32

enum symbol_file_kind {
	SYMBOL_FILE_ELF, /* the debug file of an ELF image */
	SYMBOL_FILE_PDB, /* the portable PDB of an assembly */
	SYMBOL_FILE_R2R_MAP, /* the map of a ReadyToRun image: its functions' RVAs and names */
};

struct symbol_file {
	enum symbol_file_kind kind;
	const char *name; /* the last part of a path: the image's, the PDB's ("x.pdb") or the map's ("x.ni.r2rmap"). Borrowed */
	struct image_build_id build_id; /* of an ELF file */
	uint8_t id[16]; /* of the others: the CodeView GUID, or the map's signature, as their bytes are in the PE file */
	uint32_t version; /* of a map's format */
};

/* Its key on a server and in caches, of cap bytes with its NUL. 0; -EINVAL: name is none; -ENAMETOOLONG. */
int symbol_file_key(const struct symbol_file *f, char *key, size_t cap);

/* The file that a key of these kinds is about; its name, lower-cased, is put into name (NAME_MAX + 1 bytes). 0 or -EINVAL. */
int symbol_file_of_key(const char *key, struct symbol_file *ret_file, char *name);

/*
 * Whether what fd holds is that file: an ELF file of this build id with symbols or lines, a PDB of this GUID, a map of this
 * signature. 0; -EBADMSG with *ret_what, a static text that goes on "it is "; -ENOMEM; -errno.
 */
int symbol_file_check(const struct symbol_file *f, int fd, const char **ret_what);

enum symbol_server_kind {
	SYMBOL_SERVER_SSQP,
	SYMBOL_SERVER_DEBUGINFOD,
};

struct symbol_server {
	enum symbol_server_kind kind;
	char *url; /* without a slash at its end */
	char *shown; /* the same without a user's name and password */
	bool built_in; /* nobody named it: it is asked for files of .NET only */
};

/* A zeroed struct is empty. */
struct symbol_servers {
	VEC(struct symbol_server) list; /* in the order in which they are asked */
};

/* Adds the servers of a text, separated by any of these characters. 0; -EINVAL: one is no http or https URL, and *ret_bad, which
 * points into text, begins with it; -E2BIG: over SYMBOL_SERVERS_MAX; -ENOMEM. */
int symbol_servers_add(struct symbol_servers *s, enum symbol_server_kind kind, const char *text, const char *separators,
		       const char **ret_bad);

/*
 * Those of the environment: DOTNET_SYMBOL_SERVER (`;` between them; empty: none; not set: Microsoft's) unless SSQP servers are in
 * the list already, then DEBUGINFOD_URLS (blanks between them). As symbol_servers_add; *ret_variable: which one is wrong.
 */
int symbol_servers_environment(struct symbol_servers *s, const char **ret_variable, const char **ret_bad);
void symbol_servers_free(struct symbol_servers *s);

/* Whether a server is asked for a file: by its kind, and of what nobody named not for private programs. */
bool symbol_server_is_asked(const struct symbol_server *s, const struct symbol_file *f);

/* The address of a file. 0 or an error of symbol_file_key. */
int symbol_server_url(const struct symbol_server *s, const struct symbol_file *f, struct outbuf *out);

/* DEBUGINFOD_TIMEOUT, _MAXTIME, _MAXSIZE, _RETRY_LIMIT as debuginfod-client-config(7) has them; 0: without limit. */
struct symbol_server_limits {
	uint64_t timeout_s; /* in which 100 KiB must have come */
	uint64_t whole_s, max_bytes, retries;
};
struct symbol_server_limits symbol_server_debuginfod_limits(void);

#endif
