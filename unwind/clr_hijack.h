/*
 * Returns that CoreCLR has hijacked. To stop a thread in managed code, the runtime puts the address of a stub of its own over the method's
 * return address and keeps the real one to itself. The method's `ret` leads to the stub, which pushes a word as room for the real
 * address, then the registers that functions preserve, has a worker fill that room and wait, and returns there. So no return address
 * is above the stub's frame: its CFI, which counts one, gives a CFA that is 8 too much behind the first push. The stub is found by its bytes, as
 * images have no symbol for it.
 * Source: dotnet/runtime, src/coreclr/vm/amd64/unixasmhelpers.S and asmhelpers.S, OnHijackTripThread; src/coreclr/vm/threadsuspend.cpp,
 * Thread::HijackThread and OnHijackWorker. Seen in .NET 8, 9 and 10.
 */
#ifndef UNWIND_CLR_HIJACK_H
#define UNWIND_CLR_HIJACK_H

#include "symbols/elf_file.h"
#include "unwind/code_bytes.h"

#include <stdbool.h>

#define CLR_HIJACK_NAMES_MAX ((uint64_t)64 << 10) /* bytes of dynamic symbols' names; runtimes have 4 to 8 KiB of them */
#define CLR_HIJACK_CODE_MAX ((uint64_t)64 << 20) /* bytes of code that are looked through; runtimes have 5 to 8 MiB of it */

/* Whether an image is a CoreCLR, libcoreclr.so or a single-file program: it exports what debuggers find it by. */
bool clr_hijack_is_runtime(const struct elf_file *elf);

/* Where the stub begins in an image's executable segments. 0; -ENOENT: there is none, or more than one; -ENOMEM. */
int clr_hijack_find(const struct code_bytes *bytes, const struct image_segment *segments, size_t nsegments, uint64_t *ret_file_off);

#endif
