/* Version of profcpu, in `profcpu version` and in recordings. */
#ifndef BASE_VERSION_H
#define BASE_VERSION_H

#define PROFCPU_VERSION "0.1.0"

#endif
