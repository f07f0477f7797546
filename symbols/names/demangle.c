#include "symbols/names/demangle.h"

#include "base/cleanup.h"
#include "base/vec.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

/* Declared in libiberty/demangle.h, whose folder differs between distributions. */
typedef void demangle_callback(const char *text, size_t len, void *context);
extern int cplus_demangle_v3_callback(const char *mangled, int options, demangle_callback *callback,
				      void *context);
extern int rust_demangle_callback(const char *mangled, int options, demangle_callback *callback,
				  void *context);
#define DMGL_NO_OPTS 0
#define DMGL_PARAMS (1 << 0)
#define DMGL_ANSI (1 << 1)

#define PLT_SUFFIX "@plt"
/* Bytes of perf's buffer for such a name, less the NUL; longer names are cut */
#define PERF_PLT_NAME_MAX 1023

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Convert camlModule__name_12 to Module.name_12. $xx is a character in hexadecimal. */
static char *demangle_ocaml(const char *name)
{
	if (strncmp(name, "caml", 4) || !isupper((unsigned char)name[4]))
		return NULL;
	char *text = malloc(strlen(name) + 1), *out = text;

	if (!text)
		return NULL;
	for (const char *p = name + 4; *p;) {
		if (p[0] == '_' && p[1] == '_') {
			*out++ = '.';
			p += 2;
		} else if (p[0] == '$' && hex_digit(p[1]) >= 0 && hex_digit(p[2]) >= 0) {
			*out++ = (char)(hex_digit(p[1]) << 4 | hex_digit(p[2]));
			p += 3;
		} else {
			*out++ = *p++;
		}
	}
	*out = 0;
	return text;
}

/*
 * Text collected piece by piece. A short name can stand for endless text, because each part may
 * refer to earlier parts twice. If the text grows too long, leave the library by longjmp. Nothing
 * leaks, because with callbacks the library holds no memory except its stack.
 */
struct text {
	VEC(char) chars;
	jmp_buf give_up;
};

static void take_text(const char *text, size_t len, void *context)
{
	struct text *t = context;

	if (len > DEMANGLE_NAME_MAX - t->chars.len || vec_reserve(&t->chars, len + 1))
		longjmp(t->give_up, 1);
	if (len) /* the library passes NULL for empty text */
		memcpy(t->chars.v + t->chars.len, text, len);
	t->chars.len += len;
}

typedef int demangle_fn(const char *mangled, int options, demangle_callback *callback,
			void *context);

static char *demangle_with(demangle_fn *fn, const char *name, int options, uint64_t *made_bytes)
{
	struct text t = {0};

	if (setjmp(t.give_up) || !fn(name, options, take_text, &t) || !t.chars.len) {
		*made_bytes += t.chars.len;
		vec_free(&t.chars);
		return NULL;
	}
	*made_bytes += t.chars.len;
	t.chars.v[t.chars.len] = 0;
	return t.chars.v;
}

/*
 * Try the languages in the order of libiberty's cplus_demangle, without those that it tries only on
 * demand.
 */
static char *demangle_any(const char *name, int options, uint64_t *made_bytes)
{
	char *text;

	if (name[0] == '_') {
		text = demangle_with(rust_demangle_callback, name, options, made_bytes);
		return text ? text
			    : demangle_with(cplus_demangle_v3_callback, name, options, made_bytes);
	}
	return demangle_ocaml(name);
}

static char *demangle_plt(const char *name, size_t len, int options, uint64_t *made_bytes)
{
	AUTO_FREE char *bare = strndup(name, len);
	AUTO_FREE char *text = bare ? demangle_any(bare, options, made_bytes) : NULL;
	char *with_plt = NULL;

	if (!text || asprintf(&with_plt, "%s" PLT_SUFFIX, text) < 0)
		return NULL;
	if (options == DMGL_NO_OPTS && strlen(with_plt) > PERF_PLT_NAME_MAX)
		with_plt[PERF_PLT_NAME_MAX] = 0;
	return with_plt;
}

static char *demangle(const char *name, int options, uint64_t *made_bytes)
{
	if (name[0] != '_' && name[0] != 'c')
		return NULL; /* most names are plain C */
	size_t len = strnlen(name, DEMANGLE_NAME_MAX + 1);
	size_t suffix = sizeof(PLT_SUFFIX) - 1;

	if (len > DEMANGLE_NAME_MAX)
		return NULL;
	if (len > suffix && !memcmp(name + len - suffix, PLT_SUFFIX, suffix))
		return demangle_plt(name, len - suffix, options, made_bytes);
	return demangle_any(name, options, made_bytes);
}

char *demangle_perf(const char *name)
{
	uint64_t made_bytes = 0;

	return demangle_perf_counted(name, &made_bytes);
}

char *demangle_perf_counted(const char *name, uint64_t *made_bytes)
{
	return demangle(name, DMGL_NO_OPTS, made_bytes);
}

char *demangle_full(const char *name)
{
	uint64_t made_bytes = 0;

	return demangle(name, DMGL_PARAMS | DMGL_ANSI, &made_bytes);
}
