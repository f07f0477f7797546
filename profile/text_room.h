/*
 * Room for names in text outputs. A target chooses its names and the depth of its stacks, and each
 * sample and each distinct stack is written whole. So without a limit, outputs can be 500 times as
 * large as perf.data, which has 8 bytes for a frame.
 */
#ifndef PROFILE_TEXT_ROOM_H
#define PROFILE_TEXT_ROOM_H

#include "profile/profile.h"

/*
 * Names, modules and source lines of the frames of all samples may have TEXT_ROOM_FRAME bytes a
 * frame, and TEXT_ROOM_FIRST more. A name or a module of TEXT_ROOM_SHORT bytes is never cut.
 */
#define TEXT_ROOM_FIRST ((uint64_t)16 << 20)
#define TEXT_ROOM_FRAME 512u
#define TEXT_ROOM_SHORT 256u

/*
 * Cuts the longest texts of the profile until all fit, if they do not; see profile_cut_texts. Call
 * it after the last sample. 0 or -ENOMEM.
 */
int text_room_fit(struct profile *p);

#endif
