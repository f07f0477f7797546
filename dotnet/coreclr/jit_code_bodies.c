/*
 * Reads what describes a body of code: header, method, type. Works in rounds, each a batch of reads
 * for many bodies.
 */
#include "base/hash.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/jit_code_impl.h"
#include "dotnet/metadata_names.h"
#include "dotnet/signature_text.h"

#include <errno.h>
#include <stdio.h>

/* Pieces of unwind information of one method: its own, and one for each funclet. */
#define UNWINDS_MAX 65536
/*
 * Bytes of a block of stubs at most. The runtime takes blocks of 4 * SMALL_BLOCK_THRESHOLD from a
 * code heap (vm/codeman.cpp, CodeFragmentHeap); one of 32 jump stubs is smaller.
 */
#define STUB_BLOCK_BYTES 1024
#define CLASS_MASK 7u /* bits of MethodDesc.Flags */
#define CLASS_DYNAMIC 7u
#define TEXT_BYTES 256 /* of the first read of a dynamic method's name */
#define TEXT_BYTES_MAX 4096
#define SIG_BYTES_MAX 4096

/* Names of the runtime's enum StubCodeBlockKind. */
static const char *const stub_kinds[] = {
	[1] = "JumpStub",        [3] = "MethodCallThunk", /* helpers with arguments of their own */
	[4] = "MethodCallThunk",                          /* precode */
	[5] = "MethodCallThunk", [6] = "VSD_DispatchStub", [7] = "VSD_ResolveStub",
	[8] = "VSD_LookupStub",  [9] = "VSD_VTableStub",
};

/*
 * One round. For each remaining candidate, `read` gives the memory to read (0 bytes: none), and
 * `got` checks it.
 */
struct round {
	uint32_t (*read)(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			 void **ret_buf);
	bool (*got)(struct clr_jit_code *j, struct clr_candidate *c); /* false: invalid */
};

static int run_round(struct clr_jit_code *j, const struct round *round, struct clr_candidate *c,
		     size_t n)
{
	struct clr_batch batch = {.io = &j->io};
	size_t piece = 0;
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		uint64_t addr = 0;
		void *buf = NULL;
		uint32_t len = c[i].failed ? 0 : round->read(j, &c[i], &addr, &buf);

		r = clr_batch_add(&batch, addr, buf, len);
	}
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++, piece++)
		if (!c[i].failed &&
		    (!clr_batch_ok(&batch, piece) || (round->got && !round->got(j, &c[i]))))
			c[i].failed = true;
	clr_batch_free(&batch);
	return r;
}

static uint32_t want_header(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			    void **ret_buf)
{
	(void)j;
	*ret_addr = c->start - 8;
	*ret_buf = &c->header;
	return sizeof(c->header);
}

static bool check_header(struct clr_jit_code *j, struct clr_candidate *c)
{
	c->is_stub = c->header <= j->contract.stub_code_block_last;
	/*
	 * The size of a stub block is stored nowhere. End it at the header of the next code, or at
	 * its largest size, because the map lacks a method that is being compiled after it.
	 */
	if (c->is_stub)
		c->bytes = (uint32_t)(c->next - 8 - c->start < STUB_BLOCK_BYTES
					      ? c->next - 8 - c->start
					      : STUB_BLOCK_BYTES);
	c->fingerprint = hash_mix(c->start, c->header);
	return c->header && c->next > c->start + 8 &&
	       c->next - c->start <= CLR_JIT_CODE_BODY_BYTES_MAX;
}

static uint32_t want_code(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			  void **ret_buf)
{
	*ret_addr = c->header;
	*ret_buf = c->code;
	return c->is_stub ? 0
			  : j->contract.at[CLR_CODE_UNWIND] +
				    j->contract.at[CLR_RUNTIME_FUNCTION_BYTES];
}

static uint32_t unwind_count(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	return clr_u32(c->code, j->contract.at[CLR_CODE_UNWINDS]);
}

static bool check_code(struct clr_jit_code *j, struct clr_candidate *c)
{
	const uint32_t *at = j->contract.at;
	uint32_t n = unwind_count(j, c);

	if (c->is_stub)
		return true;
	c->method = clr_u64(c->code, at[CLR_CODE_METHOD]);
	c->fingerprint =
		hash_mix(c->fingerprint,
			 hash_bytes(c->code, at[CLR_CODE_UNWIND] + at[CLR_RUNTIME_FUNCTION_BYTES]));
	return n && n <= UNWINDS_MAX && c->method;
}

static uint32_t want_last_unwind(struct clr_jit_code *j, struct clr_candidate *c,
				 uint64_t *ret_addr, void **ret_buf)
{
	const uint32_t *at = j->contract.at;

	*ret_addr = c->header + at[CLR_CODE_UNWIND] +
		    (uint64_t)(unwind_count(j, c) - 1) * at[CLR_RUNTIME_FUNCTION_BYTES];
	*ret_buf = c->last;
	/* The first piece was read together with the header. */
	return c->is_stub || unwind_count(j, c) == 1 ? 0 : at[CLR_RUNTIME_FUNCTION_BYTES];
}

/*
 * Finds the size. Pieces of unwind information are in code order, the method's own first, so the
 * code reaches from the first begin to the last end.
 */
static bool check_last_unwind(struct clr_jit_code *j, struct clr_candidate *c)
{
	const uint32_t *at = j->contract.at;

	if (c->is_stub)
		return true;
	const unsigned char *first = c->code + at[CLR_CODE_UNWIND],
			    *last = unwind_count(j, c) == 1 ? first : c->last;
	uint32_t begin = clr_u32(first, at[CLR_RUNTIME_FUNCTION_BEGIN]),
		 end = clr_u32(last, at[CLR_RUNTIME_FUNCTION_END]);

	c->bytes = end - begin;
	return j->heaps.v[c->heap].section + begin == c->start && end > begin &&
	       c->bytes <= c->next - c->start;
}

static uint32_t want_desc(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			  void **ret_buf)
{
	*ret_addr = c->method;
	*ret_buf = c->desc;
	return c->is_stub ? 0 : j->contract.at[CLR_METHOD_BYTES];
}

static uint32_t want_chunk(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			   void **ret_buf)
{
	const uint32_t *at = j->contract.at;

	*ret_addr = c->method - at[CLR_CHUNK_BYTES] -
		    j->contract.method_alignment * c->desc[at[CLR_METHOD_CHUNK_INDEX]];
	*ret_buf = c->chunk;
	return c->is_stub ? 0 : at[CLR_CHUNK_BYTES];
}

static bool check_chunk(struct clr_jit_code *j, struct clr_candidate *c)
{
	c->type = c->is_stub ? 0 : clr_u64(c->chunk, j->contract.at[CLR_CHUNK_TYPE]);
	c->fingerprint = hash_mix(c->fingerprint, c->type);
	return c->is_stub || c->type;
}

bool clr_jit_code_bodies_is_dynamic(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	return !c->is_stub &&
	       (clr_u16(c->desc, j->contract.at[CLR_METHOD_FLAGS]) & CLASS_MASK) == CLASS_DYNAMIC;
}

bool clr_jit_code_bodies_is_movable(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	return j->heaps.v[c->heap].collectible || clr_jit_code_bodies_is_dynamic(j, c);
}

static uint32_t want_dynamic(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			     void **ret_buf)
{
	*ret_addr = c->method;
	*ret_buf = c->dynamic;
	return clr_jit_code_bodies_is_dynamic(j, c) ? j->contract.at[CLR_DYNAMIC_BYTES] : 0;
}

static uint32_t sig_bytes(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	return clr_jit_code_bodies_is_dynamic(j, c)
		       ? clr_u32(c->dynamic, j->contract.at[CLR_STORED_SIG_LEN])
		       : 0;
}

static bool check_dynamic(struct clr_jit_code *j, struct clr_candidate *c)
{
	return sig_bytes(j, c) <= SIG_BYTES_MAX;
}

static uint32_t want_sig(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			 void **ret_buf)
{
	*ret_addr = clr_u64(c->dynamic, j->contract.at[CLR_STORED_SIG]);
	*ret_buf = c->sig;
	return sig_bytes(j, c);
}

static uint64_t text_addr(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	return clr_u64(c->dynamic, j->contract.at[CLR_DYNAMIC_NAME]);
}

/*
 * Bytes to read from a dynamic method's name. Such names have no length and may end just before
 * unmapped memory. So a read never crosses a page.
 */
static size_t text_step(uint64_t addr)
{
	return TEXT_BYTES - addr % TEXT_BYTES;
}

static uint32_t want_text(struct clr_jit_code *j, struct clr_candidate *c, uint64_t *ret_addr,
			  void **ret_buf)
{
	*ret_addr = text_addr(j, c);
	*ret_buf = c->text;
	return c->text ? (uint32_t)text_step(*ret_addr) : 0;
}

static int read_text(struct clr_jit_code *j, uint64_t addr, struct arena *texts,
		     unsigned char **ret)
{
	char text[TEXT_BYTES_MAX + 1];
	size_t len = 0;

	while (len < TEXT_BYTES_MAX) {
		size_t step = text_step(addr + len);
		int r;

		step = step < TEXT_BYTES_MAX - len ? step : TEXT_BYTES_MAX - len;
		r = j->io.read(j->io.ctx, addr + len, text + len, step);
		if (r)
			return r;
		size_t n = strnlen(text + len, step);

		len += n;
		if (n < step)
			break;
	}
	*ret = (unsigned char *)arena_strndup(texts, text, len);
	return *ret ? 0 : -ENOMEM;
}

/* Reads the rest of a name longer than the first read. */
static int read_rest(struct clr_jit_code *j, struct clr_candidate *c, struct arena *texts)
{
	int r = strlen((char *)c->text) < text_step(text_addr(j, c))
			? 0
			: read_text(j, text_addr(j, c), texts, &c->text);

	c->failed = r == -EFAULT;
	return c->failed ? 0 : r;
}

static int read_dynamic(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
			struct arena *texts)
{
	static const struct round rounds[] = {
		{want_dynamic, check_dynamic}, {want_sig, NULL}, {want_text, NULL}};
	int r = run_round(j, &rounds[0], c, n);

	for (size_t i = 0; !r && i < n; i++) {
		if (c[i].failed || !clr_jit_code_bodies_is_dynamic(j, &c[i]))
			continue;
		c[i].sig = arena_alloc_text(texts, sig_bytes(j, &c[i]) + 1u);
		c[i].text = arena_alloc(texts, TEXT_BYTES + 1);
		r = c[i].sig && c[i].text ? 0 : -ENOMEM;
	}
	for (size_t k = 1; !r && k < sizeof(rounds) / sizeof(rounds[0]); k++)
		r = run_round(j, &rounds[k], c, n);
	for (size_t i = 0; !r && i < n; i++) {
		if (c[i].failed || !c[i].text)
			continue;
		r = read_rest(j, &c[i], texts);
		if (!r && !c[i].failed)
			c[i].fingerprint = hash_mix(
				c[i].fingerprint, hash_bytes(c[i].text, strlen((char *)c[i].text)));
	}
	return r;
}

static uint32_t method_rid(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	const struct clr_contract *k = &j->contract;
	unsigned bits = (unsigned)k->token_remainder_bits;
	uint32_t low = clr_u16(c->desc, k->at[CLR_METHOD_TOKEN]) & ((1u << bits) - 1);
	uint32_t high = clr_u16(c->chunk, k->at[CLR_CHUNK_TOKEN]) & ((1u << (24 - bits)) - 1);

	return high << bits | low;
}

/*
 * Hashes the method's row and names into its fingerprint. They distinguish it from a later method
 * whose structures all have the same addresses. Uses the modules as they are now.
 */
static int add_names_to_fingerprint(struct clr_jit_code *j, struct clr_candidate *c)
{
	const struct clr_type *type = clr_types_get(&j->types, c->type);
	bool dynamic = clr_jit_code_bodies_is_dynamic(j, c);
	uint32_t rid = dynamic ? 0 : method_rid(j, c);
	const struct clr_metadata *metadata = NULL;
	const char *names[CLR_TYPE_ARGS_MAX];
	size_t n = 0;
	int r;

	c->fingerprint = hash_mix(c->fingerprint, rid);
	if (!type || type->kind != CLR_TYPE_DEFINED)
		return 0;
	r = clr_modules_get(&j->modules, type->raw[3], dynamic ? CLR_TYPE_DEF : CLR_METHOD_DEF,
			    dynamic ? 1 : rid, &metadata);
	const unsigned char *mvid = r ? NULL : clr_metadata_mvid(metadata);

	if (mvid)
		c->fingerprint = hash_mix(c->fingerprint, hash_bytes(mvid, CLR_MVID_BYTES));
	if (!r)
		r = clr_types_arguments(&j->types, c->type, names, &n);
	for (size_t i = 0; !r && i < n; i++)
		c->fingerprint = hash_mix(c->fingerprint, hash_bytes(names[i], strlen(names[i])));
	return r == -ENOENT ? 0 : r;
}

int clr_jit_code_bodies_read(struct clr_jit_code *j, struct clr_candidate *c, size_t n,
			     struct arena *texts)
{
	static const struct round rounds[] = {
		{want_header, check_header},
		{want_code, check_code},
		{want_last_unwind, check_last_unwind},
		{want_desc, NULL},
		{want_chunk, check_chunk},
	};
	int r = clr_modules_check(&j->modules);

	for (size_t i = 0; !r && i < sizeof(rounds) / sizeof(rounds[0]); i++)
		r = run_round(j, &rounds[i], c, n);
	if (!r)
		r = read_dynamic(j, c, n, texts);
	for (size_t i = 0; !r && i < n; i++)
		if (!c[i].failed && !c[i].is_stub)
			r = clr_types_request(&j->types, c[i].type);
	if (!r)
		r = clr_types_load(&j->types);
	for (size_t i = 0; !r && i < n; i++)
		if (!c[i].failed && !c[i].is_stub && clr_jit_code_bodies_is_movable(j, &c[i]))
			r = clr_jit_code_is_late(j) ? -ETIMEDOUT
						    : add_names_to_fingerprint(j, &c[i]);
	return r;
}

static int name_stub(const struct clr_candidate *c, struct outbuf *out)
{
	const char *kind = c->header < sizeof(stub_kinds) / sizeof(stub_kinds[0])
				   ? stub_kinds[c->header]
				   : NULL;

	outbuf_printf(out, "stub ReportStubBlock<%s>", kind ? kind : "Unknown");
	return out->error;
}

/* Context of the callbacks for a dynamic method's name. */
struct dynamic {
	struct clr_jit_code *j;
	const struct clr_candidate *c;
	const struct clr_metadata *metadata;
};

/* Writes a type as the perf map does: the name of its definition, and its address. */
static int put_handle(void *ctx, struct clr_text *t, uint64_t addr, enum clr_text_style style)
{
	const struct dynamic *d = ctx;
	const struct clr_metadata *metadata;
	const struct clr_type *type;
	char note[48];
	int r = clr_types_request(&d->j->types, addr);

	if (!r)
		r = clr_types_load(&d->j->types);
	type = r ? NULL : clr_types_get(&d->j->types, addr);
	if (!type || type->kind != CLR_TYPE_DEFINED)
		return r ? r : -EBADMSG;
	r = clr_modules_get(&d->j->modules, type->raw[3], CLR_TYPE_DEF, type->rid, &metadata);
	if (r)
		return r;
	clr_text_put_token(t, metadata, clr_token(CLR_TYPE_DEF, type->rid), style);
	snprintf(note, sizeof(note), " /* MT: 0x%llx */", (unsigned long long)addr);
	clr_text_put(t, note);
	return 0;
}

static void put_dynamic_name(struct clr_text *t, const void *ctx)
{
	const struct dynamic *d = ctx;
	const char *assembly = d->metadata ? clr_metadata_assembly(d->metadata) : NULL;

	if (assembly) {
		clr_text_put(t, "[");
		clr_text_put(t, assembly);
		clr_text_put(t, "] ");
	} else if (!d->metadata) {
		clr_text_put(t, "[dynamic] ");
	}
	clr_text_put(t, "dynamicClass::");
	clr_text_put(t, (const char *)d->c->text);
}

static int name_dynamic(struct clr_jit_code *j, const struct clr_candidate *c,
			const struct clr_metadata *metadata, struct outbuf *out)
{
	struct dynamic d = {.j = j, .c = c, .metadata = metadata};
	struct clr_type_resolver modules = {.handle = put_handle, .ctx = &d};
	struct reader sig = reader_of(c->sig, sig_bytes(j, c));
	struct clr_text text = clr_text_begin(out, &modules);

	clr_text_put_method(&text, metadata, &sig, put_dynamic_name, &d);
	return clr_text_end(&text);
}

static int name_method(struct clr_jit_code *j, const struct clr_candidate *c,
		       const struct clr_metadata *metadata, uint32_t rid, struct outbuf *out)
{
	const char *names[CLR_TYPE_ARGS_MAX];
	struct clr_instantiation inst = {.type_args = names};
	int r = clr_types_arguments(&j->types, c->type, names, &inst.ntype_args);

	if (r == -ENOENT) {
		j->stats.plain++;
		r = 0;
	}
	return r ? r
		 : clr_metadata_method_name(metadata, rid, NULL, inst.ntype_args ? &inst : NULL,
					    NULL, out);
}

int clr_jit_code_bodies_method(struct clr_jit_code *j, const struct clr_candidate *c,
			       uint32_t *ret_rid, uint64_t *ret_module)
{
	const struct clr_type *type = c->is_stub || clr_jit_code_bodies_is_dynamic(j, c)
					      ? NULL
					      : clr_types_get(&j->types, c->type);

	if (!type || type->kind != CLR_TYPE_DEFINED)
		return -ENOENT;
	*ret_rid = method_rid(j, c);
	*ret_module = type->raw[3];
	return 0;
}

uint64_t clr_jit_code_bodies_module(const struct clr_jit_code *j, const struct clr_candidate *c)
{
	const struct clr_type *type = c->is_stub ? NULL : clr_types_get(&j->types, c->type);

	return type && type->kind == CLR_TYPE_DEFINED ? type->raw[3] : 0;
}

int clr_jit_code_bodies_name(struct clr_jit_code *j, const struct clr_candidate *c,
			     uint32_t *ret_name)
{
	const struct clr_type *type = c->is_stub ? NULL : clr_types_get(&j->types, c->type);
	bool dynamic = clr_jit_code_bodies_is_dynamic(j, c);
	const struct clr_metadata *metadata = NULL;
	struct outbuf out = outbuf_to(-1);
	int r = c->is_stub || (type && (type->kind == CLR_TYPE_DEFINED ||
					(dynamic && type->kind == CLR_TYPE_ARRAY)))
			? 0
			: -ENOENT;

	if (!r && !c->is_stub)
		r = clr_modules_get(&j->modules, type->raw[3],
				    dynamic ? CLR_TYPE_DEF : CLR_METHOD_DEF,
				    dynamic ? 1 : method_rid(j, c), &metadata);
	/*
	 * A dynamic method has a name of its own. Its module is made at run time, and its metadata
	 * may be unreadable.
	 */
	if (r == -ENOENT && dynamic && type)
		r = 0;
	if (!r)
		r = c->is_stub ? name_stub(c, &out)
		    : dynamic  ? name_dynamic(j, c, metadata, &out)
			       : name_method(j, c, metadata, method_rid(j, c), &out);
	/* Dynamic methods may have a new name in each scan, so limit the memory for names. */
	if (!r && out.len > CLR_JIT_CODE_NAME_BYTES_MAX - j->name_bytes)
		r = intern_find(&j->names, out.data, out.len, ret_name);
	else if (!r)
		r = intern_put(&j->names, out.data, out.len, ret_name);
	if (!r && *ret_name >= j->named) {
		j->named = *ret_name + 1;
		j->name_bytes += out.len;
	}
	(void)outbuf_close(&out);
	return r == -EBADMSG || r == -E2BIG ? -ENOENT : r;
}
