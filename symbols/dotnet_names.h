/* Which files are part of .NET itself, by their names. */
#ifndef SYMBOLS_DOTNET_NAMES_H
#define SYMBOLS_DOTNET_NAMES_H

#include <stdbool.h>

/* The runtime's own native libraries and host programs, by the last part of their path. */
bool dotnet_names_is_native(const char *base);

/* Files that only the .NET runtime has beside those: its dump writer and debugging libraries. */
bool dotnet_names_is_tool(const char *base);

/* Assemblies of the framework ("System.Linq.dll"), and what is named like them ("System.Linq.pdb"), by the last part. */
bool dotnet_names_is_framework(const char *base);

#endif
