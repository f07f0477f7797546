#include "dotnet/eventpipe/nettrace_read.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define NETTRACE_READ_BYTES ((size_t)256 << 10)

int nettrace_read(int fd, const struct nettrace_listener *listener,
		  struct nettrace_stats *ret_stats, bool *ret_cut, struct parse_error *err)
{
	AUTO_FREE char *block = malloc(NETTRACE_READ_BYTES);
	struct nettrace *n = NULL;
	int r = block ? nettrace_new(listener, &n) : -ENOMEM;

	*ret_stats = (struct nettrace_stats){0};
	*ret_cut = true;
	while (!r && !nettrace_ended(n)) {
		ssize_t got = read(fd, block, NETTRACE_READ_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			r = got ? -errno : 0;
			break;
		}
		r = nettrace_feed(n, block, (size_t)got, err);
	}
	if (n) {
		*ret_stats = nettrace_stats(n);
		*ret_cut = !nettrace_ended(n);
	}
	nettrace_free(n);
	return r;
}
