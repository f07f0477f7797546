#include "dotnet/metadata.h"
#include "dotnet/metadata_names.h"
#include "dotnet/signature.h"
#include "dotnet/signature_text.h"
#include "tests/unit/metadata_builder.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Widths of rows and heap indices when all tables are small. */
#define MODULE_ROW "22222"
#define TYPE_REF_ROW "222"
#define TYPE_DEF_ROW "422222"
#define METHOD_ROW "422222"
#define ASSEMBLY_ROW "422224222"
#define ASSEMBLY_REF_ROW "222242222"
#define NESTED 0x2 /* a type's flags */

/* Open metadata, with the bytes under it. */
struct opened {
	unsigned char *bytes;
	size_t len;
	struct clr_metadata *m;
};

static struct opened open_built(struct metadata_build *b)
{
	struct opened o = {0};
	struct parse_error err = {0};

	o.bytes = metadata_end(b, &o.len);
	int error = clr_metadata_open(o.bytes, o.len, &o.m, &err);

	if (error)
		fail_msg("%s at %llu", err.what, (unsigned long long)err.offset);
	return o;
}

static void close_built(struct opened *o)
{
	clr_metadata_free(o->m);
	free(o->bytes);
}

static void assert_method(const struct opened *o, uint32_t rid,
			  const struct clr_instantiation *inst, const char *tier,
			  const char *expected)
{
	struct outbuf out = outbuf_to(-1);

	outbuf_str(&out, "before|");
	assert_int_equal(clr_metadata_method_name(o->m, rid, NULL, inst, tier, &out), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data + strlen("before|"), expected);
	outbuf_close(&out);
}

static void assert_no_method(const struct opened *o, uint32_t rid, int expected)
{
	struct outbuf out = outbuf_to(-1);

	outbuf_str(&out, "before");
	assert_int_equal(clr_metadata_method_name(o->m, rid, "a", NULL, NULL, &out), expected);
	assert_int_equal(out.len, strlen("before"));
	outbuf_close(&out);
}

static void assert_type(const struct opened *o, uint32_t token, const char *expected)
{
	struct outbuf out = outbuf_to(-1);

	assert_int_equal(clr_metadata_type_name(o->m, token, &out), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, expected);
	outbuf_close(&out);
}

static uint32_t add_type(struct metadata_build *b, uint32_t flags, const char *namespace,
			 const char *name)
{
	uint32_t name_at = metadata_string(b, name), namespace_at = metadata_string(b, namespace);

	return metadata_row(b, CLR_TYPE_DEF, TYPE_DEF_ROW, flags, name_at, namespace_at, 0, 1,
			    b->nrows[CLR_METHOD_DEF] + 1);
}

static uint32_t add_nested(struct metadata_build *b, uint32_t enclosing, const char *name)
{
	uint32_t rid = add_type(b, NESTED, "", name);

	metadata_row(b, CLR_NESTED_CLASS, "22", rid, enclosing);
	return rid;
}

static uint32_t add_method(struct metadata_build *b, const char *name, uint32_t signature)
{
	uint32_t name_at = metadata_string(b, name);

	return metadata_row(b, CLR_METHOD_DEF, METHOD_ROW, 0, 0, 0, name_at, signature, 1);
}

/* Assembly App. References 1: System.Runtime. TypeRefs 1: System.Func`2, 2: its nested Inner, 3: of
 * another module, 4: unresolved, 5: of this module. TypeDef 1: <Module>. */
static struct metadata_build begin_app(void)
{
	struct metadata_build b = metadata_begin();

	metadata_row(&b, CLR_MODULE, MODULE_ROW, 0, metadata_string(&b, "App.dll"), 1, 0, 0);
	outbuf_put(&b.guids, "0123456789abcdef", 16);
	metadata_row(&b, CLR_ASSEMBLY, ASSEMBLY_ROW, 0, 1, 0, 0, 0, 0, 0,
		     metadata_string(&b, "App"), 0);
	metadata_row(&b, CLR_ASSEMBLY_REF, ASSEMBLY_REF_ROW, 1, 0, 0, 0, 0, 0,
		     metadata_string(&b, "System.Runtime"), 0, 0);
	metadata_row(&b, CLR_MODULE_REF, "2", metadata_string(&b, "other.netmodule"));
	uint32_t system = metadata_string(&b, "System");

	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 1 << 2 | 2, metadata_string(&b, "Func`2"),
		     system);
	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 1 << 2 | 3, metadata_string(&b, "Inner"), 0);
	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 1 << 2 | 1, metadata_string(&b, "Part"), 0);
	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 0, metadata_string(&b, "Lost"), 0);
	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 1 << 2 | 0, metadata_string(&b, "Here"), 0);
	add_type(&b, 0, "", "<Module>");
	return b;
}

#define DEF(rid) ((uint8_t)((rid) << 2)) /* in signatures */
#define REF(rid) ((uint8_t)((rid) << 2 | 1))
#define SPEC(rid) ((uint8_t)((rid) << 2 | 2))

static void methods_have_the_runtimes_names(void **state)
{
	struct metadata_build b = begin_app();
	uint32_t nothing = BLOB_OF(&b, 0x00, 0, 0x01);

	(void)state;
	add_method(&b, "Global", nothing); /* 1 */
	uint32_t outer = add_type(&b, 1, "Acme.Shop", "Outer`2");

	add_method(&b, ".ctor", BLOB_OF(&b, 0x20, 0, 0x01));                       /* 2 */
	add_method(&b, "FindValue", BLOB_OF(&b, 0x20, 1, 0x10, 0x13, 1, 0x13, 0)); /* 3 */
	uint32_t deep = add_nested(&b, outer, "Deep`1");

	add_method(&b, "Go",
		   BLOB_OF(&b, 0x30, 1, 2, 0x1e, 0, 0x1d, 0x1d, 0x1e, 0, 0x15, 0x12, REF(1), 2,
			   0x08, 0x13, 2)); /* 4 */
	add_nested(&b, deep, "Deeper");
	add_method(&b, "op_Addition", nothing); /* 5 */
	add_type(&b, 0, "", "Last");
	struct opened o = open_built(&b);
	const char *args[] = {"System.__Canon", "System.Int32", "App.P[]"};
	struct clr_instantiation two = {args, 2}, three = {args, 3};

	assert_string_equal(clr_metadata_assembly(o.m), "App");
	assert_memory_equal(clr_metadata_mvid(o.m), "0123456789abcdef", 16);
	assert_int_equal(clr_metadata_rows(o.m, CLR_METHOD_DEF), 5);
	assert_method(&o, 1, NULL, NULL, "void [App] <Module>::Global()");
	assert_method(&o, 2, NULL, NULL, "instance void [App] Acme.Shop.Outer`2::.ctor()");
	assert_method(&o, 3, &two, "PreJIT",
		      "instance !1& [App] "
		      "Acme.Shop.Outer`2[System.__Canon,System.Int32]::FindValue(!0)[PreJIT]");
	assert_method(&o, 4, &three, NULL,
		      "instance !!0 [App] "
		      "Acme.Shop.Outer`2+Deep`1[System.__Canon,System.Int32,App.P[]]::Go(!!0[][],"
		      "class [System.Runtime]System.Func`2<int32,!2>)");
	assert_method(&o, 5, NULL, NULL,
		      "void [App] Acme.Shop.Outer`2+Deep`1+Deeper::op_Addition()");
	assert_int_equal(clr_metadata_method_owner(o.m, 5), 4);
	assert_no_method(&o, 0, -ENOENT);
	assert_no_method(&o, 6, -ENOENT);
	close_built(&o);
}

static void a_module_without_manifest_takes_the_given_assembly(void **state)
{
	struct metadata_build b = metadata_begin();
	struct outbuf out = outbuf_to(-1);

	(void)state;
	add_type(&b, 0, "", "T");
	add_method(&b, "M", BLOB_OF(&b, 0, 0, 1));
	struct opened o = open_built(&b);

	assert_null(clr_metadata_assembly(o.m));
	assert_null(clr_metadata_mvid(o.m));
	assert_int_equal(clr_metadata_method_name(o.m, 1, "Told", NULL, NULL, &out), 0);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, "void [Told] T::M()");
	outbuf_close(&out);
	close_built(&o);
}

/* One method for each signature; expected is the text around " [App] T::M". */
static void assert_signature(const char *returns, const char *args, const uint8_t *signature,
			     size_t len)
{
	struct metadata_build b = begin_app();
	char expected[512];
	/* TypeSpec 1: Func`2<int32,string>[] */
	uint32_t spec = BLOB_OF(&b, 0x1d, 0x15, 0x12, REF(1), 2, 0x08, 0x0e);

	metadata_row(&b, CLR_TYPE_SPEC, "2", spec);
	uint32_t t = add_type(&b, 0, "", "T");

	add_method(&b, "M", metadata_blob(&b, signature, len));
	add_nested(&b, t, "Inner");
	struct opened o = open_built(&b);

	snprintf(expected, sizeof(expected), "%s [App] T::M(%s)", returns, args);
	assert_method(&o, 1, NULL, NULL, expected);
	close_built(&o);
}

#define SIGNATURE(returns, args, ...)                                   \
	assert_signature(returns, args, (const uint8_t[]){__VA_ARGS__}, \
			 sizeof((const uint8_t[]){__VA_ARGS__}))

static void every_element_of_a_signature_has_its_text(void **state)
{
	(void)state;
	SIGNATURE("bool",
		  "char,int8,uint8,int16,uint16,int32,uint32,int64,uint64,float32,float64,string",
		  0, 12, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14);
	SIGNATURE("object", "native int,native uint,typedref", 0, 3, 0x1c, 0x18, 0x19, 0x16);
	SIGNATURE("void", "void*,int32**,uint8*[],int32&", 0, 4, 1, 0x0f, 1, 0x0f, 0x0f, 8, 0x1d,
		  0x0f, 5, 0x10, 8);
	/* origins of types */
	SIGNATURE("class [System.Runtime]System.Func`2/Inner", "valuetype T/Inner,class T", 0, 2,
		  0x12, REF(2), 0x11, DEF(3), 0x12, DEF(2));
	SIGNATURE("void", "class [.module other.netmodule]Part,class [*]Lost,class Here", 0, 3, 1,
		  0x12, REF(3), 0x12, REF(4), 0x12, REF(5));
	SIGNATURE("void", "class class [System.Runtime]System.Func`2<int32,string>[]", 0, 1, 1,
		  0x12, SPEC(1));
	/* modifiers come after the modified type */
	SIGNATURE("int32& modreq([System.Runtime]System.Func`2)", "int32 modopt(T)*,string pinned",
		  0, 2, 0x1f, REF(1), 0x10, 8, 0x0f, 0x20, DEF(2), 8, 0x45, 0x0e);
	/* arrays by rank, sizes and lower bounds */
	SIGNATURE("void",
		  "int32[...],int32[,],int32[0...,0...],int32[3,],int32[-2...0,1...5],int32[,][]",
		  0, 6, 1, 0x14, 8, 1, 0, 0, 0x14, 8, 2, 0, 0, 0x14, 8, 2, 0, 2, 0, 0, 0x14, 8, 2,
		  1, 3, 0, 0x14, 8, 2, 2, 3, 5, 2, 0x7d, 2, 0x1d, 0x14, 8, 2, 0, 0);
	/* function pointers */
	SIGNATURE("void",
		  "method void *(int32),method unmanaged cdecl bool *(),method instance unmanaged "
		  "void *(char)[]",
		  0, 3, 1, 0x1b, 0, 1, 1, 8, 0x1b, 1, 0, 2, 0x1d, 0x1b, 0x29, 1, 1, 3);
	/* calling conventions, variable number of arguments */
	SIGNATURE("explicit instance void", "", 0x60, 0, 1);
	SIGNATURE("vararg void", "int32,...,string", 5, 2, 1, 8, 0x41, 0x0e);
	/* numbers of 2 and 4 bytes */
	SIGNATURE("!300", "!!70000", 0, 1, 0x13, 0x81, 0x2c, 0x1e, 0xc0, 0x01, 0x11, 0x70);
}

static void types_are_named_as_in_instantiations(void **state)
{
	struct metadata_build b = begin_app();

	(void)state;
	/* Func`2<int32[],Inner>, then __Canon (coded outside metadata), long*, ref string, T[,],
	 * T[*], fn, !0 */
	static const uint8_t specs[][16] = {
		{11, 0x15, 0x12, REF(1), 2, 0x1d, 8, 0x15, 0x12, REF(2), 1, 0x0e},
		{2, 0x0f, 0x0a},
		{2, 0x10, 0x0e},
		{6, 0x14, 0x11, DEF(2), 2, 0, 0},
		{6, 0x14, 0x11, DEF(2), 1, 0, 0},
		{7, 0x1d, 0x1b, 5, 2, 1, 8, 0x0e},
		{5, 0x1d, 0x20, REF(1), 0x13, 0},
	};

	for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
		metadata_row(&b, CLR_TYPE_SPEC, "2", metadata_blob(&b, specs[i] + 1, specs[i][0]));
	uint32_t odd = add_type(&b, 0, "N+S", "A,B[C]&*\\D\nE");

	add_nested(&b, odd, "\xc3\x84rger`1");
	struct opened o = open_built(&b);

	assert_type(&o, clr_token(CLR_TYPE_REF, 1), "System.Func`2");
	assert_type(&o, clr_token(CLR_TYPE_REF, 2), "System.Func`2+Inner");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 1),
		    "System.Func`2[System.Int32[],System.Func`2+Inner[System.String]]");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 2), "System.Int64*");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 3), "System.String&");
	/* Characters with a meaning in the grammar get a backslash; a name stays on one line. */
	assert_type(&o, clr_token(CLR_TYPE_DEF, 2), "N\\+S.A\\,B\\[C\\]\\&\\*\\\\D?E");
	assert_type(&o, clr_token(CLR_TYPE_DEF, 3),
		    "N\\+S.A\\,B\\[C\\]\\&\\*\\\\D?E+\xc3\x84rger`1");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 4), "N\\+S.A\\,B\\[C\\]\\&\\*\\\\D?E[,]");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 5), "N\\+S.A\\,B\\[C\\]\\&\\*\\\\D?E[*]");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 6),
		    "System.Void(System.Int32, System.String, ...)[]");
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 7), "!0[]");
	close_built(&o);
}

static int find_module(void *ctx, uint32_t index, const struct clr_metadata **ret)
{
	if (index != 5)
		return -ENOENT;
	*ret = ctx;
	return 0;
}

static void signatures_of_native_images_name_types_of_other_modules(void **state)
{
	struct metadata_build b = begin_app(), b2 = metadata_begin();

	(void)state;
	add_type(&b2, 0, "Other", "Thing`1");
	struct opened o = open_built(&b), other = open_built(&b2);
	const uint8_t bytes[] = {0x15, 0x3f, 5,      0x12, DEF(1), 2,    0x3e,
				 0x3d, 0x11, DEF(1), 0x3f, 6,      0x12, DEF(1)};
	struct clr_type_resolver modules = {.find = find_module, .ctx = other.m};
	struct reader sig = reader_of(bytes, sizeof(bytes));
	struct outbuf out = outbuf_to(-1);
	struct clr_text t = clr_text_begin(&out, &modules);

	clr_text_put_type(&t, o.m, &sig, CLR_REFLECTION);
	assert_int_equal(clr_text_end(&t), 0);
	assert_int_equal(sig.pos, 10);
	outbuf_char(&out, 0);
	assert_string_equal(out.data, "Other.Thing`1[System.__Canon,<Module>]");
	t = clr_text_begin(&out, &modules);
	clr_text_put_type(&t, o.m, &sig, CLR_REFLECTION);
	assert_int_equal(clr_text_end(&t), -ENOENT); /* result of find */
	outbuf_close(&out);
	close_built(&o);
	close_built(&other);
}

static void indices_are_wide_where_heaps_or_tables_are_large(void **state)
{
	struct metadata_build b = metadata_begin();
	uint32_t signature = BLOB_OF(&b, 0, 0, 1), name = metadata_string(&b, "M"),
		 type = metadata_string(&b, "T");

	(void)state;
	b.heaps = 0x01 | 0x04 | 0x40; /* wide strings and blobs; extra data behind the counts */
	for (uint32_t i = 0; i < 0x10000; i++)
		metadata_row(&b, CLR_METHOD_DEF, "422442", 0, 0, 0, name, signature, 1);
	for (uint32_t i = 0; i < 0x4000; i++) /* TypeDefOrRef has two tag bits: wide */
		metadata_row(&b, CLR_TYPE_DEF, "444424", 0, type, 0, 0, 1, i * 4 + 1);
	metadata_row(&b, CLR_NESTED_CLASS, "22", 1,
		     2); /* but TypeDef has few rows, so its index is narrow */
	metadata_row(&b, CLR_GENERIC_PARAM, "2244", 0, 0, 0xffff << 1 | 1,
		     name); /* TypeOrMethodDef: one bit */
	struct opened o = open_built(&b);

	assert_int_equal(clr_metadata_cell(o.m, CLR_NESTED_CLASS, 1, CLR_NESTED_CLASS_ENCLOSING),
			 2);
	assert_int_equal(clr_metadata_token(o.m, CLR_GENERIC_PARAM, 1, 2),
			 clr_token(CLR_METHOD_DEF, 0xffff));
	assert_int_equal(clr_metadata_method_owner(o.m, 0x10000), 0x4000);
	assert_int_equal(clr_metadata_method_owner(o.m, 5), 2);
	close_built(&o);
}

static void a_portable_pdb_counts_the_rows_of_its_assembly(void **state)
{
	struct metadata_build b = metadata_begin();
	uint32_t zero = 0, nmethods = 0x10000;
	uint64_t tables = UINT64_C(1) << CLR_METHOD_DEF;

	(void)state;
	outbuf_put(&b.pdb, "abcdefghijklmnopqrst", 20);
	outbuf_put(&b.pdb, &zero, 4);
	outbuf_put(&b.pdb, &tables, 8);
	outbuf_put(&b.pdb, &nmethods, 4);
	uint32_t points = BLOB_OF(&b, 1, 2, 3);

	metadata_row(&b, CLR_DOCUMENT, "2222", points, 0, 0, 0);
	metadata_row(&b, CLR_METHOD_DEBUG_INFORMATION, "22", 1, points);
	metadata_row(&b, CLR_IMPORT_SCOPE, "22", 0, 0);
	metadata_row(&b, CLR_LOCAL_SCOPE, "422244", 0x10000, 1, 1, 1, 7, 9); /* a wide MethodDef */
	metadata_row(&b, CLR_STATE_MACHINE_METHOD, "44", 0xfffe, 0xffff);
	metadata_row(&b, CLR_CUSTOM_DEBUG_INFORMATION, "422", 1 << 5 | 25, 0,
		     points); /* a LocalConstant, wide by MethodDef */
	struct opened o = open_built(&b);
	size_t len;

	assert_int_equal(clr_metadata_token(o.m, CLR_LOCAL_SCOPE, 1, 0),
			 clr_token(CLR_METHOD_DEF, 0x10000));
	assert_int_equal(clr_metadata_cell(o.m, CLR_LOCAL_SCOPE, 1, 5), 9);
	assert_int_equal(clr_metadata_token(o.m, CLR_STATE_MACHINE_METHOD, 1, 1),
			 clr_token(CLR_METHOD_DEF, 0xffff));
	assert_int_equal(clr_metadata_token(o.m, CLR_CUSTOM_DEBUG_INFORMATION, 1, 0),
			 clr_token(CLR_LOCAL_CONSTANT, 1));
	assert_memory_equal(
		clr_metadata_blob(o.m, clr_metadata_cell(o.m, CLR_METHOD_DEBUG_INFORMATION, 1, 1),
				  &len),
		"\1\2\3", 3);
	assert_int_equal(len, 3);
	assert_memory_equal(clr_metadata_mvid(o.m), "abcdefghijklmnop", 16);
	assert_int_equal(clr_metadata_rows(o.m, CLR_METHOD_DEF), 0); /* absent tables */
	close_built(&o);
}

static void an_uncompressed_stream_has_pointers_and_no_order(void **state)
{
	struct metadata_build b = metadata_begin();
	uint32_t signature = BLOB_OF(&b, 0, 0, 1);

	(void)state;
	b.tables_name = "#-";
	b.sorted = 0;
	for (uint32_t i = 0; i < 3; i++)
		add_type(&b, NESTED, "", (const char *[]){"A", "B", "C"}[i]);
	memcpy(b.rows[CLR_TYPE_DEF].data, "\0\0\0\0", 4); /* A is not nested */
	b.rows[CLR_TYPE_DEF].len = 0;
	b.nrows[CLR_TYPE_DEF] = 0;
	for (uint32_t i = 0; i < 3; i++) /* A has pointers 1 and 2, B the third, C none */
		metadata_row(&b, CLR_TYPE_DEF, TYPE_DEF_ROW, i ? NESTED : 0, 1 + 3 * i, 0, 0, 1,
			     (uint32_t[]){1, 3, 4}[i]);
	for (uint32_t i = 0; i < 3; i++)
		add_method(&b, (const char *[]){"one", "two", "three"}[i], signature);
	metadata_row(&b, CLR_METHOD_PTR, "2", 3);
	metadata_row(&b, CLR_METHOD_PTR, "2", 1);
	metadata_row(&b, CLR_METHOD_PTR, "2", 2);
	metadata_row(&b, CLR_NESTED_CLASS, "22", 3, 2);
	metadata_row(&b, CLR_NESTED_CLASS, "22", 2, 1);
	struct opened o = open_built(&b);
	struct outbuf out = outbuf_to(-1);

	for (uint32_t rid = 1; rid <= 3; rid++) {
		assert_int_equal(clr_metadata_method_name(o.m, rid, "X", NULL, NULL, &out), 0);
		outbuf_char(&out, '\n');
	}
	outbuf_char(&out, 0);
	assert_string_equal(out.data,
			    "void [X] A::one()\nvoid [X] A+B::two()\nvoid [X] A::three()\n");
	outbuf_close(&out);
	assert_type(&o, clr_token(CLR_TYPE_DEF, 3), "A+B+C");
	close_built(&o);
}

static void circles_and_depth_are_bounded(void **state)
{
	struct metadata_build b = begin_app();

	(void)state;
	uint32_t a = add_type(&b, NESTED, "", "A"), c;

	add_method(&b, "InCircle", BLOB_OF(&b, 0, 0, 1)); /* 1 */
	c = add_nested(&b, a, "B");
	b.rows[CLR_NESTED_CLASS].len = 0;
	b.nrows[CLR_NESTED_CLASS] = 0;
	metadata_row(&b, CLR_NESTED_CLASS, "22", a, c);
	metadata_row(&b, CLR_NESTED_CLASS, "22", c, a);
	metadata_row(&b, CLR_TYPE_REF, TYPE_REF_ROW, 6 << 2 | 3, 0, 0);   /* nested in itself */
	metadata_row(&b, CLR_TYPE_SPEC, "2", BLOB_OF(&b, 0x12, SPEC(1))); /* itself */
	for (uint8_t i = 2; i < 22; i++)                                  /* each twice the next */
		metadata_row(
			&b, CLR_TYPE_SPEC, "2",
			BLOB_OF(&b, 0x15, 0x12, REF(1), 2, 0x12, SPEC(i + 1), 0x12, SPEC(i + 1)));
	metadata_row(&b, CLR_TYPE_SPEC, "2", BLOB_OF(&b, 8)); /* 22 */
	uint8_t deep[200];

	memset(deep, 0x1d, sizeof(deep));
	metadata_row(&b, CLR_TYPE_SPEC, "2", metadata_blob(&b, deep, sizeof(deep))); /* 23 */
	char *longest = calloc(1, CLR_TEXT_BYTES_MAX + 2);

	memset(longest, 'x', CLR_TEXT_BYTES_MAX + 1);
	struct opened o = open_built(&b);
	struct outbuf out = outbuf_to(-1);

	assert_no_method(&o, 1, -E2BIG);
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_REF, 6), &out), -E2BIG);
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_SPEC, 1), &out), -E2BIG);
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_SPEC, 2), &out), -E2BIG);
	assert_type(&o, clr_token(CLR_TYPE_SPEC, 21), "System.Func`2[System.Int32,System.Int32]");
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_SPEC, 23), &out), -E2BIG);
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_SPEC, 24), &out), -EBADMSG);
	assert_int_equal(clr_metadata_type_name(o.m, clr_token(CLR_TYPE_DEF, 99), &out), -EBADMSG);
	assert_int_equal(clr_metadata_type_name(o.m, 0, &out), -EBADMSG);
	assert_int_equal(out.len, 0);
	struct clr_text t = clr_text_begin(&out, NULL);

	clr_text_put(&t, longest);
	assert_int_equal(clr_text_end(&t), -E2BIG);
	assert_int_equal(out.len, 0);
	outbuf_close(&out);
	free(longest);
	close_built(&o);
}

/* With any cut or change reads stay within the bytes (asan, valgrind). The result is an
 * error or a name. */
static void damage_is_an_error_or_another_name(void **state)
{
	struct metadata_build b = begin_app();

	(void)state;
	add_type(&b, 0, "N", "T");
	add_method(&b, "M",
		   BLOB_OF(&b, 0x20, 2, 0x15, 0x12, REF(1), 2, 0x13, 0, 0x14, 8, 2, 0, 2, 0, 0,
			   0x12, REF(2), 0x0e));
	struct opened o = open_built(&b);
	struct outbuf out = outbuf_to(-1);

	for (size_t len = 0; len < o.len; len++) {
		unsigned char *cut = malloc(len ? len : 1);
		struct clr_metadata *m;
		struct parse_error err = {0};

		assert_non_null(cut);
		memcpy(cut, o.bytes, len);
		assert_int_equal(clr_metadata_open(cut, len, &m, &err),
				 -EBADMSG); /* streams extend to the end */
		assert_non_null(err.what);
		free(cut);
	}
	for (size_t i = 0; i < o.len; i++) {
		struct clr_metadata *m;
		unsigned char was = o.bytes[i];

		o.bytes[i] ^= 0xff;
		if (!clr_metadata_open(o.bytes, o.len, &m, NULL)) {
			(void)clr_metadata_method_name(m, 1, NULL, NULL, "Tier", &out);
			clr_metadata_free(m);
		}
		o.bytes[i] = was;
	}
	outbuf_close(&out);
	close_built(&o);
}

static void unknown_tables_and_streams_are_reported(void **state)
{
	struct metadata_build b = begin_app();
	size_t len;
	unsigned char *bytes = metadata_end(&b, &len), *tables = memmem(bytes, len, "\2\0\0\1", 4);
	struct clr_metadata *m;
	struct parse_error err = {0};

	(void)state;
	assert_non_null(tables);
	tables[4 + 5] |= 0x40; /* table 0x2e */
	assert_int_equal(clr_metadata_open(bytes, len, &m, &err), -EBADMSG);
	assert_string_equal(err.what, "unknown metadata table");
	memcpy(memmem(bytes, len, "#~", 2), "#?", 2);
	assert_int_equal(clr_metadata_open(bytes, len, &m, &err), -EBADMSG);
	assert_string_equal(err.what, "metadata without tables");
	bytes[0] = 'b';
	assert_int_equal(clr_metadata_open(bytes, len, &m, &err), -EBADMSG);
	assert_string_equal(err.what, "not .NET metadata");
	assert_int_equal(clr_metadata_open(NULL, 0, &m, &err), -EBADMSG);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_have_the_runtimes_names),
		cmocka_unit_test(a_module_without_manifest_takes_the_given_assembly),
		cmocka_unit_test(every_element_of_a_signature_has_its_text),
		cmocka_unit_test(types_are_named_as_in_instantiations),
		cmocka_unit_test(signatures_of_native_images_name_types_of_other_modules),
		cmocka_unit_test(indices_are_wide_where_heaps_or_tables_are_large),
		cmocka_unit_test(a_portable_pdb_counts_the_rows_of_its_assembly),
		cmocka_unit_test(an_uncompressed_stream_has_pointers_and_no_order),
		cmocka_unit_test(circles_and_depth_are_bounded),
		cmocka_unit_test(damage_is_an_error_or_another_name),
		cmocka_unit_test(unknown_tables_and_streams_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
