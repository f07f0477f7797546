/*
 * libcurl, loaded when something is downloaded. It brings 30 more libraries, which take most of the
 * start of a program.
 */
#ifndef SYMBOLS_SERVER_LIBCURL_H
#define SYMBOLS_SERVER_LIBCURL_H

#include <curl/curl.h>

/* The functions that profcpu uses, without "curl_". */
#define LIBCURL_FUNCTIONS(F)   \
	F(global_init)         \
	F(global_cleanup)      \
	F(easy_init)           \
	F(easy_cleanup)        \
	F(easy_setopt)         \
	F(easy_getinfo)        \
	F(easy_strerror)       \
	F(slist_append)        \
	F(slist_free_all)      \
	F(multi_init)          \
	F(multi_cleanup)       \
	F(multi_add_handle)    \
	F(multi_remove_handle) \
	F(multi_info_read)     \
	F(multi_perform)       \
	F(multi_poll)

#define LIBCURL_MEMBER(name) __typeof__(curl_##name) *name;
struct libcurl {
	LIBCURL_FUNCTIONS(LIBCURL_MEMBER)
};

/* Loads libcurl once, for the life of the process. NULL: it is missing or too old. */
const struct libcurl *libcurl_load(void);

#endif
