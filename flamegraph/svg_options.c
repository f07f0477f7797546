#include "flamegraph/svg_options.h"

#include "profile/profile.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <strings.h>

#define SVG_CELL_DEFAULT 0.602 /* width / size of usual fixed-width fonts */

struct svg_options svg_options_default(void)
{
	return (struct svg_options){
		.countname = "samples",
		.nametype = "Function:",
		.frame_height = 16,
		.font_size = 12,
		.font_width = SVG_CELL_DEFAULT,
		.min_width = 0.1,
		.factor = 1,
	};
}

void svg_options_set_event(struct svg_options *options, const char *event, bool has_period)
{
	bool is_time = profile_counts_time(event);

	options->unit = has_period && is_time ? SVG_UNIT_NS : SVG_UNIT_COUNT;
	options->countname = !has_period ? "samples" : is_time ? "ns" : event;
}

int svg_options_background(const struct svg_options *o, bool differential, char ret_from[8],
			   char ret_to[8])
{
	static const struct {
		const char *name, *from, *to;
	} gradients[] = {
		{"yellow", "#eeeeee", "#eeeeb0"}, {"blue", "#eeeeee", "#e0e0ff"},
		{"green", "#eef2ee", "#e0ffe0"},  {"grey", "#f8f8f8", "#e8e8e8"},
		{"white", "#ffffff", "#ffffff"},
	};
	static const char *const by_scheme[] = {
		[PALETTE_KIND] = "white",  [PALETTE_HOT] = "yellow",  [PALETTE_MEM] = "green",
		[PALETTE_IO] = "blue",     [PALETTE_WAKEUP] = "blue", [PALETTE_CHAIN] = "blue",
		[PALETTE_JAVA] = "yellow", [PALETTE_JS] = "yellow",   [PALETTE_PERL] = "yellow",
		[PALETTE_RED] = "grey",    [PALETTE_GREEN] = "grey",  [PALETTE_BLUE] = "grey",
		[PALETTE_AQUA] = "grey",   [PALETTE_YELLOW] = "grey", [PALETTE_PURPLE] = "grey",
		[PALETTE_ORANGE] = "grey",
	};
	const char *name = o->bgcolors ? o->bgcolors : by_scheme[o->palette.scheme];

	if (!o->bgcolors && differential)
		name = "grey"; /* because frames without change are white */
	for (size_t i = 0; i < sizeof(gradients) / sizeof(gradients[0]); i++) {
		if (!strcmp(gradients[i].name, name)) {
			memcpy(ret_from, gradients[i].from, 8);
			memcpy(ret_to, gradients[i].to, 8);
			return 0;
		}
	}
	if (strlen(name) != 7 || name[0] != '#' || strspn(name + 1, "0123456789abcdefABCDEF") != 6)
		return -EINVAL;
	memcpy(ret_to, name, 8);
	memcpy(ret_from, name, 8);
	return 0;
}

/* Whether the name is an EncName of XML 1.0, of an encoding that contains ASCII. */
static bool svg_encoding_is_fine(const char *e)
{
	static const char *const wide[] = {"UTF-16", "UTF-32", "UTF-7", "UCS",    "ISO-10646-UCS",
					   "EBCDIC", "IBM",    "CP0",   "UNICODE"};
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (!strncasecmp(e, wide[i], strlen(wide[i])))
			return false;
	return strspn(e, letters) && strlen(e) < 40 && strspn(e + 1, letters) + 1 <= strlen(e) &&
	       strspn(e, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") ==
		       strlen(e);
}

bool svg_options_encoding_is_known(const char *name)
{
	static const char *const known[] = {"UTF-8",   "US-ASCII", "ASCII",  "GB2312", "GBK",
					    "GB18030", "Big5",     "EUC-JP", "EUC-KR", "Shift_JIS",
					    "KOI8-R",  "KOI8-U",   "latin1"};
	static const char *const families[] = {"ISO-8859-", "windows-125"};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (!strcasecmp(name, known[i]))
			return true;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
		if (!strncasecmp(name, families[i], strlen(families[i])))
			return true;
	return false;
}

int svg_options_check(const struct svg_options *o, const char **ret_why)
{
	const char *why = NULL;
	char from[8], to[8];

	if (o->width && (o->width < SVG_WIDTH_MIN || o->width > SVG_WIDTH_MAX))
		why = "the width must be 200 to 100000 pixels";
	else if (!o->frame_height || o->frame_height > SVG_FRAME_HEIGHT_MAX)
		why = "the height of a frame must be 1 to 200 pixels";
	else if (!(o->font_size >= 1 && o->font_size <= SVG_FONT_SIZE_MAX))
		why = "the font size must be 1 to 100 pixels";
	else if (!(o->font_width >= 0.1 && o->font_width <= 10))
		why = "the font width must be 0.1 to 10 times the font size";
	else if (!(o->min_width >= 0 && o->min_width <= 1e6))
		why = "the minimum width must be a number of pixels, or of per cent as in 0.5%";
	else if (!(o->total >= 0 && o->total < 1e300))
		why = "the total must be a positive number";
	else if (!(fabs(o->factor) > 0 && fabs(o->factor) < 1e100))
		why = "the factor must be a number other than 0";
	else if (svg_options_background(o, false, from, to))
		why = "the background colours must be yellow, blue, green, grey, white or #rrggbb";
	else if (o->notes && strpbrk(o->notes, "<>"))
		why = "the notes must not contain < or >";
	else if (o->encoding && !svg_encoding_is_fine(o->encoding))
		why = "the encoding must be one that contains ASCII, such as UTF-8";
	if (why)
		*ret_why = why;
	return why ? -EINVAL : 0;
}
