#include "profcpu/jit/collectible.h"

#include "container/dotnet_process.h"

#include <errno.h>
#include <stdio.h>

int jit_collectible(struct rundown *rundown, pid_t pid, uint64_t until_ns, char *what, size_t cap,
		    struct port_error *err)
{
	const char *file = NULL;
	int mapped = dotnet_loader_file(pid, until_ns, &file);
	int listed = 0;

	*what = 0;
	if (mapped || !file)
		listed = rundown_count_collectible(rundown, until_ns, err);
	if (listed && listed != -ENOTSUP)
		return listed;
	unsigned long long n = rundown_stats(rundown).collectible;

	if (file)
		snprintf(what, cap, "it has loaded %s, so it may unload assemblies", file);
	else if (n)
		snprintf(what, cap, "it can unload %llu of its assemblies", n);
	else if (mapped && listed)
		snprintf(what, cap, "it may unload assemblies");
	return 0;
}
