#include "symbols/server/libcurl.h"

#include <dlfcn.h>
#include <stddef.h>

const struct libcurl *libcurl_load(void)
{
	static struct libcurl curl;
	void *library = curl.multi_poll ? NULL : dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);

#define LIBCURL_FIND(name)                                                    \
	curl.name = (__typeof__(curl_##name) *)dlsym(library, "curl_" #name); \
	if (!curl.name)                                                       \
		return NULL;
	if (library) {
		LIBCURL_FUNCTIONS(LIBCURL_FIND)
	}
	return curl.multi_poll ? &curl : NULL;
}
