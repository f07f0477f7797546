/* covers: container/proc_text.c container/cgroup.c container/dotnet_text.c */
#include "container/cgroup.h"
#include "container/dotnet_process.h"
#include "container/proc.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Texts of /proc that contain names from a target: files, programs and cgroups. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char container[CGROUP_CONTAINER_BYTES], version[DOTNET_VERSION_BYTES];
	struct dotnet_maps *maps = calloc(1, sizeof(*maps));
	char *text = malloc(size + 1), *copy = malloc(size + 1);
	struct proc_status status;
	struct proc_map m;
	uint64_t field;

	if (!maps || !text || !copy)
		abort();
	memcpy(text, data, size);
	text[size] = 0;
	strcpy(copy, text);
	dotnet_text_scan_maps(copy, maps);
	strcpy(copy, text);
	for (char *cursor = copy; proc_map_next(&cursor, &m);)
		if (strlen(m.path) != m.path_len || m.start >= m.end)
			abort();
	if (!proc_status_parse(text, &status) && strlen(status.comm) >= PROC_COMM_BYTES)
		abort();
	proc_stat_field(text, 22, &field);
	cgroup_container_id(text, container, sizeof(container));
	dotnet_text_config_version(text, version, sizeof(version));
	free(copy);
	free(text);
	free(maps);
	return 0;
}
