#include "dotnet/r2r_signature.h"

#include "dotnet/signature.h"

static void read_owner(struct reader *r, struct r2r_method_signature *m)
{
	struct reader type = *r;

	m->owner = r->pos;
	m->owner_is_primitive = clr_signature_is_primitive(type);
	/* The owner's module is the method's too, unless a module was named before. */
	if (!(m->flags & R2R_METHOD_HAS_MODULE))
		(void)clr_signature_read_module(&type, &m->module);
	clr_signature_skip(r);
}

void r2r_signature_read_method(struct reader *r, struct r2r_method_signature *ret_method)
{
	struct r2r_method_signature m = {.module = R2R_OWN_MODULE, .context = R2R_OWN_MODULE};

	m.flags = clr_signature_read_number(r);
	if (m.flags & R2R_METHOD_HAS_MODULE)
		m.module = m.context = clr_signature_read_number(r);
	if (m.flags & R2R_METHOD_HAS_OWNER)
		read_owner(r, &m);
	m.rid = clr_signature_read_number(r);
	if (m.flags & R2R_METHOD_HAS_ARGUMENTS) {
		uint32_t n = clr_signature_read_number(r);

		if (n > R2R_SIGNATURE_ARGUMENTS_MAX)
			r->failed = true;
		for (; n && !r->failed; n--)
			clr_signature_skip(r);
	}
	if (m.flags & R2R_METHOD_CONSTRAINED)
		clr_signature_skip(r);
	*ret_method = m;
}
