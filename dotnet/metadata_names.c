#include "dotnet/metadata_names.h"

#include "base/reader.h"
#include "dotnet/signature_text.h"

#include <errno.h>

struct method_name {
	const struct clr_metadata *m;
	uint32_t rid, owner;
	const char *assembly;
	const struct clr_instantiation *inst;
};

/* Writes "[ASSEMBLY] TYPE[ARGUMENTS]::METHOD", which stands between return type and parameters. */
static void put_method_name(struct clr_text *t, const void *ctx)
{
	const struct method_name *name = ctx;
	const struct clr_instantiation *inst = name->inst;

	clr_text_put(t, "[");
	clr_text_put(t, name->assembly);
	clr_text_put(t, "] ");
	clr_text_put_token(t, name->m, clr_token(CLR_TYPE_DEF, name->owner), CLR_REFLECTION);
	for (size_t i = 0; inst && i < inst->ntype_args; i++) {
		clr_text_put(t, i ? "," : "[");
		clr_text_put(t, inst->type_args[i]);
	}
	clr_text_put(t, inst && inst->ntype_args ? "]::" : "::");
	clr_text_put(
		t, clr_metadata_string(name->m, clr_metadata_cell(name->m, CLR_METHOD_DEF,
								  name->rid, CLR_METHOD_DEF_NAME)));
}

int clr_metadata_method_name(const struct clr_metadata *m, uint32_t rid, const char *assembly,
			     const struct clr_instantiation *inst, const char *tier,
			     struct outbuf *out)
{
	struct method_name name = {m, rid, clr_metadata_method_owner(m, rid), assembly, inst};
	size_t len = 0;

	if (!name.owner)
		return -ENOENT;
	if (!assembly)
		name.assembly = clr_metadata_assembly(m);
	const unsigned char *blob = clr_metadata_blob(
		m, clr_metadata_cell(m, CLR_METHOD_DEF, rid, CLR_METHOD_DEF_SIGNATURE), &len);

	if (!blob)
		return -EBADMSG;
	struct reader sig = reader_of(blob, len);
	struct clr_text t = clr_text_begin(out, NULL);

	clr_text_put_method(&t, m, &sig, put_method_name, &name);
	if (tier) {
		clr_text_put(&t, "[");
		clr_text_put(&t, tier);
		clr_text_put(&t, "]");
	}
	return clr_text_end(&t);
}

int clr_metadata_type_name(const struct clr_metadata *m, uint32_t token, struct outbuf *out)
{
	struct clr_text t = clr_text_begin(out, NULL);

	clr_text_put_token(&t, m, token, CLR_REFLECTION);
	return clr_text_end(&t);
}
