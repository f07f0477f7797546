#include "profcpu/managed/labels.h"

#include "symbols/names/managed_name.h"

#include <string.h>

/* A method that makes a type a method's name, which has the form that pictures show. */
#define LABELS_BEFORE "void [module] "
#define LABELS_AFTER "::X()"
#define LABELS_SHOWN ".X()"

/* Bytes of a type without the ranks of arrays at its end: "[]", "[,]". */
static size_t element_len(const char *name, size_t len)
{
	for (;;) {
		size_t n = len;

		if (!n || name[n - 1] != ']')
			return len;
		n--;
		while (n && (name[n - 1] == ',' || name[n - 1] == '*'))
			n--;
		if (!n || name[n - 1] != '[')
			return len;
		len = n - 1;
	}
}

void managed_label_type(const char *name, size_t len, struct outbuf *out)
{
	size_t element = element_len(name, len), tail = strlen(LABELS_SHOWN);
	struct outbuf method = outbuf_to(-1), shown = outbuf_to(-1);

	outbuf_str(&method, LABELS_BEFORE);
	outbuf_put(&method, name, element);
	outbuf_str(&method, LABELS_AFTER);
	if (!method.error)
		managed_name_full(method.data, method.len, &shown, NULL, NULL);
	if (!method.error && !shown.error && shown.len > tail &&
	    !memcmp(shown.data + shown.len - tail, LABELS_SHOWN, tail)) {
		outbuf_put(out, shown.data, shown.len - tail);
		outbuf_put(out, name + element, len - element);
	} else {
		outbuf_put(out, name, len);
	}
	outbuf_close(&method);
	outbuf_close(&shown);
}

void managed_label_owner(const struct profile *profile, uint32_t thread, struct outbuf *out)
{
	if (thread == PROFILE_NONE) {
		outbuf_str(out, MANAGED_OWNER_UNKNOWN);
		return;
	}
	const struct profile_thread *t = profile_thread_of(profile, thread);

	outbuf_printf(out, "[locked by %s-%d]", profile_text_of(profile, t->comm, NULL), t->tid);
}

static void put_collection(uint32_t label, struct outbuf *out)
{
	struct managed_collection c = managed_collection_of(label);

	if (c.generation == MANAGED_NO_GENERATION)
		outbuf_str(out, "[no collection known]");
	else
		outbuf_printf(out, "[gen %u, %s, %s]", c.generation,
			      managed_collection_reason(c.reason), managed_collection_type(c.type));
}

void managed_label(const struct intern *texts, const struct managed_event *e, bool raw,
		   struct outbuf *out)
{
	if (e->kind == MANAGED_GC) {
		put_collection(e->label, out);
		return;
	}
	const char *text = intern_text(texts, e->label);
	size_t len = intern_len(texts, e->label);

	if (!len)
		outbuf_str(out, e->kind == MANAGED_JIT ? "[method unknown]" : "[type unknown]");
	else if (raw)
		outbuf_put(out, text, len);
	else if (e->kind == MANAGED_JIT)
		managed_name_full(text, len, out, NULL, NULL);
	else
		managed_label_type(text, len, out);
}
