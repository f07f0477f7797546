/*
 * Input: changes to the memory of a runtime, 8 bytes each.
 * Place: 2 bytes, in words; from 0xf000 on in the code heap.
 * Kind: 1 byte: a value of 8 bytes, an address of the image, a value of 4 bytes, or a flipped byte.
 * With the highest bit set, code is read then.
 * One unused byte, then the value: 4 bytes.
 * covers: unwind/clr_code.c unwind/clr_code_find.c
 */
#include "tests/unit/clr_image.h"
#include "unwind/clr_code.h"

#define READS_MAX 8
#define READ_MAX 65536 /* reads beyond the image fail like reads of unmapped memory */
#define ADDRS 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct clr_image image, fresh;

static void build(struct clr_image *m)
{
	static const unsigned char info[] = {1, 1, 1, 0, 1, 0x50},
				   code[] = {0x55, 0x90, 0x5d, 0xc3};
	static const unsigned char stub[] = {0x90, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8,    0x50,
					     0x48, 0xb8, 1,    2, 3, 4, 5, 6, 7, 8, 0xff, 0xe0};
	uint64_t type;

	image_begin(m, IMAGE_CODE_HEAP);
	type = image_type(m, image_alloc(m, 856), 2, NULL, 0);
	image_body(m, 0x40, 0x60, image_method(m, type, 1, 3), 2);
	for (uint32_t part = 0; part < 3; part++)
		image_unwind(m, 0x40, part, 0x6000, info, sizeof(info), code, sizeof(code));
	image_body(m, 0x1000, 0x20, image_method(m, type, 1, 0), 0);
	image_unwind(m, 0x1000, 0, 0x6000, info, sizeof(info), code, sizeof(code));
	image_stubs(m, 0x2008, 8);
	memcpy(image_at(m, CLR_IMAGE_CODE + 0x2008), stub, sizeof(stub));
	memcpy(image_at(m, CLR_IMAGE_CODE + 0x2040), code + 3, 1);
}

static int read_some(void *ctx, uint64_t addr, void *buf, size_t len)
{
	return len > READ_MAX ? -EFAULT : image_read(ctx, addr, buf, len);
}

static int read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pieces[i].ok = !pieces[i].len ||
			       !read_some(ctx, pieces[i].addr, pieces[i].buf, pieces[i].len);
	return 0;
}

static void change(const uint8_t *p)
{
	size_t word = (size_t)(p[0] | p[1] << 8),
	       at = word < 0xf000 ? word * 8
				  : CLR_IMAGE_CODE - CLR_IMAGE_BASE + (word - 0xf000) * 8;
	uint64_t value = 0;

	memcpy(&value, p + 4, 4);
	value += (p[2] & 3) == 1 ? CLR_IMAGE_BASE : 0;
	if ((p[2] & 3) == 3)
		image.bytes[at + p[4] % 8] ^= p[5];
	else
		memcpy(image.bytes + at, &value, (p[2] & 3) == 2 ? 4 : 8);
}

/* A found body covers its address. */
static void read_all(const struct clr_io *io, const struct clr_contract *contract)
{
	static const uint32_t places[] = {0x40,   0x42,   0x60,   0x9f,   0xa0,   0x1000,
					  0x1003, 0x2008, 0x2014, 0x2040, 0x3000, 0xffff};
	struct clr_code_reader *reader;
	struct clr_code code[ADDRS];
	struct clr_code_query queries[ADDRS] = {0};
	struct unwind_rule rule;
	int errors[ADDRS];

	if (clr_code_reader_new(io, contract, &reader))
		abort();
	for (size_t i = 0; i < ADDRS; i++)
		queries[i].addr = i < 12 ? CLR_IMAGE_CODE + places[i] : CLR_IMAGE_BASE + i * 0x4321;
	if (clr_code_read(reader, queries, ADDRS, code, errors))
		abort();
	for (size_t i = 0; i < ADDRS; i++) {
		uint64_t addr = queries[i].addr;

		if (errors[i])
			continue;
		if (addr < code[i].start || addr >= code[i].end ||
		    (code[i].kind != CLR_CODE_OF_IMAGE && clr_code_rule(&code[i], addr, &rule)))
			abort();
		clr_code_free(&code[i]);
	}
	clr_code_reader_free(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct clr_io io = {.read = read_some, .read_pieces = read_pieces, .ctx = &image};
	struct clr_contract contract;
	int reads = 0;

	if (!fresh.used)
		build(&fresh);
	image = fresh;
	if (clr_contract_load(&io, &(struct clr_anchors){.descriptor = image.descriptor}, &contract,
			      NULL))
		abort();
	for (size_t at = 0; at + 8 <= size; at += 8) {
		change(data + at);
		if (data[at + 2] & 0x80 && reads++ < READS_MAX)
			read_all(&io, &contract);
	}
	read_all(&io, &contract);
	return 0;
}
