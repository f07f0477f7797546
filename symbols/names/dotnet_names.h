/* Recognizes files of .NET itself by their names. */
#ifndef SYMBOLS_NAMES_DOTNET_NAMES_H
#define SYMBOLS_NAMES_DOTNET_NAMES_H

#include <stdbool.h>

/* base is the last part of a path. */

/* The runtime's own native libraries and host programs. */
bool dotnet_names_is_native(const char *base);

/* Other native files of the runtime: its dump writer and debugging libraries. */
bool dotnet_names_is_tool(const char *base);

/* Assemblies of the framework ("System.Linq.dll") and their symbol files ("System.Linq.pdb"). */
bool dotnet_names_is_framework(const char *base);

#endif
