/* SVG pictures: positions of frames, colours, names, and the packed whole tree. */
#include "flamegraph/folded.h"
#include "flamegraph/node_order.h"
#include "flamegraph/svg.h"
#include "flamegraph/svg_data.h"
#include "flamegraph/svg_text.h"
#include "flamegraph/tree_profile.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void folded_tree(struct tree *t, const char *text, bool in_order)
{
	const struct tree_options options = {.event = PROFILE_NONE, .in_order = in_order};
	struct parse_error err;

	assert_int_equal(folded_read_tree_text(t, text, strlen(text), &options, &err), 0);
}

static const char *name_of(const struct tree *t, uint32_t node)
{
	return intern_text(&t->names, t->nodes.v[node].name);
}

static void test_children_lie_in_the_order_of_their_names(void **state)
{
	static const char *const text[] = {"p;b;z 2\np;a 3\np 1\np;b.cold 4\np;b;a 5\nZ 7\n",
					   "Z 7\np;b;a 5\np;b.cold 4\np;b;z 2\np 1\np;a 3\n"};
	static const char *const names[] = {"all", "Z", "p", "a", "b", "a", "z", "b.cold"};
	static const uint64_t starts[] = {0, 0, 7, 8, 11, 11, 16, 18};

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct tree t;
		struct layout l;

		folded_tree(&t, text[k], false);
		assert_int_equal(node_order_make(&t, &l), 0);
		assert_int_equal(l.n, 8);
		for (size_t i = 0; i < l.n; i++) {
			assert_string_equal(name_of(&t, l.order[i]), names[i]);
			assert_int_equal(t.nodes.v[l.order[i]].start, starts[i]);
		}
		node_order_free(&l);
		tree_free(&t);
	}
}

/* Many children in random order: searched by list, then by table, and sorted at the end. */
static void test_wide_trees_are_merged_and_sorted(void **state)
{
	char *text = malloc(4 << 20);
	size_t len = 0;
	struct tree t;
	struct layout l;

	(void)state;
	assert_non_null(text);
	for (unsigned i = 0; i < 20000; i++)
		len += (size_t)sprintf(text + len, "p;f%05u;g%u 1\n", i * 7919 % 5000, i % 3);
	folded_tree(&t, text, false);
	assert_int_equal(t.nodes.len, 2 + 5000 + 15000);
	assert_int_equal(node_order_make(&t, &l), 0);
	uint32_t last = 0;

	for (size_t i = 0; i < l.n; i++) {
		const struct tree_node *n = &t.nodes.v[l.order[i]];

		if (n->depth != 2)
			continue;
		assert_int_equal(n->total, 4);
		assert_true(!last || strcmp(name_of(&t, last), name_of(&t, l.order[i])) < 0);
		last = l.order[i];
	}
	node_order_free(&l);
	tree_free(&t);
	free(text);
}

static void test_a_flame_chart_is_not_sorted(void **state)
{
	struct tree t;
	struct layout l;

	(void)state;
	folded_tree(&t, "p;b 2\np;a 3\np 1\np;a 4\n", true);
	assert_int_equal(node_order_make(&t, &l), 0);
	assert_int_equal(l.n, 5);
	assert_string_equal(name_of(&t, l.order[2]), "b");
	assert_int_equal(t.nodes.v[l.order[3]].start, 2);
	assert_int_equal(t.nodes.v[l.order[4]].start, 6);
	node_order_free(&l);
	tree_free(&t);
}

static uint32_t color_of(struct palette *p, const char *name, enum palette_slot slot,
			 char annotation)
{
	const struct palette_frame f = {name, strlen(name), slot, annotation};
	uint32_t color;

	assert_int_equal(palette_color(p, &f, &color), 0);
	return color;
}

/* flamegraph.pl wrote these numbers to its palette.map. */
static void test_palettes_are_those_of_flamegraph_pl(void **state)
{
	static const struct {
		enum palette_scheme scheme;
		bool hash;
		const char *name;
		char annotation;
		uint32_t rgb;
	} known[] = {
#include "tests/unit/palette_known.inc"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct palette p = {.scheme = known[i].scheme, .by_hash = known[i].hash};

		assert_int_equal(color_of(&p, known[i].name, PALETTE_NATIVE, known[i].annotation),
				 known[i].rgb);
	}
	assert_int_equal(palette_delta_color(0, 10), 0xffffff);
	assert_int_equal(palette_delta_color(10, 10), 0xff0000);
	assert_int_equal(palette_delta_color(-10, 10), 0x0000ff);
	assert_int_equal(palette_delta_color(4, 10), 0xff7e7e);
}

static void test_kinds_have_their_own_classes(void **state)
{
	struct palette p = {.scheme = PALETTE_KIND};
	enum palette_scheme scheme;

	(void)state;
	for (unsigned slot = 0; slot < PALETTE_SLOTS; slot++) {
		uint32_t color = color_of(&p, "name", (enum palette_slot)slot, 0);

		assert_true(color & PALETTE_CLASS);
		assert_int_equal((color & ~PALETTE_CLASS) / PALETTE_SHADES, slot);
	}
	assert_int_equal(palette_scheme_find("aqua", &scheme), 0);
	assert_int_equal(scheme, PALETTE_AQUA);
	assert_int_equal(palette_scheme_find("mauve", &scheme), -ENOENT);
}

static double luminance(uint32_t color)
{
	static const double weights[] = {0.2126, 0.7152, 0.0722};
	double sum = 0;

	for (int i = 0; i < 3; i++) {
		double c = (color >> (16 - 8 * i) & 0xff) / 255.0;

		sum += weights[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
	}
	return sum;
}

static double contrast(uint32_t color, bool white)
{
	return white ? 1.05 / (luminance(color) + 0.05) : (luminance(color) + 0.05) / 0.05;
}

static void test_letters_are_readable_on_every_colour(void **state)
{
	static const char rule[] = "{fill:#";
	struct outbuf css = outbuf_to(-1);
	unsigned classes = 0;

	(void)state;
	for (uint32_t color = 0; color < 0x1000000; color += color % 3 ? 0x010203 : 0x000107)
		assert_true(contrast(color, palette_needs_white(color)) >= 4.5);
	for (int step = -100; step <= 100; step++) {
		uint32_t color = palette_delta_color(step, 100);

		assert_true(contrast(color, palette_needs_white(color)) >= 4.5);
	}
	/* Kinds have black letters in light mode, which is first, and white ones in dark mode. */
	palette_css(&css, true);
	outbuf_char(&css, '\0');
	for (const char *at = css.data; (at = strstr(at, rule)); classes++) {
		at += strlen(rule);
		assert_true(contrast((uint32_t)strtoul(at, NULL, 16),
				     classes >= PALETTE_SLOTS * PALETTE_SHADES) >= 4.5);
	}
	assert_int_equal(classes, 2 * PALETTE_SLOTS * PALETTE_SHADES);
	outbuf_close(&css);
}

static void test_palette_map_keeps_colours(void **state)
{
	static const char text[] = "b->rgb(1,2,3)\noperator->->rgb(4,5,6)\nbad\nx->rgb(1,2)\ny->"
				   "rgb(1,2,300)\nb->rgb(7,8,9)";
	struct palette_map m = {0};
	struct palette p = {.scheme = PALETTE_HOT, .map = &m};
	struct outbuf out = outbuf_to(-1);
	uint64_t skipped;

	(void)state;
	assert_int_equal(palette_map_parse(&m, text, strlen(text), &skipped), 0);
	assert_int_equal(skipped, 3);
	assert_int_equal(color_of(&p, "b", PALETTE_NATIVE, 0), 0x070809);
	assert_int_equal(color_of(&p, "operator->", PALETTE_NATIVE, 0), 0x040506);
	assert_int_equal(color_of(&p, "a", PALETTE_KERNEL, 'k'),
			 color_of(&p, "a", PALETTE_KERNEL, 'k'));
	assert_int_equal(palette_map_write(&m, &out), 0);
	outbuf_char(&out, 0);
	assert_memory_equal(out.data, "a_[k]->rgb(", 11);
	assert_non_null(strstr(out.data, ")\nb->rgb(7,8,9)\noperator->->rgb(4,5,6)\n"));
	outbuf_close(&out);
	palette_map_free(&m);
}

static void text_becomes(const char *text, size_t len, size_t cells, bool ascii, const char *want)
{
	struct outbuf out = outbuf_to(-1);

	svg_text_put(&out, text, len, cells, ascii);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, want);
	outbuf_close(&out);
}
#define BECOMES(text, cells, want) text_becomes(text, sizeof(text) - 1, cells, false, want)

static void test_names_cannot_leave_their_element(void **state)
{
	(void)state;
	BECOMES("a<b>&\"'", SIZE_MAX, "a&lt;b&gt;&amp;&quot;&#39;");
	BECOMES("]]>", SIZE_MAX, "]]&gt;");
	BECOMES("\x01\n\x7f", SIZE_MAX, "\xe2\x90\x81\xe2\x90\x8a\xe2\x90\xa1");
	BECOMES("a\0b", SIZE_MAX,
		"a\xe2\x90\x80"
		"b");
	/* Invalid UTF-8 gives one mark for each byte: a lone byte, an overlong form, a surrogate, a
	 * cut sequence. */
	BECOMES("\xff", SIZE_MAX, "\xef\xbf\xbd");
	BECOMES("\xc0\x80", SIZE_MAX, "\xef\xbf\xbd\xef\xbf\xbd");
	BECOMES("\xed\xa0\x80", SIZE_MAX, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
	BECOMES("\xe2\x82", SIZE_MAX, "\xef\xbf\xbd\xef\xbf\xbd");
	/* Right-to-left override, a line separator, U+FFFE, U+0085. */
	BECOMES("\xe2\x80\xae", SIZE_MAX, "\xef\xbf\xbd");
	BECOMES("\xe2\x80\xa8", SIZE_MAX, "\xef\xbf\xbd");
	BECOMES("\xef\xbf\xbe", SIZE_MAX, "\xef\xbf\xbd");
	BECOMES("\xc2\x85", SIZE_MAX, "\xef\xbf\xbd");
	/* Valid text stays. */
	BECOMES("\xce\xbb \xd7\xa9 \xf0\x9f\x94\xa5", SIZE_MAX,
		"\xce\xbb \xd7\xa9 \xf0\x9f\x94\xa5");
	BECOMES("\u2764\ufe0f a\ufe0f", SIZE_MAX, "\u2764\ufe0f a\ufffd");
	text_becomes("\xce\xbb\xf0\x9f\x94\xa5<", 7, SIZE_MAX, true, "&#x3bb;&#x1f525;&lt;");
}

static void test_names_are_cut_to_their_frames(void **state)
{
	(void)state;
	BECOMES("abcdef", 6, "abcdef");
	BECOMES("abcdef", 5, "abc..");
	BECOMES("abcdef", 3, "a..");
	BECOMES("abcdef", 2, "");
	BECOMES("a<b>cdef", 5, "a&lt;b..");
	/* Wide characters take two columns. */
	BECOMES("\xe5\x87\xbd\xe6\x95\xb0\xe5\x90\x8d", 6, "\xe5\x87\xbd\xe6\x95\xb0\xe5\x90\x8d");
	BECOMES("\xe5\x87\xbd\xe6\x95\xb0\xe5\x90\x8d", 5, "\xe5\x87\xbd..");
}

static void test_methods_are_shown_before_namespaces(void **state)
{
	static const struct {
		const char *name;
		size_t cells;
		const char *shown;
	} table[] = {
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 60, "System."},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 52, "System."},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 51, "Collections."},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 27, "Dictionary<T>."},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 26, "FindValue("},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 8, "FindValue("},
		{"System.Collections.Generic.Dictionary<T>.FindValue(T)", 7, "System."},
		/* Type arguments and arguments have no parts. */
		{"Ns.B<System.Int32>.C(System.String)", 20, "C("},
		{"Ns.B<System.Int32>.C(System.String)", 21, "B<"},
		{"Alpha.Beta.Gamma", 12, "Beta"},
		{"Namespace.Type..ctor()", 14, "Type..ctor("},
		{"Namespace.Type..ctor()", 10, ".ctor("},
		{"[dynamic] lambda_method6(Closure,object)", 12, "[dynamic]"},
		{"Ends.With.A.Dot.....", 10, "Dot."},
		{"A.M\xc3\xa9thode.Longue()", 10, "A."},
		{"(((((((((((((((((((", 10, "((("},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const char *name = table[i].name;
		size_t at = svg_text_managed_start(name, strlen(name), table[i].cells);

		assert_true(at < strlen(name));
		assert_int_equal(strncmp(name + at, table[i].shown, strlen(table[i].shown)), 0);
	}
}

static void test_numbers_have_separators_and_units(void **state)
{
	struct outbuf o = outbuf_to(-1);

	(void)state;
	svg_text_count(&o, 1234567);
	outbuf_char(&o, '|');
	svg_text_count(&o, 999);
	outbuf_char(&o, '|');
	svg_text_count(&o, -1000);
	outbuf_char(&o, '|');
	svg_text_number(&o, 12.5);
	outbuf_char(&o, '|');
	svg_text_number(&o, 0.049);
	outbuf_char(&o, '|');
	svg_text_number(&o, 3);
	outbuf_char(&o, '|');
	svg_text_time(&o, 1.5e9);
	outbuf_char(&o, '|');
	svg_text_time(&o, 2.5e6);
	outbuf_char(&o, '|');
	svg_text_time(&o, 40);
	outbuf_char(&o, 0);
	assert_string_equal(o.data, "1,234,567|999|-1,000|12.5|0.05|3|1.500 s|2.5 ms|40 ns");
	outbuf_close(&o);
}

/* Input as the script's reader accepts it. */
static uint64_t read_number(const char **p)
{
	uint64_t x = 0;
	unsigned shift = 0, c;

	do {
		assert_true(**p >= 63 && **p <= 126);
		c = (unsigned)(*(*p)++ - 63);
		x |= (uint64_t)(c & 31) << shift;
		shift += 5;
	} while (c & 32);
	return x;
}

static void test_the_packed_tree_is_the_tree(void **state)
{
	struct tree t;
	struct layout l;
	struct svg_data d;
	struct palette p = {.scheme = PALETTE_KIND};
	struct outbuf out = outbuf_to(-1);
	uint32_t open[8] = {0};
	uint64_t ends[9] = {0};
	size_t level = 0;

	(void)state;
	folded_tree(&t, "p 10\np;a;x 20\np;a;y 5000000000\np;b 30\nq;c;d;e 40\n", false);
	assert_int_equal(node_order_make(&t, &l), 0);
	assert_int_equal(svg_data_make(&t, &l, &p, &d), 0);
	assert_int_equal(d.unit, 10);
	assert_int_equal(d.nodes, t.nodes.len);
	assert_int_equal(svg_data_write_frames(&t, &l, &d, &out), 0);
	outbuf_char(&out, 0);
	const char *at = out.data;

	for (size_t i = 0; i < l.n; i++) {
		const struct tree_node *n = &t.nodes.v[l.order[i]];
		uint64_t head = read_number(&at);
		size_t depth = level - head / 4;
		uint64_t start = ends[depth] + (head & 1 ? read_number(&at) * d.unit : 0);
		uint64_t place = read_number(&at);
		uint64_t total =
			head & 2 ? t.nodes.v[open[depth - 1]].total : read_number(&at) * d.unit;

		assert_int_equal(depth, n->depth);
		assert_int_equal(start, n->start);
		assert_int_equal(total, n->total);
		assert_int_equal(place, d.labels.v[d.label_of[l.order[i]]].place);
		open[depth] = l.order[i];
		ends[depth] = start + total;
		ends[depth + 1] = start;
		level = depth + 1;
	}
	assert_int_equal(*at, 0);
	outbuf_close(&out);
	svg_data_free(&d);
	node_order_free(&l);
	tree_free(&t);
}

static void test_too_large_a_tree_loses_its_lightest_frames(void **state)
{
	struct tree t;
	struct layout l;
	struct svg_data d;
	struct palette p = {.scheme = PALETTE_KIND};
	uint32_t node = TREE_ROOT, heavy, id;

	(void)state;
	assert_int_equal(tree_init(&t, false), 0);
	assert_int_equal(tree_child(&t, TREE_ROOT, "heavy", 5, FRAME_NATIVE, &heavy), 0);
	tree_add(&t, heavy, 100);
	for (size_t i = 0; i < SVG_DATA_NODES_MAX + 1000; i++) {
		char name[24];
		int len = snprintf(name, sizeof(name), "f%zu", i % 1000);

		if (i % 1000 == 0) {
			assert_int_equal(tree_child(&t, TREE_ROOT, "g", 1, FRAME_NATIVE, &node), 0);
			for (size_t k = 0; k < i / 1000; k++)
				;
			assert_int_equal(
				tree_child(&t, node, name, (size_t)len, FRAME_NATIVE, &node), 0);
			snprintf(name, sizeof(name), "h%zu", i / 1000);
			assert_int_equal(
				tree_child(&t, node, name, strlen(name), FRAME_NATIVE, &node), 0);
		}
		assert_int_equal(tree_child(&t, node, name, strlen(name), FRAME_NATIVE, &id), 0);
		tree_add(&t, id, 1);
		node = id;
	}
	assert_int_equal(tree_finish(&t), 0);
	assert_int_equal(node_order_make(&t, &l), 0);
	assert_int_equal(svg_data_make(&t, &l, &p, &d), 0);
	assert_true(d.nodes <= SVG_DATA_NODES_MAX);
	assert_true(d.nodes > SVG_DATA_NODES_MAX / 2);
	assert_true(d.cut > 1);
	svg_data_free(&d);
	node_order_free(&l);
	tree_free(&t);
}

static char *drawn(const char *text, const struct svg_options *options)
{
	struct outbuf out = outbuf_to(-1);
	struct svg_stats stats;
	struct tree t;

	folded_tree(&t, text, false);
	assert_int_equal(svg_write(&t, options, &out, &stats), 0);
	outbuf_char(&out, 0);
	assert_int_equal(out.error, 0);
	tree_free(&t);
	return out.data;
}

static void test_narrow_frames_are_pruned_and_kept_for_zooming(void **state)
{
	struct svg_options o = svg_options_default();

	(void)state;
	o.min_width = 5;
	char *svg = drawn("p;wide 1000\np;narrow;deep;deeper 1\n", &o);

	assert_non_null(strstr(svg, "<title>wide (1,000 samples, 99.90%)</title>"));
	assert_null(strstr(svg, "<title>narrow"));
	assert_non_null(strstr(svg, "\nnnarrow\n"));
	/* Three levels of 16 pixels, and the rest. */
	assert_non_null(strstr(svg, "height=\"142\""));
	free(svg);
	o.min_width = 0.05;
	o.min_width_percent = true;
	svg = drawn("p;wide 1000\np;narrow;deep;deeper 1\n", &o);
	assert_non_null(strstr(svg, "height=\"174\""));
	free(svg);
}

static void test_idle_waits_have_their_own_entry(void **state)
{
	struct svg_options o = svg_options_default();

	(void)state;
	char *svg = drawn("p-1/1;main 10\np-1/1;[idle] 60\np-1/1;[no stack] 30\n", &o);

	assert_non_null(strstr(svg, "</tspan> unknown 30.0%<"));
	assert_non_null(strstr(svg, "</tspan> native 10.0%<"));
	assert_non_null(strstr(svg, "</tspan> idle 60.0%</text>"));
	assert_non_null(strstr(svg, "\nd[idle]\n"));
	free(svg);
	svg = drawn("p;main 10\n", &o);
	assert_null(strstr(svg, "</tspan> idle"));
	free(svg);
}

static void test_a_larger_total_leaves_a_gap(void **state)
{
	struct svg_options o = svg_options_default();

	(void)state;
	o.total = 2000;
	o.factor = 0.5;
	o.countname = "ms";
	char *svg = drawn("p 1000\n", &o);

	assert_non_null(strstr(svg, "<title>all (1,000 ms, 100%)</title>"));
	assert_non_null(strstr(svg, "<title>p (500 ms, 50.00%)</title>"));
	free(svg);
}

static void test_bad_options_are_refused(void **state)
{
	const struct svg_options good = svg_options_default();
	struct svg_options o = good;
	const char *why = NULL;

	(void)state;
	assert_int_equal(svg_options_check(&o, &why), 0);
#define REFUSED(field, value)                                           \
	do {                                                            \
		o = good;                                               \
		o.field = value;                                        \
		why = NULL;                                             \
		assert_int_equal(svg_options_check(&o, &why), -EINVAL); \
		assert_non_null(why);                                   \
	} while (0)
	REFUSED(width, 10);
	REFUSED(frame_height, 0);
	REFUSED(font_size, 0);
	REFUSED(font_width, 100);
	REFUSED(min_width, -1);
	REFUSED(total, -1);
	REFUSED(factor, 0);
	REFUSED(bgcolors, "#12345");
	REFUSED(bgcolors, "#12345g");
	REFUSED(notes, "a<b");
	REFUSED(encoding, "UTF-16");
	REFUSED(encoding, "1 2");
	o = good;
	o.encoding = "ISO-8859-1";
	assert_int_equal(svg_options_check(&o, &why), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children_lie_in_the_order_of_their_names),
		cmocka_unit_test(test_wide_trees_are_merged_and_sorted),
		cmocka_unit_test(test_a_flame_chart_is_not_sorted),
		cmocka_unit_test(test_palettes_are_those_of_flamegraph_pl),
		cmocka_unit_test(test_kinds_have_their_own_classes),
		cmocka_unit_test(test_letters_are_readable_on_every_colour),
		cmocka_unit_test(test_palette_map_keeps_colours),
		cmocka_unit_test(test_names_cannot_leave_their_element),
		cmocka_unit_test(test_names_are_cut_to_their_frames),
		cmocka_unit_test(test_methods_are_shown_before_namespaces),
		cmocka_unit_test(test_numbers_have_separators_and_units),
		cmocka_unit_test(test_the_packed_tree_is_the_tree),
		cmocka_unit_test(test_too_large_a_tree_loses_its_lightest_frames),
		cmocka_unit_test(test_narrow_frames_are_pruned_and_kept_for_zooming),
		cmocka_unit_test(test_idle_waits_have_their_own_entry),
		cmocka_unit_test(test_a_larger_total_leaves_a_gap),
		cmocka_unit_test(test_bad_options_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
