#include "flamegraph/svg.h"

#include "base/cleanup.h"
#include "flamegraph/node_order.h"
#include "flamegraph/svg_data.h"
#include "flamegraph/svg_text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SVG_PAD 10
#define SVG_ELEMENT_PX 6.0 /* narrower frames share one path for each colour */
#define SVG_GAP_PX 0.5     /* between frames that are wide enough */
#define SVG_TOUCH_PX 0.05  /* frames at a smaller distance are neighbours */

/* The script is one function in three files; this order matters. */
static const char svg_js[] = {
/* clang-format off */
#include "flamegraph/svg_tree.js.inc"
#include "flamegraph/svg_draw.js.inc"
#include "flamegraph/svg_control.js.inc"
	/* clang-format on */
};
static const char svg_css[] = {
#include "flamegraph/svg.css.inc"
};
static const char svg_dark_css[] = {
#include "flamegraph/svg_dark.css.inc"
};

/* Nodes too narrow for an element of their own: one, or several neighbours within a pixel. */
struct svg_sliver {
	uint32_t first, last;
	uint32_t widest; /* gives the colour */
};

struct svg {
	const struct tree *tree;
	const struct svg_options *options;
	struct outbuf *out;
	struct layout layout;
	struct svg_data data;
	bool ascii, dark_too, legend, fluid;
	double width, height, top, bottom;
	double per_weight; /* pixels per unit of weight */
	double whole;      /* the weight of the full width */
	double least;      /* weight of the narrowest drawn frame */
	uint32_t depth;    /* of the deepest drawn frame */
	size_t drawn;
	VEC(struct svg_sliver) slivers;
	size_t *last_sliver; /* by depth: index + 1; 0: none */
};

static void svg_str(struct svg *s, const char *text)
{
	outbuf_str(s->out, text);
}

static void svg_text(struct svg *s, const char *text)
{
	svg_text_put(s->out, text, strlen(text), SIZE_MAX, s->ascii);
}

static void svg_number(struct svg *s, double x)
{
	svg_text_number(s->out, x);
}

/* Writes a space and name="number". */
static void svg_attr(struct svg *s, const char *name, double x)
{
	outbuf_char(s->out, ' ');
	svg_str(s, name);
	svg_str(s, "=\"");
	svg_number(s, x);
	outbuf_char(s->out, '"');
}

static void svg_attr_text(struct svg *s, const char *name, const char *text)
{
	outbuf_char(s->out, ' ');
	svg_str(s, name);
	svg_str(s, "=\"");
	svg_text(s, text);
	outbuf_char(s->out, '"');
}

static void svg_fill(struct svg *s, uint32_t color)
{
	if (color & PALETTE_CLASS)
		outbuf_printf(s->out, " class=\"c%u\"", color & ~PALETTE_CLASS);
	else
		outbuf_printf(s->out, " fill=\"#%06x\"", color);
}

static double svg_y(const struct svg *s, uint32_t depth)
{
	double fh = s->options->frame_height;

	return s->options->inverted ? s->top + depth * fh
				    : s->height - s->bottom - (depth + 1.0) * fh;
}

static const char *svg_title(const struct svg *s)
{
	if (s->options->title)
		return s->options->title;
	if (s->tree->in_order)
		return "Flame Chart";
	return s->options->inverted ? "Icicle Graph" : "Flame Graph";
}

/* Writes the notes as a comment. XML forbids "--" in comments. */
static void svg_comment(struct svg *s, const char *text)
{
	svg_str(s, "<!-- NOTES: ");
	for (const char *dashes; (dashes = strstr(text, "--")); text = dashes + 1) {
		svg_text_put(s->out, text, (size_t)(dashes + 1 - text), SIZE_MAX, s->ascii);
		outbuf_char(s->out, ' ');
	}
	svg_text(s, text);
	svg_str(s, " -->\n");
}

static void svg_head(struct svg *s)
{
	const struct svg_options *o = s->options;

	outbuf_printf(s->out, "<?xml version=\"1.0\" encoding=\"%s\" standalone=\"yes\"?>\n",
		      o->encoding ? o->encoding : "UTF-8");
	outbuf_printf(s->out,
		      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"profcpu\" width=\"%.0f\" "
		      "height=\"%.0f\" "
		      "viewBox=\"0 0 %.0f %.0f\"",
		      s->width, s->height, s->width, s->height);
	svg_attr(s, "font-size", o->font_size);
	svg_attr_text(s, "font-family",
		      o->fonttype ? o->fonttype
				  : "ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace");
	svg_str(s, ">\n");
	if (o->notes)
		svg_comment(s, o->notes);
	svg_str(s, "<title>");
	svg_text(s, svg_title(s));
	svg_str(s, "</title>\n<style>\n");
	outbuf_put(s->out, svg_css, sizeof(svg_css));
	if (!o->fonttype)
		svg_str(s, ".profcpu .ui{font-family:system-ui,-apple-system,'Segoe UI','DejaVu "
			   "Sans',sans-serif}\n");
	if (o->palette.scheme == PALETTE_KIND)
		palette_css(s->out, s->dark_too);
	if (s->dark_too)
		outbuf_put(s->out, svg_dark_css, sizeof(svg_dark_css));
	svg_str(s, "</style>\n");
}

static void svg_backdrop(struct svg *s)
{
	char from[8] = "#ffffff", to[8] = "#ffffff";

	(void)svg_options_background(s->options, s->tree->differential, from, to);
	if (strcmp(from, to) != 0)
		outbuf_printf(s->out,
			      "<defs><linearGradient id=\"profcpu-bg\" x1=\"0\" y1=\"0\" x2=\"0\" "
			      "y2=\"1\">"
			      "<stop offset=\"5%%\" stop-color=\"%s\"/><stop offset=\"95%%\" "
			      "stop-color=\"%s\"/>"
			      "</linearGradient></defs>\n",
			      from, to);
	outbuf_printf(s->out, "<rect class=\"bg\" width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n",
		      strcmp(from, to) != 0 ? "url(#profcpu-bg)" : to);
}

/* Writes a text. x is its left end, or its right end with the class "end". */
static void svg_put_text(struct svg *s, const char *class, double x, double y, const char *text)
{
	outbuf_printf(s->out, "<text class=\"%s\"", class);
	svg_attr(s, "x", x);
	svg_attr(s, "y", y);
	outbuf_char(s->out, '>');
	svg_text(s, text);
	svg_str(s, "</text>\n");
}

static void svg_legend_entry(struct svg *s, const char *word, uint32_t color, bool first)
{
	svg_str(s, first ? "<tspan" : "<tspan dx=\"16\"");
	svg_fill(s, color);
	svg_str(s, ">");
	svg_text(s, "\xe2\x96\xa0"); /* black square */
	svg_str(s, "</tspan> ");
	svg_text(s, word);
}

/* Writes the legend: the colours, and the share of self weight of each kind of code. */
static void svg_legend(struct svg *s)
{
	double self[PALETTE_SLOTS] = {0};
	bool seen[PALETTE_SLOTS] = {false}, first = true;

	outbuf_printf(s->out,
		      "<text class=\"ui muted legend\" text-anchor=\"end\" x=\"%.0f\" y=\"%.1f\">",
		      s->width - SVG_PAD, s->top - s->options->font_size * 0.9);
	if (s->tree->differential) {
		svg_legend_entry(s, s->options->more ? s->options->more : "more than before",
				 s->options->negate ? 0x6969ff : 0xff6969, true);
		svg_legend_entry(s, s->options->less ? s->options->less : "less than before",
				 s->options->negate ? 0xff6969 : 0x6969ff, false);
		svg_str(s, "</text>\n");
		return;
	}
	for (uint32_t i = 0; i < s->tree->nodes.len; i++) {
		enum palette_slot slot = palette_node_slot(s->tree, i);

		self[slot] += (double)s->tree->nodes.v[i].self;
		seen[slot] |= s->tree->nodes.v[i].total > 0;
	}
	svg_str(s, "<title>share of the weight whose innermost frame is of this kind</title>");
	for (unsigned slot = 0; slot < PALETTE_SLOTS; slot++) {
		double share = 100 * self[slot] / (double)s->tree->nodes.v[TREE_ROOT].total;
		char word[64];

		if (!seen[slot] || slot == PALETTE_THREAD || slot == PALETTE_ALL)
			continue;
		snprintf(word, sizeof(word), share > 0 && share < 0.05 ? "%s <0.1%%" : "%s %.1f%%",
			 palette_slot_words[slot], share);
		svg_legend_entry(s, word,
				 PALETTE_CLASS | (slot * PALETTE_SHADES + PALETTE_SHADES / 2),
				 first);
		first = false;
	}
	svg_str(s, "</text>\n");
}

static void svg_amount(struct svg *s, double weight)
{
	double shown = weight / s->tree->scale * s->options->factor;

	if (s->options->unit == SVG_UNIT_NS) {
		svg_text_time(s->out, shown);
		return;
	}
	svg_text_count(s->out, shown);
	outbuf_char(s->out, ' ');
	svg_text(s, s->options->countname);
}

/* Writes "name (12 samples, 3.45%)"; differential pictures add the change of self weight. */
static void svg_tip(struct svg *s, uint32_t node)
{
	const struct tree_node *n = &s->tree->nodes.v[node];
	bool root = node == TREE_ROOT;

	svg_str(s, "<title>");
	svg_text_put(s->out, intern_text(&s->tree->names, n->name),
		     intern_len(&s->tree->names, n->name), SIZE_MAX, s->ascii);
	svg_str(s, " (");
	svg_amount(s, root ? s->whole : (double)n->total);
	if (root)
		svg_str(s, ", 100%");
	else
		outbuf_printf(s->out, ", %.2f%%", 100 * (double)n->total / s->whole);
	if (s->tree->differential && !root) {
		double delta = (s->options->negate ? -1 : 1) * tree_delta_self(s->tree, node);

		outbuf_printf(s->out, delta > 0 ? "; +%.2f%%" : "; %.2f%%",
			      delta == 0 ? 0 : 100 * delta / s->whole);
	}
	svg_str(s, ")</title>");
}

static uint32_t svg_color(const struct svg *s, uint32_t node)
{
	double delta = tree_delta_self(s->tree, node);

	if (s->tree->differential)
		return palette_delta_color(s->options->negate ? -delta : delta, s->data.max_delta);
	return s->data.labels.v[s->data.label_of[node]].color;
}

/* Writes the name of a frame as far as it fits. */
static void svg_label(struct svg *s, uint32_t node, size_t cells)
{
	uint32_t id = s->tree->nodes.v[node].name;
	const char *name = intern_text(&s->tree->names, id);
	size_t len = intern_len(&s->tree->names, id), at = 0;

	if (palette_node_slot(s->tree, node) == PALETTE_MANAGED)
		at = svg_text_managed_start(name, len, cells);
	if (at) {
		svg_str(s, "..");
		cells -= 2;
	}
	svg_text_put(s->out, name + at, len - at, cells, s->ascii);
}

static void svg_element(struct svg *s, uint32_t node, double x, double width)
{
	const struct tree_node *n = &s->tree->nodes.v[node];
	double y = svg_y(s, n->depth), fh = s->options->frame_height;
	double cells = (width - 6) / (s->options->font_size * s->options->font_width);
	uint32_t color = svg_color(s, node);

	svg_str(s, "<g>");
	if (cells >= 3)
		svg_tip(s, node);
	svg_str(s, "<rect");
	svg_fill(s, color);
	svg_attr(s, "x", x);
	svg_attr(s, "y", y);
	svg_attr(s, "width", width - SVG_GAP_PX);
	svg_attr(s, "height", fh - 1);
	svg_str(s, "/>");
	if (cells >= 3) {
		/* The style sheet knows the colours of classes. */
		svg_str(s, !(color & PALETTE_CLASS) && palette_needs_white(color)
				   ? "<text class=\"light\""
				   : "<text");
		svg_attr(s, "x", x + 3);
		svg_attr(s, "y", y + fh / 2 - 0.5 + s->options->font_size * 0.35);
		outbuf_char(s->out, '>');
		svg_label(s, node, (size_t)cells);
		svg_str(s, "</text>");
	}
	svg_str(s, "</g>\n");
}

static double svg_node_width(const struct svg *s, uint32_t node)
{
	return (node == TREE_ROOT ? s->whole : (double)s->tree->nodes.v[node].total) *
	       s->per_weight;
}

static double svg_node_x(const struct svg *s, uint32_t node)
{
	return SVG_PAD + (double)s->tree->nodes.v[node].start * s->per_weight;
}

static int svg_compare_slivers(const void *a, const void *b, void *svg)
{
	const struct svg_sliver *v = a, *w = b;
	const struct svg *s = svg;
	const struct tree_node *x = &s->tree->nodes.v[v->first], *y = &s->tree->nodes.v[w->first];
	uint32_t xc = svg_color(s, v->widest), yc = svg_color(s, w->widest);

	if (xc != yc)
		return xc < yc ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

static void svg_slivers(struct svg *s)
{
	double fh = s->options->frame_height;

	if (!s->slivers.len)
		return;
	qsort_r(s->slivers.v, s->slivers.len, sizeof(*s->slivers.v), svg_compare_slivers, s);
	for (size_t i = 0; i < s->slivers.len; i++) {
		const struct svg_sliver *v = &s->slivers.v[i];
		uint32_t color = svg_color(s, v->widest);
		double x = svg_node_x(s, v->first),
		       width = svg_node_x(s, v->last) + svg_node_width(s, v->last) - x;

		width -= width > 2 ? SVG_GAP_PX : 0;
		if (!i || color != svg_color(s, v[-1].widest)) {
			svg_str(s, i ? "\"/>\n<path" : "<path");
			svg_fill(s, color);
			svg_str(s, " d=\"");
		}
		outbuf_char(s->out, 'M');
		svg_number(s, x);
		outbuf_char(s->out, ' ');
		svg_number(s, svg_y(s, s->tree->nodes.v[v->first].depth));
		outbuf_char(s->out, 'h');
		svg_number(s, width);
		outbuf_char(s->out, 'v');
		svg_number(s, fh - 1);
		svg_str(s, "h-");
		svg_number(s, width);
		outbuf_char(s->out, 'z');
	}
	svg_str(s, "\"/>\n");
}

static bool svg_is_drawn(const struct svg *s, uint32_t node)
{
	uint64_t total = s->tree->nodes.v[node].total;

	return total >= s->data.cut && (double)total >= s->least;
}

static int svg_add_sliver(struct svg *s, uint32_t node, double x, double width)
{
	size_t *last = &s->last_sliver[s->tree->nodes.v[node].depth];
	struct svg_sliver *v = *last ? &s->slivers.v[*last - 1] : NULL;

	if (v && x - (svg_node_x(s, v->last) + svg_node_width(s, v->last)) < SVG_TOUCH_PX &&
	    x + width - svg_node_x(s, v->first) <= 1) {
		if (width > svg_node_width(s, v->widest))
			v->widest = node;
		v->last = node;
		return 0;
	}
	if (vec_push(&s->slivers, ((struct svg_sliver){node, node, node})))
		return -ENOMEM;
	*last = s->slivers.len;
	return 0;
}

/* Writes the static picture, for viewers that run no script and until the script runs. */
static int svg_frames(struct svg *s)
{
	s->last_sliver = calloc((size_t)s->depth + 1, sizeof(*s->last_sliver));
	if (!s->last_sliver)
		return -ENOMEM;
	outbuf_printf(s->out, "<g class=\"frames%s\">\n",
		      s->options->palette.scheme == PALETTE_KIND && !s->tree->differential
			      ? " kinds"
			      : "");
	for (size_t i = 0; i < s->layout.n; i++) {
		uint32_t node = s->layout.order[i];
		double width = svg_node_width(s, node);
		double x = svg_node_x(s, node);

		if (!svg_is_drawn(s, node))
			continue;
		s->drawn++;
		if (width >= SVG_ELEMENT_PX)
			svg_element(s, node, x, width);
		else if (svg_add_sliver(s, node, x, width))
			return -ENOMEM;
	}
	svg_slivers(s);
	svg_str(s, "</g>\n");
	return 0;
}

/* Writes the data for the script, and the script. */
static int svg_data_block(struct svg *s)
{
	const struct svg_options *o = s->options;

	svg_str(s, "<metadata class=\"profcpu-data\"");
	svg_attr_text(s, "data-countname", o->countname);
	svg_attr_text(s, "data-nametype", o->nametype);
	outbuf_printf(s->out,
		      " data-frames=\"%zu\" data-fluid=\"%d\" data-inverted=\"%d\" data-ns=\"%d\" "
		      "data-kinds=\"%d\" "
		      "data-diff=\"%d\" data-negate=\"%d\" data-frame-height=\"%u\"",
		      s->data.nodes, s->fluid, o->inverted, o->unit == SVG_UNIT_NS,
		      o->palette.scheme == PALETTE_KIND, s->tree->differential, o->negate,
		      o->frame_height);
	outbuf_printf(s->out,
		      " data-font-size=\"%.17g\" data-cell=\"%.17g\" data-top=\"%.17g\" "
		      "data-bottom=\"%.17g\" "
		      "data-unit=\"%llu\" data-factor=\"%.17g\" data-whole=\"%.17g\" "
		      "data-max-delta=\"%.17g\" "
		      "data-min-width=\"%.17g\" data-min-share=\"%.17g\" data-cut=\"%llu\"",
		      o->font_size, o->font_size * o->font_width, s->top, s->bottom,
		      (unsigned long long)s->data.unit, o->factor / s->tree->scale, s->whole,
		      s->data.max_delta, o->min_width_percent ? 0 : o->min_width,
		      o->min_width_percent ? o->min_width / 100 : 0,
		      (unsigned long long)s->data.cut);
	svg_str(s, ">\n<desc>");
	svg_data_write_labels(s->tree, &s->data, s->out, s->ascii);
	svg_str(s, "</desc>\n<desc>");
	svg_data_write_colors(&s->data, s->out);
	svg_str(s, "</desc>\n<desc>");
	int r = svg_data_write_frames(s->tree, &s->layout, &s->data, s->out);

	svg_str(s, "</desc>\n</metadata>\n<script><![CDATA[\n");
	outbuf_put(s->out, svg_js, sizeof(svg_js));
	svg_str(s, "]]></script>\n");
	return r;
}

/* Computes all sizes from the options and the tree. */
static void svg_measure(struct svg *s)
{
	const struct svg_options *o = s->options;
	double total = (double)s->tree->nodes.v[TREE_ROOT].total;

	s->ascii = o->encoding && strcasecmp(o->encoding, "UTF-8") != 0;
	s->dark_too = !o->bgcolors;
	s->fluid = !o->width;
	s->legend = total > 0 && (o->palette.scheme == PALETTE_KIND || s->tree->differential);
	s->width = o->width ? o->width : SVG_WIDTH_DEFAULT;
	s->top = o->font_size * 3 + (s->legend || o->subtitle ? o->font_size * 2 : 0);
	s->bottom = o->font_size * 2 + SVG_PAD;
	s->whole = o->total * s->tree->scale > total ? o->total * s->tree->scale : total;
	s->per_weight = s->whole > 0 ? (s->width - 2 * SVG_PAD) / s->whole : 0;
	s->least = o->min_width_percent ? s->whole * o->min_width / 100
					: o->min_width / (s->per_weight > 0 ? s->per_weight : 1);
	for (uint32_t i = 0; i < s->tree->nodes.len; i++) {
		const struct tree_node *n = &s->tree->nodes.v[i];

		if (n->total && n->depth > s->depth && svg_is_drawn(s, i))
			s->depth = n->depth;
	}
	s->height = (s->depth + 1.0) * o->frame_height + s->top + s->bottom;
}

static int svg_document(struct svg *s)
{
	const struct svg_options *o = s->options;
	double fs = o->font_size;
	int r = 0;

	svg_head(s);
	svg_backdrop(s);
	if (s->whole > 0)
		r = svg_frames(s);
	svg_str(s, "<g class=\"header\">\n");
	svg_put_text(s, "ui title", SVG_PAD, fs * 2, svg_title(s));
	if (o->subtitle)
		svg_put_text(s, "ui muted subtitle", SVG_PAD, fs * 4.1, o->subtitle);
	if (s->legend)
		svg_legend(s);
	svg_str(s, "</g>\n");
	svg_put_text(s, "details", SVG_PAD, s->height - fs,
		     s->whole > 0 ? "" : "There are no samples to draw.");
	if (!r && s->whole > 0)
		r = svg_data_block(s);
	svg_str(s, "</svg>\n");
	return r;
}

/* Marks the frames above a "--", which are wakers in chain graphs. */
static void svg_mark_wakers(struct tree *t)
{
	for (size_t i = 1; i < t->nodes.len; i++) {
		const struct tree_node *parent = &t->nodes.v[t->nodes.v[i].parent];
		bool ruler = intern_len(&t->names, parent->name) == 2 &&
			     !memcmp(intern_text(&t->names, parent->name), "--", 2);

		if (ruler || parent->annotation == 'w')
			t->nodes.v[i].annotation = 'w';
	}
}

int svg_write(struct tree *t, const struct svg_options *options, struct outbuf *out,
	      struct svg_stats *ret_stats)
{
	struct svg s = {.tree = t, .options = options, .out = out};
	struct palette palette = options->palette;

	palette.known_kinds = !t->lines;
	if (palette.scheme == PALETTE_CHAIN)
		svg_mark_wakers(t);
	int r = node_order_make(t, &s.layout);

	if (!r)
		r = svg_data_make(t, &s.layout, &palette, &s.data);
	if (!r) {
		svg_measure(&s);
		r = svg_document(&s);
	}
	if (!r && ret_stats)
		*ret_stats = (struct svg_stats){s.drawn, s.data.nodes, s.data.cut};
	vec_free(&s.slivers);
	free(s.last_sliver);
	svg_data_free(&s.data);
	node_order_free(&s.layout);
	return r;
}
