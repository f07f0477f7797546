/* The code of one image: the rules by which frames in it lead to their callers, and its bytes, by file offset as mappings have it. */
#ifndef UNWIND_IMAGE_CODE_H
#define UNWIND_IMAGE_CODE_H

#include "unwind/rule.h"

struct image_code;

/* Takes fd where it succeeds. A file that is neither ELF nor a .NET image is one without rules. 0; -ENOMEM; -errno. */
int image_code_open(int fd, struct image_code **ret_code);

/* An ELF image in memory that stays (our vdso). 0; -EBADMSG; -ENOMEM; -errno. */
int image_code_from_memory(const void *data, size_t len, struct image_code **ret_code);

void image_code_free(struct image_code *c);

/* The rule at an offset. 0, with kind UNWIND_NONE where the image has none; -ENOMEM. */
int image_code_rule(struct image_code *c, uint64_t file_off, struct unwind_rule *ret_rule);

/* Whether it is a runtime that hijacks returns, so that there are rules of kind UNWIND_HIJACK. */
bool image_code_hijacks(const struct image_code *c);

/* As walk_source.step. Not for rules of kind UNWIND_HIJACK. */
int image_code_step(struct image_code *c, uint64_t file_off, struct unwind_regs *regs, const struct unwind_memory *memory,
		    bool *ret_signal);

/* Up to len bytes from an offset on; how many there were. */
size_t image_code_read(const struct image_code *c, uint64_t file_off, void *buf, size_t len);

#endif
