/*
 * The memory of a process with a .NET 10 runtime, as small as possible: a code map with one code
 * heap, modules, types, methods, bodies. Offsets are those of clr_net10.h. Used by the tests of
 * dotnet/coreclr and by its fuzz target, which damages it.
 */
#ifndef TESTS_UNIT_CLR_IMAGE_H
#define TESTS_UNIT_CLR_IMAGE_H

#include "dotnet/coreclr/jit_code.h"
#include "tests/unit/clr_net10.h"
#include "tests/unit/metadata_builder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define CLR_IMAGE_BASE 0x7f1200000000u
#define CLR_IMAGE_BYTES 0xa0000u
#define CLR_IMAGE_CODE (CLR_IMAGE_BASE + 0x80000u) /* the code heap */
#define CLR_IMAGE_CODE_BYTES 0x10000u

enum { IMAGE_COLLECTIBLE = 1, IMAGE_CODE_HEAP = 2, IMAGE_RANGE_LIST = 4 };
enum { IMAGE_GENERIC = 0x10, IMAGE_DYNAMIC = 7 };

struct clr_image {
	unsigned char bytes[CLR_IMAGE_BYTES];
	size_t used, pieces; /* pieces read so far */
	uint64_t descriptor, range_map, slot, fragment, section, node, map;
	uint64_t hole, hole_end; /* bytes that cannot be read */
};

static inline void *image_at(struct clr_image *m, uint64_t addr)
{
	if (addr - CLR_IMAGE_BASE >= CLR_IMAGE_BYTES)
		abort();
	return m->bytes + (addr - CLR_IMAGE_BASE);
}

/* A value of `bytes` bytes. */
static inline void image_set(struct clr_image *m, uint64_t addr, uint64_t value, size_t bytes)
{
	memcpy(image_at(m, addr), &value, bytes);
}

static inline void image_set_u64(struct clr_image *m, uint64_t addr, uint64_t value)
{
	image_set(m, addr, value, 8);
}

static inline uint64_t image_alloc(struct clr_image *m, size_t bytes)
{
	uint64_t addr = CLR_IMAGE_BASE + m->used;

	m->used += (bytes + 15) / 16 * 16;
	if (CLR_IMAGE_BASE + m->used > CLR_IMAGE_CODE)
		abort();
	return addr;
}

static inline uint64_t image_put(struct clr_image *m, const void *data, size_t len)
{
	uint64_t addr = image_alloc(m, len);

	memcpy(image_at(m, addr), data, len);
	return addr;
}

static inline int image_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct clr_image *m = ctx;

	m->pieces++;
	if (addr < CLR_IMAGE_BASE || addr - CLR_IMAGE_BASE > CLR_IMAGE_BYTES ||
	    len > CLR_IMAGE_BYTES - (addr - CLR_IMAGE_BASE) ||
	    (addr < m->hole_end && addr + len > m->hole))
		return -EFAULT;
	memcpy(buf, m->bytes + (addr - CLR_IMAGE_BASE), len);
	return 0;
}

static inline int image_read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	for (size_t i = 0; i < n; i++)
		pieces[i].ok = !pieces[i].len ||
			       !image_read(ctx, pieces[i].addr, pieces[i].buf, pieces[i].len);
	return 0;
}

/* The path to a fragment. Keeps the last table's slot, so that a test can empty it. */
static inline void image_ranges(struct clr_image *m, uint64_t fragment)
{
	uint64_t table = m->range_map;

	for (int level = 5; level >= 1; level--) {
		uint64_t next = level > 1 ? image_alloc(m, 2048) : fragment;

		m->slot = table + 8 * (CLR_IMAGE_CODE >> (17 + 8 * (level - 1)) & 255);
		image_set_u64(m, m->slot, next);
		table = next;
	}
}

static inline void image_descriptor(struct clr_image *m)
{
	uint64_t text = image_put(m, clr_net10, sizeof(clr_net10) - 1),
		 table = image_alloc(m, 8 * CLR_NET10_POINTERS);

	image_set_u64(m, table + 8 * CLR_NET10_RANGE_MAP, m->range_map);
	image_set_u64(m, m->descriptor, 0x0043414443434e44);
	image_set(m, m->descriptor + 8, 1, 4);
	image_set(m, m->descriptor + 12, sizeof(clr_net10) - 1, 4);
	image_set_u64(m, m->descriptor + 16, text);
	image_set(m, m->descriptor + 24, CLR_NET10_POINTERS, 4);
	image_set_u64(m, m->descriptor + 32, table);
}

static inline void image_begin(struct clr_image *m, unsigned heap_flags)
{
	memset(m, 0, sizeof(*m));
	m->descriptor = image_alloc(m, 40);
	m->range_map = image_alloc(m, 2048);
	m->fragment = image_alloc(m, 32);
	m->section = image_alloc(m, 72);
	m->node = image_alloc(m, 48);
	m->map = image_alloc(m, CLR_IMAGE_CODE_BYTES / 64);
	image_descriptor(m);
	image_ranges(m, m->fragment);
	image_set_u64(m, m->fragment + 8, CLR_IMAGE_CODE);
	image_set_u64(m, m->fragment + 16, CLR_IMAGE_CODE + CLR_IMAGE_CODE_BYTES);
	image_set_u64(m, m->fragment + 24, m->section);
	image_set_u64(m, m->section, CLR_IMAGE_CODE);
	image_set_u64(m, m->section + 8, CLR_IMAGE_CODE + CLR_IMAGE_CODE_BYTES);
	image_set(m, m->section + 16, heap_flags, 4);
	image_set_u64(m, m->section + 40, m->node);
	image_set_u64(m, m->node + 16, CLR_IMAGE_CODE);
	image_set_u64(m, m->node + 24, CLR_IMAGE_CODE + CLR_IMAGE_CODE_BYTES);
	image_set_u64(m, m->node + 32, CLR_IMAGE_CODE);
	image_set_u64(m, m->node + 40, m->map);
}

/* The metadata of App.dll. Types 2: App.Plain, 3: App.Pair`2; methods 1: Plain.Run, 2: Pair.Put. */
static inline unsigned char *image_metadata(size_t *ret_len)
{
	static const uint8_t run[] = {0, 1, 8, 14}, put[] = {0x20, 1, 1, 0x13, 1};
	struct metadata_build b = metadata_begin();
	uint32_t app = metadata_string(&b, "App");

	metadata_row(&b, CLR_MODULE, "22222", 0, metadata_string(&b, "App.dll"), 1, 0, 0);
	outbuf_put(&b.guids, "0123456789abcdef", 16);
	metadata_row(&b, CLR_ASSEMBLY, "422224222", 0, 1, 0, 0, 0, 0, 0, app, 0);
	metadata_row(&b, CLR_TYPE_DEF, "422222", 0, metadata_string(&b, "<Module>"), 0, 0, 1, 1);
	metadata_row(&b, CLR_TYPE_DEF, "422222", 0, metadata_string(&b, "Plain"), app, 0, 1, 1);
	metadata_row(&b, CLR_TYPE_DEF, "422222", 0, metadata_string(&b, "Pair`2"), app, 0, 1, 2);
	metadata_row(&b, CLR_METHOD_DEF, "422222", 0, 0, 0, metadata_string(&b, "Run"),
		     metadata_blob(&b, run, sizeof(run)), 1);
	metadata_row(&b, CLR_METHOD_DEF, "422222", 0, 0, 0, metadata_string(&b, "Put"),
		     metadata_blob(&b, put, sizeof(put)), 1);
	return metadata_end(&b, ret_len);
}

/* A module of Reflection.Emit. */
static inline uint64_t image_dynamic_module(struct clr_image *m, const void *metadata, size_t len)
{
	uint64_t module = image_alloc(m, 856), data = image_alloc(m, len + 4);

	image_set(m, data, len, 4);
	memcpy(image_at(m, data + 4), metadata, len);
	image_set_u64(m, module + 840, data);
	return module;
}

/* A module from a file, whose bytes the runtime has in file layout. */
static inline uint64_t image_file_module(struct clr_image *m, const void *metadata, size_t len)
{
	uint64_t module = image_alloc(m, 856), file = image_alloc(m, 64),
		 image = image_alloc(m, 136), layout = image_alloc(m, 24);
	uint64_t pe = image_alloc(m, 0x420 + len), section = pe + 0x84 + 20 + 240;

	memcpy(image_at(m, pe), "MZ", 2);
	image_set(m, pe + 60, 0x80, 4);
	memcpy(image_at(m, pe + 0x80), "PE", 2);
	image_set(m, pe + 0x84 + 2, 1, 2);    /* one section */
	image_set(m, pe + 0x84 + 16, 240, 2); /* optional header */
	image_set(m, pe + 0x84 + 20, 0x20b, 2);
	image_set(m, pe + 0x84 + 20 + 112 + 8 * 14, 0x2000, 4); /* CLI header */
	image_set(m, section + 12, 0x2000, 4);
	image_set(m, section + 16, 0x20 + len, 4);
	image_set(m, section + 20, 0x400, 4);
	image_set(m, pe + 0x400 + 8, 0x2020, 4);
	image_set(m, pe + 0x400 + 12, len, 4);
	memcpy(image_at(m, pe + 0x420), metadata, len);
	image_set_u64(m, layout + 8, pe);
	image_set(m, layout + 16, 0x420 + len, 4);
	image_set_u64(m, image + 128, layout);
	image_set_u64(m, file + 8, image);
	image_set_u64(m, module + 216, file);
	return module;
}

/* A type; generic if it has arguments. */
static inline uint64_t image_type(struct clr_image *m, uint64_t module, uint32_t rid,
				  const uint64_t *args, size_t nargs)
{
	uint64_t type = image_alloc(m, 64), dictionaries = image_alloc(m, 24) + 8,
		 dictionary = image_alloc(m, 8 * nargs + 8);

	image_set(m, type, nargs ? IMAGE_GENERIC : 0, 4);
	image_set(m, type + 8, (uint64_t)rid << 8, 4);
	image_set_u64(m, type + 24, module);
	image_set_u64(m, type + 48, nargs ? dictionaries : 0);
	image_set(m, dictionaries - 4, 1, 2);
	image_set(m, dictionaries - 2, nargs, 2);
	image_set_u64(m, dictionaries, dictionary);
	for (size_t i = 0; i < nargs; i++)
		image_set_u64(m, dictionary + 8 * i, args[i]);
	return type;
}

/* The type of an array; rank 0: a vector. For a pointer or by-ref: its handle. */
static inline uint64_t image_array(struct clr_image *m, uint64_t element, unsigned rank)
{
	uint64_t type = image_alloc(m, 64), class = image_alloc(m, 80);

	image_set(m, type, 0x80080000u | (rank ? 0 : 0x20000u), 4);
	image_set_u64(m, type + 40, class);
	image_set_u64(m, type + 48, element);
	image_set(m, class + 72, rank, 1);
	return type;
}

static inline uint64_t image_pointer(struct clr_image *m, uint64_t to, unsigned element_type)
{
	uint64_t desc = image_alloc(m, 24);

	image_set(m, desc, element_type, 4);
	image_set_u64(m, desc + 16, to);
	return desc | 2;
}

/* A method in a chunk of its own, behind other methods of that chunk. */
static inline uint64_t image_method(struct clr_image *m, uint64_t type, uint32_t rid,
				    unsigned index)
{
	uint64_t chunk = image_alloc(m, 24 + 8 * index + 64), method = chunk + 24 + 8 * index;

	image_set_u64(m, chunk, type);
	image_set(m, chunk + 18, rid >> 12, 2);
	image_set(m, method, rid & 0xfff, 2);
	image_set(m, method + 2, index, 1);
	return method;
}

static inline uint64_t image_dynamic_method(struct clr_image *m, uint64_t type, const char *name,
					    const void *sig, size_t len)
{
	uint64_t method = image_method(m, type, 0, 0);

	image_set(m, method + 6, IMAGE_DYNAMIC, 2);
	image_set_u64(m, method + 16, image_put(m, sig, len));
	image_set(m, method + 24, len, 4);
	image_set_u64(m, method + 32, image_put(m, name, strlen(name) + 1));
	return method;
}

static inline void image_nibble(struct clr_image *m, uint32_t offset, unsigned nibble)
{
	uint64_t word = m->map + offset / 256 * 4;
	unsigned shift = 28 - 4 * (offset / 32 % 8);
	uint32_t value;

	memcpy(&value, image_at(m, word), 4);
	image_set(m, word, (value & ~(15u << shift)) | nibble << shift, 4);
}

/* A method's code at an offset of the heap, with one unwind info for itself and one for each
 * funclet. */
static inline void image_body(struct clr_image *m, uint32_t offset, uint32_t bytes, uint64_t method,
			      uint32_t funclets)
{
	uint64_t header = image_alloc(m, 36 + 12 * (funclets + 1));
	uint32_t each = bytes / (funclets + 1);

	image_set_u64(m, header + 24, method);
	image_set(m, header + 32, funclets + 1, 4);
	for (uint32_t i = 0; i <= funclets; i++) {
		image_set(m, header + 36 + 12 * i, offset + i * each, 4);
		image_set(m, header + 40 + 12 * i,
			  i < funclets ? offset + (i + 1) * each : offset + bytes, 4);
	}
	image_set_u64(m, CLR_IMAGE_CODE + offset - 8, header);
	image_nibble(m, offset, 1 + offset % 32 / 4);
}

/* Moves a part of a body (0: the body itself) and its unwind info to other offsets of the heap. */
static inline void image_unwind(struct clr_image *m, uint32_t offset, uint32_t part, uint32_t at,
				const void *info, size_t len, const void *code, size_t bytes)
{
	uint64_t header;
	uint32_t begin;

	memcpy(&header, image_at(m, CLR_IMAGE_CODE + offset - 8), 8);
	memcpy(&begin, image_at(m, header + 36 + 12 * part), 4);
	image_set(m, header + 44 + 12 * part, at, 4);
	memcpy(image_at(m, CLR_IMAGE_CODE + at), info, len);
	memcpy(image_at(m, CLR_IMAGE_CODE + begin), code, bytes);
}

/* The runtime's debug info about the code of the body at an offset. */
static inline void image_debug_info(struct clr_image *m, uint32_t offset, const void *data,
				    size_t len)
{
	uint64_t header;

	memcpy(&header, image_at(m, CLR_IMAGE_CODE + offset - 8), 8);
	image_set_u64(m, header, image_put(m, data, len));
}

/* The path of a module's file. */
static inline void image_path(struct clr_image *m, uint64_t module, const char *path)
{
	uint64_t units = image_alloc(m, 2 * strlen(path) + 2);

	for (size_t i = 0; path[i]; i++)
		image_set(m, units + 2 * i, (unsigned char)path[i], 2);
	image_set_u64(m, module + 200, units);
}

static inline void image_stubs(struct clr_image *m, uint32_t offset, unsigned kind)
{
	image_set_u64(m, CLR_IMAGE_CODE + offset - 8, kind);
	image_nibble(m, offset, 1 + offset % 32 / 4);
}

#endif
