#include "flamegraph/tree_profile.h"

#include "base/cleanup.h"
#include "base/hashmap.h"
#include "base/outbuf.h"

#include <errno.h>
#include <string.h>

/* The name and kind that a frame or thread of the profile has in the tree. */
struct tree_label {
	uint32_t name; /* PROFILE_NONE: not made yet */
	uint8_t kind;
};

struct tree_memo {
	uint32_t comm, node; /* comm TREE_ROOT: the stack has no node yet */
};

struct tree_builder {
	struct tree *tree;
	struct profile *profile;
	const struct tree_options *options;
	uint32_t event;
	bool has_stacks; /* some event has them, so the default is such an event */
	struct tree_label *frames, *threads;
	struct tree_memo *memo; /* by stack: its node under its first thread name */
	struct hashmap nodes;   /* comm node and stack -> node, for further thread names */
	VEC(uint32_t) stack;    /* scratch */
};

/* Makes a frame's name with its grade mark, and with its source line as "name:file.c:12". */
static int tree_frame_name(struct tree_builder *b, const struct profile_frame *f,
			   uint32_t *ret_name)
{
	uint32_t len;
	const char *text = profile_text_of(b->profile, f->name, &len);
	struct outbuf buf = outbuf_to(-1);

	if (f->srcline == PROFILE_NONE && !f->grade)
		return tree_name(b->tree, text, len, ret_name);
	outbuf_put(&buf, text, len);
	outbuf_str(&buf, profile_grade_mark(f->grade));
	if (f->srcline != PROFILE_NONE) {
		outbuf_char(&buf, ':');
		text = profile_text_of(b->profile, f->srcline, &len);
		outbuf_put(&buf, text, len);
	}
	int r = buf.error ? buf.error : tree_name(b->tree, buf.data, buf.len, ret_name);

	outbuf_close(&buf);
	return r;
}

static int tree_frame_label(struct tree_builder *b, uint32_t frame, struct tree_label *ret_label)
{
	struct tree_label *l = &b->frames[frame];

	if (l->name == PROFILE_NONE) {
		const struct profile_frame *f = profile_frame_of(b->profile, frame);
		uint32_t name;
		int r = tree_frame_name(b, f, &name);

		if (r)
			return r;
		*l = (struct tree_label){name,
					 (uint8_t)(f->kind | (f->inlined ? TREE_INLINED : 0))};
	}
	*ret_label = *l;
	return 0;
}

static int tree_thread_label(struct tree_builder *b, uint32_t thread, struct tree_label *ret_label)
{
	struct tree_label *l = &b->threads[thread];

	if (l->name == PROFILE_NONE) {
		const struct profile_thread *t = profile_thread_of(b->profile, thread);
		uint32_t len, name;
		const char *comm = profile_text_of(b->profile, t->comm, &len);
		struct outbuf text = outbuf_to(-1);

		if (t->other_pid_ns)
			outbuf_str(&text, PROFILE_OTHER_PID_NS);
		else
			outbuf_put(&text, comm, len);
		if (b->options->with_tids)
			outbuf_printf(&text, "-%d/%d", t->pid, t->tid);
		int r = text.error ? text.error
				   : tree_name(b->tree, text.len ? text.data : "", text.len, &name);

		outbuf_close(&text);
		if (r)
			return r;
		*l = (struct tree_label){name, FRAME_NATIVE | TREE_COMM};
	}
	*ret_label = *l;
	return 0;
}

static int tree_step(struct tree_builder *b, uint32_t frame, uint32_t *node)
{
	struct tree_label label;
	int r = tree_frame_label(b, frame, &label);

	return r ? r : tree_child_of_name(b->tree, *node, label.name, label.kind, node);
}

/* The known node of a stack under a thread's name; TREE_ROOT: none. */
static uint32_t tree_known(const struct tree_builder *b, uint32_t comm, uint32_t stack)
{
	if (b->tree->in_order || b->memo[stack].comm == TREE_ROOT)
		return TREE_ROOT;
	if (b->memo[stack].comm == comm)
		return b->memo[stack].node;
	const uint32_t *node = hashmap_get(&b->nodes, (uint64_t)comm << 32 | stack);

	return node ? *node : TREE_ROOT;
}

static int tree_remember(struct tree_builder *b, uint32_t comm, uint32_t stack, uint32_t node)
{
	if (b->tree->in_order || tree_is_cut(b->tree, node))
		return 0;
	if (b->memo[stack].comm != TREE_ROOT) {
		/* An entry of the table takes as much memory as a node. */
		if (!tree_take_node(b->tree))
			return 0;
		return hashmap_put(&b->nodes, (uint64_t)comm << 32 | stack, node);
	}
	b->memo[stack] = (struct tree_memo){comm, node};
	return 0;
}

/*
 * Finds or adds the node of a stack under a thread's name. Goes up the trie to a stack with a known
 * node, then down again.
 */
static int tree_node_of_stack(struct tree_builder *b, uint32_t comm, uint32_t stack,
			      uint32_t *ret_node)
{
	uint32_t node = comm;
	int r;

	b->stack.len = 0;
	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(b->profile, stack)) {
		uint32_t known = tree_known(b, comm, stack);

		if (known != TREE_ROOT) {
			node = known;
			break;
		}
		if (vec_push(&b->stack, stack))
			return -ENOMEM;
	}
	while (b->stack.len) {
		stack = b->stack.v[--b->stack.len];
		r = tree_step(b, profile_stack_frame(b->profile, stack), &node);
		if (!r)
			r = tree_remember(b, comm, stack, node);
		if (r)
			return r;
	}
	*ret_node = node;
	return 0;
}

/* Adds the frames from the leaf to the root, then the thread's name. */
static int tree_node_reversed(struct tree_builder *b, struct tree_label comm, uint32_t stack,
			      uint32_t *ret_node)
{
	uint32_t node = TREE_ROOT;

	for (; stack != PROFILE_STACK_EMPTY; stack = profile_stack_parent(b->profile, stack)) {
		int r = tree_step(b, profile_stack_frame(b->profile, stack), &node);

		if (r)
			return r;
	}
	return tree_child_of_name(b->tree, node, comm.name, comm.kind, ret_node);
}

/* part: the name of a node above the thread's name; NULL: none. */
static int tree_put(struct tree_builder *b, const char *part, uint32_t event, uint32_t thread,
		    uint32_t stack, uint64_t weight)
{
	struct tree_label comm;
	uint32_t node = TREE_ROOT;

	const struct profile_event *e = profile_event_of(b->profile, event);

	if (b->event == PROFILE_NONE && !e->off_cpu && !(e->stackless && b->has_stacks))
		b->event = event;
	if (event != b->event)
		return 0;
	stack = idle_stack(b->options->idle, event, thread, stack);
	int r = tree_thread_label(b, thread, &comm);

	if (!r && b->options->reverse)
		r = tree_node_reversed(b, comm, stack, &node);
	else if (!r) {
		if (part)
			r = tree_child(b->tree, TREE_ROOT, part, strlen(part), FRAME_LABEL, &node);
		if (!r)
			r = tree_child_of_name(b->tree, node, comm.name, comm.kind, &node);
		if (!r)
			r = tree_node_of_stack(b, node, stack, &node);
	}
	if (!r)
		tree_add(b->tree, node, weight);
	return r;
}

static int tree_put_sample(void *ctx, const struct profile_sample *s)
{
	return tree_put(ctx, NULL, s->event, s->thread, s->stack, s->weight);
}

static int tree_put_groups(struct tree_builder *b)
{
	const struct profile_group *groups = b->options->groups;
	size_t n = b->options->ngroups;
	int r = 0;

	if (!groups)
		groups = profile_groups(b->profile, &n);
	for (size_t i = 0; !r && i < n; i++)
		r = tree_put(
			b, b->options->parts ? b->options->part_names[b->options->parts[i]] : NULL,
			groups[i].event, groups[i].thread, groups[i].stack, groups[i].weight);
	return r;
}

static struct tree_label *tree_labels_new(uint32_t n)
{
	struct tree_label *labels = malloc(((size_t)n + 1) * sizeof(*labels));

	for (uint32_t i = 0; labels && i < n; i++)
		labels[i] = (struct tree_label){.name = PROFILE_NONE};
	return labels;
}

int tree_profile_make(struct tree *t, struct profile *profile, const struct tree_options *options)
{
	int r = tree_init(t, options->in_order);

	if (r)
		return r;
	tree_limit(t, options->memory_max);
	struct tree_builder b = {
		.tree = t,
		.profile = profile,
		.options = options,
		.event = options->event,
		.has_stacks = profile_has_stacks(profile),
		.frames = tree_labels_new(profile_nframes(profile)),
		.threads = tree_labels_new(profile_nthreads(profile)),
		.memo = calloc(profile_nstacks(profile), sizeof(*b.memo)),
	};

	if (!b.frames || !b.threads || !b.memo)
		r = -ENOMEM;
	else if (options->in_order)
		r = profile_each_sample(profile, tree_put_sample, &b);
	else
		r = tree_put_groups(&b);
	t->event = b.event;
	free(b.frames);
	free(b.threads);
	free(b.memo);
	hashmap_free(&b.nodes);
	vec_free(&b.stack);
	if (!r)
		r = tree_finish(t);
	if (r)
		tree_free(t);
	return r;
}
