/* Input: metadata from its root. covers: dotnet/metadata.c dotnet/metadata_tables.c
 * dotnet/metadata_names.c dotnet/signature.c dotnet/signature_text.c */
#include "dotnet/metadata.h"
#include "dotnet/metadata_names.h"
#include "dotnet/signature.h"
#include "dotnet/signature_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 64 /* of each table, because names of hostile metadata are long */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int find_module(void *ctx, uint32_t index, const struct clr_metadata **ret)
{
	(void)index;
	*ret = ctx;
	return 0;
}

/* The result is one line within the limits, or nothing. */
static void check(int error, struct outbuf *out)
{
	if (error ? out->len != 0
		  : out->len > CLR_TEXT_BYTES_MAX || memchr(out->data, '\n', out->len) != NULL)
		abort();
	out->len = 0;
}

static void name_all(struct clr_metadata *m, struct outbuf *out)
{
	static const enum clr_table types[] = {CLR_TYPE_DEF, CLR_TYPE_REF, CLR_TYPE_SPEC};
	static const char *const args[] = {"System.Int32", "System.__Canon"};
	struct clr_instantiation inst = {args, 2};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		for (uint32_t rid = 0; rid <= clr_metadata_rows(m, types[i]) + 1 && rid < NAMES_MAX;
		     rid++)
			check(clr_metadata_type_name(m, clr_token(types[i], rid), out), out);
	}
	for (uint32_t rid = 0; rid <= clr_metadata_rows(m, CLR_METHOD_DEF) + 1 && rid < NAMES_MAX;
	     rid++)
		check(clr_metadata_method_name(m, rid, rid & 1 ? NULL : "Told",
					       rid & 2 ? NULL : &inst, "Tier", out),
		      out);
}

/* Reads every blob as a signature of a native image. */
static void read_signatures(struct clr_metadata *m, struct outbuf *out)
{
	struct clr_type_resolver modules = {.find = find_module, .ctx = m};

	for (uint32_t index = 0; index < NAMES_MAX; index++) {
		size_t len = 0;
		const unsigned char *blob = clr_metadata_blob(m, index, &len);
		struct reader sig = reader_of(blob, len);
		struct clr_text t = clr_text_begin(out, &modules);

		if (blob)
			clr_text_put_type(&t, m, &sig, index & 1 ? CLR_ILASM : CLR_REFLECTION);
		check(clr_text_end(&t), out);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outbuf out = outbuf_to(-1);
	struct clr_metadata *m;
	const char *name;

	if (clr_metadata_open(data, size, &m, NULL))
		return 0;
	outbuf_char(&out, 0);
	out.len = 0;
	name_all(m, &out);
	read_signatures(m, &out);
	for (unsigned table = 0; table < CLR_TABLES; table++) {
		for (unsigned column = 0; column < CLR_COLUMNS_MAX; column++)
			(void)clr_metadata_token(m, (enum clr_table)table,
						 clr_metadata_rows(m, (enum clr_table)table),
						 column);
	}
	(void)clr_metadata_assembly_ref(m, 1, &name);
	(void)clr_metadata_mvid(m);
	clr_metadata_free(m);
	outbuf_close(&out);
	return 0;
}
