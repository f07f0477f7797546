#include "symbols/store/jit_damage.h"

static const char *const jit_damage_words[JIT_DAMAGE_KINDS][2] = {
	[JIT_PERFMAP_BAD_LINES] = {"perfmap_bad_lines", "perf_map_bad_lines"},
	[JIT_PERFMAPS_REFUSED] = {"perfmaps_refused", "perf_maps_refused"},
	[JIT_PERFMAP_BYTES_CUT] = {"perfmap_bytes_cut", "perf_map_bytes_left_out"},
	[JIT_CAPTURE_BAD_LINES] = {"capture_bad_lines", "recorded_bad_lines"},
	[JIT_CAPTURES_CUT] = {"captures_cut", "recorded_cut_off"},
	[JIT_DUMPS_REFUSED] = {"jitdumps_refused", "jitdumps_refused"},
	[JIT_DUMPS_EARLY] = {"jitdumps_early", "jitdumps_stopped_early"},
	[JIT_DUMPS_UNTIMED] = {"jitdumps_untimed", "jitdumps_without_times"},
	[JIT_DUMP_BAD_RECORDS] = {"jitdump_bad", "jitdump_bad_records"},
	[JIT_DUMP_BAD_TABLES] = {"jitdump_bad_tables", "jitdump_bad_line_tables"},
	[JIT_METHODS_LEFT_OUT] = {"methods_left_out", "methods_left_out"},
};

const char *jit_damage_store_key(enum jit_damage_kind kind)
{
	return jit_damage_words[kind][0];
}

const char *jit_damage_report_key(enum jit_damage_kind kind)
{
	return jit_damage_words[kind][1];
}

void jit_damage_add(struct jit_damage *to, const struct jit_damage *more)
{
	for (int i = 0; i < JIT_DAMAGE_KINDS; i++)
		to->n[i] += more->n[i];
}
