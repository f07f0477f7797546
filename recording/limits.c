#include "recording/limits.h"

struct recording_limit_text recording_limit_text(enum recording_limit limit)
{
	static const struct recording_limit_text texts[LIMITS] = {
#define LIMITS_TEXT(id, key, cost, remedy) [LIMIT_##id] = {key, cost, remedy},
		RECORDING_LIMITS(LIMITS_TEXT)
#undef LIMITS_TEXT
	};

	return texts[limit];
}
