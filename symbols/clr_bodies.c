/* From the start of a body to what it is: its headers, its method, its type, in rounds of reads for many bodies at once. */
#include "base/hash.h"
#include "symbols/clr_batch.h"
#include "symbols/clr_heap_impl.h"
#include "symbols/clr_signature.h"

#include <errno.h>
#include <stdio.h>

#define UNWINDS_MAX 65536 /* pieces of unwind information of one method: one, and one for each funclet */
#define CLASS_MASK 7u /* of MethodDesc.Flags */
#define CLASS_DYNAMIC 7u
#define TEXT_BYTES 256 /* of a dynamic method's name in the first try */
#define TEXT_BYTES_MAX 4096
#define SIG_BYTES_MAX 4096

/* enum StubCodeBlockKind of the runtime, and its names for them. */
static const char *const stub_kinds[] = {
	[1] = "JumpStub",
	[3] = "MethodCallThunk", /* helpers with arguments of their own */
	[4] = "MethodCallThunk", /* precode */
	[5] = "MethodCallThunk",
	[6] = "VSD_DispatchStub",
	[7] = "VSD_ResolveStub",
	[8] = "VSD_LookupStub",
	[9] = "VSD_VTableStub",
};

/* A round: for each candidate that is left, `read` says what to read (0 bytes: nothing), and `got` looks at it. */
struct round {
	uint32_t (*read)(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf);
	bool (*got)(struct clr_heap *h, struct clr_candidate *c); /* false: it makes no sense */
};

static int run_round(struct clr_heap *h, const struct round *round, struct clr_candidate *c, size_t n)
{
	struct clr_batch batch = {.io = &h->io};
	size_t piece = 0;
	int r = 0;

	for (size_t i = 0; !r && i < n; i++) {
		uint64_t addr = 0;
		void *buf = NULL;
		uint32_t len = c[i].failed ? 0 : round->read(h, &c[i], &addr, &buf);

		r = clr_batch_add(&batch, addr, buf, len);
	}
	if (!r)
		r = clr_batch_run(&batch);
	for (size_t i = 0; !r && i < n; i++, piece++)
		if (!c[i].failed && (!clr_batch_ok(&batch, piece) || (round->got && !round->got(h, &c[i]))))
			c[i].failed = true;
	clr_batch_free(&batch);
	return r;
}

static uint32_t header_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	(void)h;
	*ret_addr = c->start - 8;
	*ret_buf = &c->header;
	return sizeof(c->header);
}

static bool header_got(struct clr_heap *h, struct clr_candidate *c)
{
	c->is_stub = c->header <= h->contract.stub_code_block_last;
	/* To the header of what follows. Their size is written nowhere: of free space behind them other code may be told already. */
	if (c->is_stub)
		c->bytes = (uint32_t)((c->next < c->looked ? c->next : c->looked) - 8 - c->start);
	c->print = hash_mix(c->start, c->header);
	return c->header && c->next > c->start + 8 && c->next - c->start <= CLR_HEAP_BODY_BYTES_MAX;
}

static uint32_t code_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	*ret_addr = c->header;
	*ret_buf = c->code;
	return c->is_stub ? 0 : h->contract.at[CLR_CODE_UNWIND] + h->contract.at[CLR_RUNTIME_FUNCTION_BYTES];
}

static uint32_t unwinds_of(const struct clr_heap *h, const struct clr_candidate *c)
{
	return clr_u32(c->code, h->contract.at[CLR_CODE_UNWINDS]);
}

static bool code_got(struct clr_heap *h, struct clr_candidate *c)
{
	const uint32_t *at = h->contract.at;
	uint32_t n = unwinds_of(h, c);

	if (c->is_stub)
		return true;
	c->method = clr_u64(c->code, at[CLR_CODE_METHOD]);
	c->print = hash_mix(c->print, hash_bytes(c->code, at[CLR_CODE_UNWIND] + at[CLR_RUNTIME_FUNCTION_BYTES]));
	return n && n <= UNWINDS_MAX && c->method;
}

static uint32_t last_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	const uint32_t *at = h->contract.at;

	*ret_addr = c->header + at[CLR_CODE_UNWIND] + (uint64_t)(unwinds_of(h, c) - 1) * at[CLR_RUNTIME_FUNCTION_BYTES];
	*ret_buf = c->last;
	/* The first one was read with the header. */
	return c->is_stub || unwinds_of(h, c) == 1 ? 0 : at[CLR_RUNTIME_FUNCTION_BYTES];
}

/* The pieces of unwind information are in the order of the code, the method's own first: from its begin to the end of the last. */
static bool last_got(struct clr_heap *h, struct clr_candidate *c)
{
	const uint32_t *at = h->contract.at;

	if (c->is_stub)
		return true;
	const unsigned char *first = c->code + at[CLR_CODE_UNWIND], *last = unwinds_of(h, c) == 1 ? first : c->last;
	uint32_t begin = clr_u32(first, at[CLR_RUNTIME_FUNCTION_BEGIN]), end = clr_u32(last, at[CLR_RUNTIME_FUNCTION_END]);

	c->bytes = end - begin;
	return h->heaps.v[c->heap].section + begin == c->start && end > begin && c->bytes <= c->next - c->start;
}

static uint32_t desc_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	*ret_addr = c->method;
	*ret_buf = c->desc;
	return c->is_stub ? 0 : h->contract.at[CLR_METHOD_BYTES];
}

static uint32_t chunk_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	const uint32_t *at = h->contract.at;

	*ret_addr = c->method - at[CLR_CHUNK_BYTES] - h->contract.method_alignment * c->desc[at[CLR_METHOD_CHUNK_INDEX]];
	*ret_buf = c->chunk;
	return c->is_stub ? 0 : at[CLR_CHUNK_BYTES];
}

static bool chunk_got(struct clr_heap *h, struct clr_candidate *c)
{
	c->type = c->is_stub ? 0 : clr_u64(c->chunk, h->contract.at[CLR_CHUNK_TYPE]);
	c->print = hash_mix(c->print, c->type);
	return c->is_stub || c->type;
}

bool clr_candidate_is_dynamic(const struct clr_heap *h, const struct clr_candidate *c)
{
	return !c->is_stub && (clr_u16(c->desc, h->contract.at[CLR_METHOD_FLAGS]) & CLASS_MASK) == CLASS_DYNAMIC;
}

bool clr_candidate_may_move(const struct clr_heap *h, const struct clr_candidate *c)
{
	return h->heaps.v[c->heap].collectible || clr_candidate_is_dynamic(h, c);
}

static uint32_t dynamic_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	*ret_addr = c->method;
	*ret_buf = c->dynamic;
	return clr_candidate_is_dynamic(h, c) ? h->contract.at[CLR_DYNAMIC_BYTES] : 0;
}

static uint32_t sig_bytes(const struct clr_heap *h, const struct clr_candidate *c)
{
	return clr_candidate_is_dynamic(h, c) ? clr_u32(c->dynamic, h->contract.at[CLR_STORED_SIG_LEN]) : 0;
}

static bool dynamic_got(struct clr_heap *h, struct clr_candidate *c)
{
	return sig_bytes(h, c) <= SIG_BYTES_MAX;
}

static uint32_t sig_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	*ret_addr = clr_u64(c->dynamic, h->contract.at[CLR_STORED_SIG]);
	*ret_buf = c->sig;
	return sig_bytes(h, c);
}

static uint64_t text_addr(const struct clr_heap *h, const struct clr_candidate *c)
{
	return clr_u64(c->dynamic, h->contract.at[CLR_DYNAMIC_NAME]);
}

/* Names of dynamic methods are texts without a length, that may be near the end of what is mapped: never over the end of a page. */
static size_t text_step(uint64_t addr)
{
	return TEXT_BYTES - addr % TEXT_BYTES;
}

static uint32_t text_read(struct clr_heap *h, struct clr_candidate *c, uint64_t *ret_addr, void **ret_buf)
{
	*ret_addr = text_addr(h, c);
	*ret_buf = c->text;
	return c->text ? (uint32_t)text_step(*ret_addr) : 0;
}

static int read_text(struct clr_heap *h, uint64_t addr, struct arena *texts, unsigned char **ret)
{
	char text[TEXT_BYTES_MAX + 1];
	size_t len = 0;

	while (len < TEXT_BYTES_MAX) {
		size_t step = text_step(addr + len);
		int r;

		step = step < TEXT_BYTES_MAX - len ? step : TEXT_BYTES_MAX - len;
		r = h->io.read(h->io.ctx, addr + len, text + len, step);
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

/* The rest of a name that is longer than what was read of it. */
static int read_rest(struct clr_heap *h, struct clr_candidate *c, struct arena *texts)
{
	int r = strlen((char *)c->text) < text_step(text_addr(h, c)) ? 0 : read_text(h, text_addr(h, c), texts, &c->text);

	c->failed = r == -EFAULT;
	return c->failed ? 0 : r;
}

static int read_dynamic(struct clr_heap *h, struct clr_candidate *c, size_t n, struct arena *texts)
{
	static const struct round rounds[] = {{dynamic_read, dynamic_got}, {sig_read, NULL}, {text_read, NULL}};
	int r = run_round(h, &rounds[0], c, n);

	for (size_t i = 0; !r && i < n; i++) {
		if (c[i].failed || !clr_candidate_is_dynamic(h, &c[i]))
			continue;
		c[i].sig = arena_alloc_text(texts, sig_bytes(h, &c[i]) + 1u);
		c[i].text = arena_alloc(texts, TEXT_BYTES + 1);
		r = c[i].sig && c[i].text ? 0 : -ENOMEM;
	}
	for (size_t k = 1; !r && k < sizeof(rounds) / sizeof(rounds[0]); k++)
		r = run_round(h, &rounds[k], c, n);
	for (size_t i = 0; !r && i < n; i++) {
		if (c[i].failed || !c[i].text)
			continue;
		r = read_rest(h, &c[i], texts);
		if (!r && !c[i].failed)
			c[i].print = hash_mix(c[i].print, hash_bytes(c[i].text, strlen((char *)c[i].text)));
	}
	return r;
}

static uint32_t method_rid(const struct clr_heap *h, const struct clr_candidate *c)
{
	const struct clr_contract *k = &h->contract;
	unsigned bits = (unsigned)k->token_remainder_bits;
	uint32_t low = clr_u16(c->desc, k->at[CLR_METHOD_TOKEN]) & ((1u << bits) - 1);
	uint32_t high = clr_u16(c->chunk, k->at[CLR_CHUNK_TOKEN]) & ((1u << (24 - bits)) - 1);

	return high << bits | low;
}

/* What tells a method from the next one that is at the same address with all that leads to it: rows and names, of the modules of now. */
static int print_names(struct clr_heap *h, struct clr_candidate *c)
{
	const struct clr_type *type = clr_types_get(&h->types, c->type);
	bool dynamic = clr_candidate_is_dynamic(h, c);
	uint32_t rid = dynamic ? 0 : method_rid(h, c);
	const struct clr_metadata *metadata = NULL;
	const char *names[CLR_TYPE_ARGS_MAX];
	size_t n = 0;
	int r;

	c->print = hash_mix(c->print, rid);
	if (!type || type->kind != CLR_TYPE_DEFINED)
		return 0;
	r = clr_modules_get(&h->modules, type->raw[3], dynamic ? CLR_TYPE_DEF : CLR_METHOD_DEF, dynamic ? 1 : rid, &metadata);
	const unsigned char *mvid = r ? NULL : clr_metadata_mvid(metadata);

	if (mvid)
		c->print = hash_mix(c->print, hash_bytes(mvid, CLR_MVID_BYTES));
	if (!r)
		r = clr_types_arguments(&h->types, c->type, names, &n);
	for (size_t i = 0; !r && i < n; i++)
		c->print = hash_mix(c->print, hash_bytes(names[i], strlen(names[i])));
	return r == -ENOENT ? 0 : r;
}

int clr_candidates_read(struct clr_heap *h, struct clr_candidate *c, size_t n, struct arena *texts)
{
	static const struct round rounds[] = {
		{header_read, header_got}, {code_read, code_got}, {last_read, last_got}, {desc_read, NULL}, {chunk_read, chunk_got},
	};
	int r = clr_modules_check(&h->modules);

	for (size_t i = 0; !r && i < sizeof(rounds) / sizeof(rounds[0]); i++)
		r = run_round(h, &rounds[i], c, n);
	if (!r)
		r = read_dynamic(h, c, n, texts);
	for (size_t i = 0; !r && i < n; i++)
		if (!c[i].failed && !c[i].is_stub)
			r = clr_types_want(&h->types, c[i].type);
	if (!r)
		r = clr_types_load(&h->types);
	for (size_t i = 0; !r && i < n; i++)
		if (!c[i].failed && !c[i].is_stub && clr_candidate_may_move(h, &c[i]))
			r = clr_heap_is_late(h) ? -ETIMEDOUT : print_names(h, &c[i]);
	return r;
}

static int name_stub(const struct clr_candidate *c, struct outbuf *out)
{
	const char *kind = c->header < sizeof(stub_kinds) / sizeof(stub_kinds[0]) ? stub_kinds[c->header] : NULL;

	outbuf_printf(out, "stub ReportStubBlock<%s>", kind ? kind : "Unknown");
	return out->error;
}

/* What the callbacks for a dynamic method's text need. */
struct dynamic {
	struct clr_heap *h;
	const struct clr_candidate *c;
	const struct clr_metadata *metadata;
};

/* A type as the perf map has it: the name of its definition, and its address. */
static int put_handle(void *ctx, struct clr_text *t, uint64_t addr, enum clr_style style)
{
	const struct dynamic *d = ctx;
	const struct clr_metadata *metadata;
	const struct clr_type *type;
	char note[48];
	int r = clr_types_want(&d->h->types, addr);

	if (!r)
		r = clr_types_load(&d->h->types);
	type = r ? NULL : clr_types_get(&d->h->types, addr);
	if (!type || type->kind != CLR_TYPE_DEFINED)
		return r ? r : -EBADMSG;
	r = clr_modules_get(&d->h->modules, type->raw[3], CLR_TYPE_DEF, type->rid, &metadata);
	if (r)
		return r;
	clr_text_type(t, metadata, clr_token(CLR_TYPE_DEF, type->rid), style);
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

static int name_dynamic(struct clr_heap *h, const struct clr_candidate *c, const struct clr_metadata *metadata, struct outbuf *out)
{
	struct dynamic d = {.h = h, .c = c, .metadata = metadata};
	struct clr_modules modules = {.handle = put_handle, .ctx = &d};
	struct reader sig = reader_of(c->sig, sig_bytes(h, c));
	struct clr_text text = clr_text_begin(out, &modules);

	clr_text_method(&text, metadata, &sig, put_dynamic_name, &d);
	return clr_text_end(&text);
}

static int name_method(struct clr_heap *h, const struct clr_candidate *c, const struct clr_metadata *metadata, uint32_t rid,
		       struct outbuf *out)
{
	const char *names[CLR_TYPE_ARGS_MAX];
	struct clr_instantiation inst = {.type_args = names};
	int r = clr_types_arguments(&h->types, c->type, names, &inst.ntype_args);

	if (r == -ENOENT) {
		h->stats.plain++;
		r = 0;
	}
	return r ? r : clr_metadata_method_name(metadata, rid, NULL, inst.ntype_args ? &inst : NULL, NULL, out);
}

int clr_candidate_method(struct clr_heap *h, const struct clr_candidate *c, uint32_t *ret_rid, uint64_t *ret_module)
{
	const struct clr_type *type = c->is_stub || clr_candidate_is_dynamic(h, c) ? NULL : clr_types_get(&h->types, c->type);

	if (!type || type->kind != CLR_TYPE_DEFINED)
		return -ENOENT;
	*ret_rid = method_rid(h, c);
	*ret_module = type->raw[3];
	return 0;
}

int clr_candidate_name(struct clr_heap *h, const struct clr_candidate *c, uint32_t *ret_name)
{
	const struct clr_type *type = c->is_stub ? NULL : clr_types_get(&h->types, c->type);
	bool dynamic = clr_candidate_is_dynamic(h, c);
	const struct clr_metadata *metadata = NULL;
	struct outbuf out = outbuf_to(-1);
	int r = c->is_stub || (type && (type->kind == CLR_TYPE_DEFINED || (dynamic && type->kind == CLR_TYPE_ARRAY))) ? 0 : -ENOENT;

	if (!r && !c->is_stub)
		r = clr_modules_get(&h->modules, type->raw[3], dynamic ? CLR_TYPE_DEF : CLR_METHOD_DEF,
				    dynamic ? 1 : method_rid(h, c), &metadata);
	/* A dynamic method has its name itself; its module, made while the program runs, may have no metadata that can be read. */
	if (r == -ENOENT && dynamic && type)
		r = 0;
	if (!r)
		r = c->is_stub ? name_stub(c, &out)
		    : dynamic  ? name_dynamic(h, c, metadata, &out)
			       : name_method(h, c, metadata, method_rid(h, c), &out);
	/* Dynamic methods can have another name at each look. */
	if (!r && out.len > CLR_HEAP_NAME_BYTES_MAX - h->name_bytes)
		r = intern_find(&h->names, out.data, out.len, ret_name);
	else if (!r)
		r = intern_put(&h->names, out.data, out.len, ret_name);
	if (!r && *ret_name >= h->named) {
		h->named = *ret_name + 1;
		h->name_bytes += out.len;
	}
	(void)outbuf_close(&out);
	return r == -EBADMSG || r == -E2BIG ? -ENOENT : r;
}
