/* Parsers of texts that show a .NET runtime: memory maps and runtimeconfig.json. */
#ifndef CONTAINER_DOTNET_TEXT_H
#define CONTAINER_DOTNET_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define DOTNET_VERSION_BYTES 32
#define DOTNET_CONFIG_MAX ((size_t)1 << 20) /* bytes of a runtimeconfig.json */

/* Facts that the memory map alone shows. Unknown texts are empty. */
struct dotnet_maps {
	bool coreclr; /* libcoreclr.so is mapped and executable */
	/* /memfd:doublemapper is mapped: CoreCLR with W^X, also inside a single-file host */
	bool jit;
	/*
	 * /memfd:dotnet_ipc_created is mapped: CoreCLR or native AOT since .NET 10, with a
	 * diagnostic port
	 */
	bool port;
	/* Version of a shared runtime, by the folder of libcoreclr.so. */
	char version[DOTNET_VERSION_BYTES];
	char coreclr_dir[4096]; /* folder of libcoreclr.so, in the target's root */
};

/*
 * Adds what lines of /proc/PID/maps show to *maps, which is zeroed before the first ones. Changes
 * the lines, as proc_map_next does.
 */
void dotnet_text_scan_maps(char *lines, struct dotnet_maps *maps);

/*
 * Finds the version of the framework Microsoft.NETCore.App in the text of an application's
 * NAME.runtimeconfig.json. 0 or -ENOENT.
 */
int dotnet_text_config_version(const char *json, char *version, size_t cap);

#endif
