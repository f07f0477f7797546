/*
 * Input: changes to the memory of a runtime, 8 bytes each.
 * Place: 2 bytes, in words; from 0xf000 on in the code heap.
 * Kind: 1 byte: a value, an address of the image, or a flipped byte. With the highest bit set, a
 * scan follows.
 * Limit: 1 byte: number of reads for that scan; 0: unlimited.
 * Value: 4 bytes.
 * covers: dotnet/coreclr/jit_code.c dotnet/coreclr/jit_code_bodies.c dotnet/coreclr/types.c
 * dotnet/coreclr/modules.c dotnet/coreclr/code_ranges.c dotnet/coreclr/jit_code_stubs.c
 * dotnet/coreclr/jit_code_il.c
 */
#include "dotnet/coreclr/modules.h"
#include "tests/unit/clr_image.h"

#define SCANS_MAX 4
#define READ_MAX 65536 /* reads beyond the image fail like reads of unmapped memory */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct clr_image image, fresh;
static size_t reported, gone;
static int reads_left; /* negative: unlimited */

/* One of each kind of structure. */
static void build(struct clr_image *m)
{
	uint8_t sig[] = {0, 2, 8, 14, 0x21, 0, 0, 0, 0, 0, 0, 0, 0};
	size_t len;
	unsigned char *bytes = image_metadata(&len);

	image_begin(m, IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t module = image_file_module(m, bytes, len),
		 emitted = image_dynamic_module(m, bytes, len);
	uint64_t plain = image_type(m, module, 2, NULL, 0),
		 other = image_type(m, emitted, 2, NULL, 0);
	uint64_t array = image_array(m, image_pointer(m, plain, 0x0f), 2);
	uint64_t pair = image_type(m, module, 3, (uint64_t[]){array, other}, 2);
	uint64_t outer = image_type(m, module, 3, (uint64_t[]){pair, pair}, 2);

	free(bytes);
	memcpy(sig + 5, &plain, 8);
	image_body(m, 0x40, 0x60, image_method(m, plain, 1, 3), 2);
	image_debug_info(m, 0x40, "\0\x05\x32\x03\xc0\x80\x08", 7);
	image_path(m, module, "/app/App.dll");
	image_body(m, 0x1000, 0x20, image_method(m, outer, 2, 0), 0);
	image_body(m, 0x1044, 0x20, image_method(m, other, 1, 0), 0);
	image_body(m, 0x2000, 0x20, image_dynamic_method(m, plain, "Made", sig, sizeof(sig)), 0);
	image_stubs(m, 0x4000, 6);
	/* A method of a type that its module does not have yet. */
	uint64_t grown = image_type(m, emitted, 3,
				    (uint64_t[]){other, image_type(m, emitted, 9, NULL, 0)}, 2);

	image_body(m, 0x5000, 0x20, image_method(m, grown, 2, 0), 0);
}

static int on_code(void *ctx, const struct clr_jit_code_body *code)
{
	(void)ctx;
	if (!code->bytes || code->bytes > CLR_JIT_CODE_BODY_BYTES_MAX ||
	    strlen(code->name) != code->name_len || strchr(code->name, '\n'))
		abort();
	for (size_t i = 0; code->il && i < code->il->npoints; i++)
		if (code->il->points[i].native > code->bytes ||
		    strlen(code->il->path) > 4 * CLR_MODULE_PATH_MAX || !code->il->rid)
			abort();
	reported++;
	return 0;
}

static int on_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	(void)ctx, (void)start, (void)seen_ns;
	gone++;
	return 0;
}

static int read_some(void *ctx, uint64_t addr, void *buf, size_t len)
{
	if (!reads_left)
		return -ETIMEDOUT;
	reads_left -= reads_left > 0;
	return len > READ_MAX ? -EFAULT : image_read(ctx, addr, buf, len);
}

static int read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	if (!reads_left)
		return -ETIMEDOUT;
	reads_left -= reads_left > 0;
	for (size_t i = 0; i < n; i++)
		pieces[i].ok = !pieces[i].len ||
			       (pieces[i].len <= READ_MAX &&
				!image_read(ctx, pieces[i].addr, pieces[i].buf, pieces[i].len));
	return 0;
}

static int read_maps(void *ctx, char **ret_text)
{
	(void)ctx;
	*ret_text = strdup(
		"7f1200080000-7f12000a0000 r-xs 00000000 00:01 1 /memfd:doublemapper (deleted)\n");
	return *ret_text ? 0 : -ENOMEM;
}

static void change(const uint8_t *p)
{
	size_t word = (size_t)(p[0] | p[1] << 8),
	       at = word < 0xf000 ? word * 8
				  : CLR_IMAGE_CODE - CLR_IMAGE_BASE + (word - 0xf000) * 8;
	uint64_t value = 0;

	memcpy(&value, p + 4, 4);
	switch (p[2] & 3) {
	case 0:
		memcpy(image.bytes + at, &value, 8);
		break;
	case 1:
		value += CLR_IMAGE_BASE;
		memcpy(image.bytes + at, &value, 8);
		break;
	case 2:
		memcpy(image.bytes + at, &value, 4);
		break;
	default:
		image.bytes[at + p[4] % 8] ^= p[5];
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct clr_jit_code_listener listener = {.code = on_code, .gone = on_gone};
	const struct clr_io io = {
		.read = read_some, .read_pieces = read_pieces, .maps = read_maps, .ctx = &image};
	struct clr_jit_code *heap = NULL;
	int scans = 0, r = 0;

	if (!fresh.used)
		build(&fresh);
	image = fresh;
	reported = gone = 0;
	reads_left = -1;
	if (clr_jit_code_new(&io, &(struct clr_anchors){.descriptor = image.descriptor}, &heap,
			     NULL))
		abort();
	clr_jit_code_request_il(heap);
	for (size_t at = 0; at + 8 <= size && (!r || r == -ETIMEDOUT); at += 8) {
		change(data + at);
		if (!(data[at + 2] & 0x80) || scans++ >= SCANS_MAX)
			continue;
		reads_left = data[at + 3] ? data[at + 3] : -1;
		r = clr_jit_code_scan(heap, &listener, UINT64_MAX);
	}
	reads_left = -1;
	(void)clr_jit_code_scan(heap, &listener, UINT64_MAX);
	struct clr_jit_code_stats stats;

	clr_jit_code_stats(heap, &stats);
	if (reported - gone != stats.bodies || stats.stubs > stats.bodies)
		abort();
	clr_jit_code_free(heap);
	return 0;
}
