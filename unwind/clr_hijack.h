/*
 * Finds the stub with which CoreCLR hijacks returns. To stop a thread in managed code, the runtime
 * overwrites the method's return address with the address of this stub. It keeps the real address
 * elsewhere.
 *
 * The method's `ret` then enters the stub. The stub pushes a word as room for the real address,
 * then the registers that functions preserve. A worker fills the room and waits, and the stub
 * returns there. So no return address lies above the stub's frame. Its CFI assumes one and gives a
 * CFA that is 8 too high after the first push. Images have no symbol for the stub, so we find it by
 * its bytes.
 *
 * Source: dotnet/runtime, src/coreclr/vm/amd64/unixasmhelpers.S and asmhelpers.S,
 * OnHijackTripThread; src/coreclr/vm/threadsuspend.cpp, Thread::HijackThread and OnHijackWorker.
 * Seen in .NET 8, 9 and 10.
 */
#ifndef UNWIND_CLR_HIJACK_H
#define UNWIND_CLR_HIJACK_H

#include "elf/elf_file.h"
#include "unwind/code_bytes.h"

#include <stdbool.h>

/* Bytes of the names of dynamic symbols; runtimes have 4 to 8 KiB. */
#define CLR_HIJACK_NAMES_MAX ((uint64_t)64 << 10)
/* Bytes of code to search; runtimes have 5 to 8 MiB. */
#define CLR_HIJACK_CODE_MAX ((uint64_t)64 << 20)

/*
 * Whether an image is a CoreCLR: libcoreclr.so or a single-file program. They export the symbol by
 * which debuggers find the runtime.
 */
bool clr_hijack_is_runtime(const struct elf_file *elf);

/*
 * The start of the stub in an image's executable segments. Returns 0; -ENOENT: none or several;
 * -E2BIG: searching takes too much work (elf/budget.h); -ENOMEM.
 */
int clr_hijack_find(const struct code_bytes *bytes, const struct elf_segment *segments,
		    size_t nsegments, uint64_t *ret_file_off);

#endif
