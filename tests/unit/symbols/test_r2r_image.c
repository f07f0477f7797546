#include "symbols/bundle.h"
#include "dotnet/r2r_debug_info.h"
#include "dotnet/r2r_functions.h"
#include "elf/budget.h"
#include "symbols/r2r_image.h"
#include "symbols/r2r_lines.h"
#include "dotnet/r2r_native.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/fake_memory.h"
#include "tests/unit/r2r_builder.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define CODE_BYTES 0x80
#define RUN "void [App] Acme.P::Run()[PreJIT]"
#define MVID "0123456789abcdef"
#define DEF(rid) ((uint8_t)((rid) << 2)) /* in signatures */

/* Method entry points: rid 3 has runtime function 0, rid 4 has 2; 1 and 2 have none. */
static const uint8_t methods[] = {
	4 << 3, 1, 1 << 1, 1 << 1, (2 | 1 << 2) << 1, (3 | 2 << 2) << 1, 0 << 2, 2 << 2};
/* Instance entry points: Acme.Box`1[System.Int32]::Get has runtime function 3. One bucket with one
 * entry. */
static const uint8_t instances[] = {0,    2,      4, 0xaa, 1 << 1, 0x40,  0x15,
				    0x12, DEF(2), 1, 0x08, 1,      3 << 2};

/* Assembly App: Acme.Box`1 with Get (1) and Set (2), Acme.P with Run (3) and Stop (4). */
static struct metadata_build app_metadata(void)
{
	static const char *const types[][2] = {{"", "<Module>"}, {"Acme", "Box`1"}, {"Acme", "P"}};
	static const char *const names[] = {"Get", "Set", "Run", "Stop"};
	struct metadata_build b = metadata_begin();
	uint32_t nothing = BLOB_OF(&b, 0x00, 0, 0x01);

	metadata_row(&b, CLR_MODULE, "22222", 0, metadata_string(&b, "App.dll"), 1, 0, 0);
	outbuf_put(&b.guids, MVID, 16);
	metadata_row(&b, CLR_ASSEMBLY, "422224222", 0, 1, 0, 0, 0, 0, 0, metadata_string(&b, "App"),
		     0);
	for (uint32_t i = 0; i < 3; i++)
		metadata_row(&b, CLR_TYPE_DEF, "422222", 0, metadata_string(&b, types[i][1]),
			     metadata_string(&b, types[i][0]), 0, 1, i < 2 ? 1 : 3);
	for (uint32_t i = 0; i < 4; i++)
		metadata_row(&b, CLR_METHOD_DEF, "422222", 0, 0, 0, metadata_string(&b, names[i]),
			     nothing, 1);
	return b;
}

/* Code of 0x80 bytes; functions begin and end at these offsets. */
static uint32_t put_code(struct r2r_build *b)
{
	static const unsigned char code[CODE_BYTES];
	uint32_t rva = r2r_rva(b);

	r2r_put(b, code, sizeof(code));
	return rva;
}

static void put_functions(struct r2r_build *b, uint32_t code, const uint32_t (*functions)[2],
			  size_t n)
{
	struct outbuf table = outbuf_to(-1);

	for (size_t i = 0; i < n; i++) {
		metadata_u32(&table, code + functions[i][0]);
		metadata_u32(&table, code + functions[i][1]);
		metadata_u32(&table, 0);
	}
	r2r_section(b, R2R_RUNTIME_FUNCTIONS, table.data, table.len);
	outbuf_close(&table);
}

/* Run, directly followed by its funclet; a gap; Stop; a gap; a funclet of Stop; Get. */
static const uint32_t five[][2] = {
	{0, 0x10}, {0x10, 0x18}, {0x20, 0x28}, {0x30, 0x38}, {0x40, 0x50}};

static struct r2r_build begin_app(uint32_t *ret_code)
{
	struct metadata_build metadata = app_metadata();
	struct r2r_build b = r2r_begin();

	r2r_metadata(&b, &metadata);
	*ret_code = put_code(&b);
	r2r_section(&b, R2R_METHOD_ENTRY_POINTS, methods, sizeof(methods));
	return b;
}

static int open_built(struct r2r_build *b, const struct r2r_assembly_opener *beside,
		      struct symbol_provider **ret)
{
	static const struct r2r_assembly_opener nothing;
	struct parse_error err = {0};
	struct pe_file file = {0};
	size_t len;
	unsigned char *data = r2r_end(b, &len);

	file.bytes = len;
	file.fd = r2r_file(data, len);
	int error = r2r_image_open(&file, beside ? beside : &nothing, ret, &err);

	assert_true(!error || err.what);
	close(file.fd);
	return error;
}

static struct symbol_provider *must_open(struct r2r_build *b,
					 const struct r2r_assembly_opener *beside)
{
	struct symbol_provider *p = NULL;

	assert_int_equal(open_built(b, beside, &p), 0);
	return p;
}

/* The method that covers rva: its name and its range [start, end). */
static void assert_code(struct symbol_provider *p, uint32_t rva, const char *name, uint32_t start,
			uint32_t end)
{
	struct symbol s;

	assert_int_equal(symbol_provider_find(p, r2r_file_off(rva), 0, &s), 0);
	assert_string_equal(s.name, name);
	assert_int_equal(s.name_len, strlen(name));
	assert_int_equal(s.start, r2r_file_off(start));
	assert_int_equal(s.end, r2r_file_off(end));
	assert_int_equal(s.source, name[0] == '0' ? SYMBOL_BOUNDS : SYMBOL_R2R);
	assert_int_equal(s.piece, symbol_provider_piece(p, r2r_file_off(rva), 0));
}

static void assert_nothing(struct symbol_provider *p, uint32_t rva)
{
	struct symbol s;

	assert_int_equal(symbol_provider_find(p, r2r_file_off(rva), 0, &s), -ENOENT);
	assert_int_equal(symbol_provider_piece(p, r2r_file_off(rva), 0), SYMBOL_NO_PIECE);
}

static void methods_and_funclets_have_names_and_gaps_have_none(void **state)
{
	uint32_t code, thunks;
	struct r2r_build b = begin_app(&code);
	struct symbol s;

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_section(&b, R2R_INSTANCE_ENTRY_POINTS, instances, sizeof(instances));
	thunks = R2R_SECTION(&b, R2R_METHOD_CALL_THUNKS, 1, 2, 3, 4);
	r2r_header(&b, 0);
	struct symbol_provider *p = must_open(&b, NULL);

	assert_code(p, code, RUN, code, code + 0x18);
	assert_code(p, code + 0x17, RUN, code, code + 0x18);
	assert_nothing(p, code - 1);
	assert_nothing(p, code + 0x18);
	assert_code(p, code + 0x20, "void [App] Acme.P::Stop()[PreJIT]", code + 0x20, code + 0x28);
	assert_nothing(p, code + 0x28);
	assert_code(p, code + 0x30, "void [App] Acme.Box`1[System.Int32]::Get()[PreJIT]",
		    code + 0x30, code + 0x38);
	/* A funclet far from its method has the method's name and an offset from its beginning. */
	assert_code(p, code + 0x48, "void [App] Acme.Box`1[System.Int32]::Get()[PreJIT]",
		    code + 0x40, code + 0x50);
	assert_int_equal(symbol_provider_find(p, r2r_file_off(code + 0x48), 0, &s), 0);
	assert_int_equal(s.base, r2r_file_off(code + 0x30));
	assert_nothing(p, code + 0x50);
	assert_code(p, thunks + 3, "stub ReadyToRun<MethodCallThunk>", thunks, thunks + 4);
	assert_nothing(p, R2R_RVA);
	assert_int_equal(r2r_image_pieces(p), 5);
	assert_int_equal(r2r_image_piece_file_off(p, 0), r2r_file_off(code));
	symbol_provider_free(p);
}

static void arm64_functions_end_by_their_unwind_information(void **state)
{
	uint32_t code, words[6];
	struct r2r_build b = begin_app(&code);
	uint32_t unwind = r2r_rva(&b);

	(void)state;
	b.machine = 0xaa64 ^ 0x7b79;
	r2r_u32(&b, 0xffc00000 | 0x10 / 4);
	r2r_u32(&b, 0x08 / 4);
	r2r_u32(&b, 0x08 / 4);
	for (uint32_t i = 0; i < 3; i++) {
		words[2 * i] = code + i * 0x10;
		words[2 * i + 1] = unwind + i * 4;
	}
	r2r_section(&b, R2R_RUNTIME_FUNCTIONS, words, sizeof(words));
	r2r_header(&b, 0);
	struct symbol_provider *p = must_open(&b, NULL);

	assert_code(p, code + 0x17, RUN, code, code + 0x18);
	assert_nothing(p, code + 0x18);
	assert_code(p, code + 0x20, "void [App] Acme.P::Stop()[PreJIT]", code + 0x20, code + 0x28);
	assert_nothing(p, code + 0x28);
	symbol_provider_free(p);
}

static void cold_parts_belong_to_their_methods(void **state)
{
	uint32_t code, map[] = {3, 0, 4, 2};
	struct r2r_build b = begin_app(&code);

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_section(&b, R2R_HOT_COLD_MAP, map, sizeof(map));
	r2r_header(&b, 0);
	struct symbol_provider *p = must_open(&b, NULL);

	assert_code(p, code + 0x20, "void [App] Acme.P::Stop()[PreJIT]", code + 0x20, code + 0x28);
	assert_code(p, code + 0x30, "void [App] Acme.P::Run()[PreJit-cold]", code + 0x30,
		    code + 0x38);
	assert_code(p, code + 0x40, "void [App] Acme.P::Stop()[PreJit-cold]", code + 0x40,
		    code + 0x50);
	symbol_provider_free(p);
}

/* The file of assembly App, without code. */
static int open_app(void *ctx, const char *name, struct pe_file *ret_file)
{
	struct metadata_build metadata = app_metadata();
	struct r2r_build b = r2r_begin();
	size_t len;

	if (strcmp(name, "App.dll") != 0)
		return -ENOENT;
	++*(int *)ctx;
	r2r_metadata(&b, &metadata);
	r2r_header(&b, 0);
	unsigned char *data = r2r_end(&b, &len);

	*ret_file = (struct pe_file){r2r_file(data, len), 0, len};
	return 0;
}

/* A composite image of App, whose instance entry points include modules: 2 is App. */
static struct r2r_build begin_composite(const char *mvid, uint32_t *ret_code)
{
	static const uint8_t of_module[] = {0,    2,      4, 0xaa, 1 << 1, 0x40, 0x3f,   2, 0x15,
					    0x12, DEF(2), 1, 0x3f, 2,      0x12, DEF(3), 1, 3 << 2};
	struct metadata_build manifest = metadata_begin();
	struct r2r_build b = r2r_begin();
	uint32_t component[4] = {0};
	unsigned char *data;
	size_t len;

	*ret_code = put_code(&b);
	r2r_section(&b, R2R_METHOD_ENTRY_POINTS, methods, sizeof(methods));
	r2r_core(&b, &component[2], &component[3]);
	put_functions(&b, *ret_code, five, 5);
	r2r_section(&b, R2R_INSTANCE_ENTRY_POINTS, of_module, sizeof(of_module));
	r2r_section(&b, R2R_COMPONENT_ASSEMBLIES, component, sizeof(component));
	metadata_row(&manifest, CLR_ASSEMBLY_REF, "222242222", 1, 0, 0, 0, 0, 0,
		     metadata_string(&manifest, "App"), 0, 0);
	data = metadata_end(&manifest, &len);
	r2r_section(&b, R2R_MANIFEST_METADATA, data, len);
	free(data);
	r2r_section(&b, R2R_MANIFEST_MVIDS, mvid, 16);
	r2r_header(&b, 1);
	return b;
}

static void composite_images_take_names_from_the_assemblies_beside(void **state)
{
	uint32_t code;
	struct r2r_build b = begin_composite(MVID, &code);
	int opened = 0;
	struct r2r_assembly_opener beside = {.open = open_app, .ctx = &opened};

	(void)state;
	struct symbol_provider *p = must_open(&b, &beside);

	assert_int_equal(opened, 0);
	assert_code(p, code + 0x17, RUN, code, code + 0x18);
	assert_code(p, code + 0x37, "void [App] Acme.Box`1[Acme.P]::Get()[PreJIT]", code + 0x30,
		    code + 0x38);
	assert_int_equal(opened, 1);
	symbol_provider_free(p);
}

static void assembly_of_another_build_gives_no_names(void **state)
{
	uint32_t code;
	struct r2r_build b = begin_composite("fedcba9876543210", &code);
	int opened = 0;
	struct r2r_assembly_opener beside = {.open = open_app, .ctx = &opened};
	char place[16];

	(void)state;
	struct symbol_provider *p = must_open(&b, &beside);

	snprintf(place, sizeof(place), "0x%x", code);
	assert_code(p, code + 0x17, place, code, code + 0x18);
	assert_nothing(p, code + 0x18);
	symbol_provider_free(p);
}

static void code_of_a_missing_assembly_is_placed(void **state)
{
	uint32_t code;
	struct r2r_build b = begin_composite(MVID, &code);
	char place[16];

	(void)state;
	struct symbol_provider *p = must_open(&b, NULL);

	snprintf(place, sizeof(place), "0x%x", code + 0x20);
	assert_code(p, code + 0x20, place, code + 0x20, code + 0x28);
	symbol_provider_free(p);
}

static void unknown_things_are_reported(void **state)
{
	struct symbol_provider *p = NULL;
	uint32_t code;
	struct r2r_build b = begin_app(&code);

	(void)state;
	put_functions(&b, code, five, 5);
	b.major = 5;
	r2r_header(&b, 0);
	assert_int_equal(open_built(&b, NULL, &p), -ENOTSUP);
	b = begin_app(&code);
	put_functions(&b, code, five, 5);
	b.machine = 0x14c;
	r2r_header(&b, 0);
	assert_int_equal(open_built(&b, NULL, &p), -ENOTSUP);
	b = r2r_begin();
	put_code(&b);
	assert_int_equal(open_built(&b, NULL, &p), -EBADMSG); /* no CLI header */
	b = begin_app(&code);
	r2r_header(&b, 0);
	assert_int_equal(open_built(&b, NULL, &p), -EBADMSG); /* no code */
	b = begin_app(&code);
	put_functions(&b, code, five, 2);
	r2r_header(&b, 0);
	assert_int_equal(open_built(&b, NULL, &p),
			 -EBADMSG); /* Stop begins after the last function */
}

/* A hole costs its maker nothing, but the table would stay in memory. */
static void oversized_instance_tables_are_refused(void **state)
{
	static const size_t sizes[] = {32 << 10, 1 << 20};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint8_t *table = calloc(1, sizes[i]);
		struct symbol_provider *p = NULL;
		uint32_t code;
		struct r2r_build b = begin_app(&code);
		size_t len;

		memcpy(table, instances, sizeof(instances));
		put_functions(&b, code, five, 5);
		r2r_section(&b, R2R_INSTANCE_ENTRY_POINTS, table, sizes[i]);
		r2r_header(&b, 0);
		unsigned char *data = r2r_end(&b, &len);
		struct pe_file file = {r2r_file(data, len), 0, len};

		assert_int_equal(r2r_image_open(&file, &(struct r2r_assembly_opener){0}, &p, NULL),
				 i ? -EBADMSG : 0);
		symbol_provider_free(p);
		close(file.fd);
		free(table);
	}
}

/* Metadata of hundreds of megabytes in a hole would stay in memory too. */
static void hollow_images_give_no_metadata(void **state)
{
	struct symbol_provider *p = NULL;
	uint32_t code;
	struct r2r_build b = begin_app(&code);
	char place[16];
	size_t len;

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_header(&b, 0);
	unsigned char *data = r2r_end(&b, &len);
	struct pe_file file = {r2r_file(data, len), 0, 64 << 20};

	assert_int_equal(ftruncate(file.fd, 64 << 20), 0);
	assert_int_equal(r2r_image_open(&file, &(struct r2r_assembly_opener){0}, &p, NULL), 0);
	snprintf(place, sizeof(place), "0x%x", code);
	assert_code(p, code, place, code, code + 0x18);
	symbol_provider_free(p);
	close(file.fd);
}

/* A small file can claim many methods, and a target can map it under many names. */
static void empty_entries_of_a_process_are_bounded(void **state)
{
	enum { BLOCKS = R2R_FUNCTIONS_METHODS_MAX / 16, PADDING = 32 };
	const uint32_t header = R2R_FUNCTIONS_METHODS_MAX << 6 | 7;
	static unsigned char table[sizeof(header) + BLOCKS + PADDING];
	struct symbol_provider *p = NULL;
	uint32_t code;

	(void)state;
	memcpy(table, &header, sizeof(header));
	memset(table + sizeof(header), 6, BLOCKS + PADDING);
	fake_clock_stop();
	elf_budget_reset_work();
	elf_budget_work_for(1);
	/* An eighth of it counts twice. */
	elf_budget_worked(ELF_BUDGET_WORK_MAX / 9 * 8);
	for (int i = 0; i < 2; i++) {
		struct metadata_build metadata = app_metadata();
		struct r2r_build b = r2r_begin();

		r2r_metadata(&b, &metadata);
		put_functions(&b, put_code(&b), five, 5);
		r2r_section(&b, R2R_METHOD_ENTRY_POINTS, table, sizeof(table));
		r2r_header(&b, 0);
		assert_int_equal(open_built(&b, NULL, &p), i ? -E2BIG : 0);
	}
	symbol_provider_free(p);
	elf_budget_work_for(2);
	struct r2r_build b = begin_app(&code);

	put_functions(&b, code, five, 5);
	r2r_header(&b, 0);
	symbol_provider_free(must_open(&b, NULL));
	elf_budget_reset_work();
}

static bool give_memory(void *ctx)
{
	fake_memory_taken = 0;
	return !ctx;
}

/* Many assemblies may share small metadata. Tables of other images may be freed. */
static void metadata_is_not_read_when_half_of_the_memory_is_gone(void **state)
{
	(void)state;
	for (int freed = 0; freed < 2; freed++) {
		uint32_t code;
		struct r2r_assembly_opener beside = {.make_room = freed ? give_memory : NULL};
		struct r2r_build b = begin_app(&code);
		char place[16];

		put_functions(&b, code, five, 5);
		r2r_header(&b, 0);
		struct symbol_provider *p = must_open(&b, &beside);

		fake_memory_taken = FAKE_MEMORY_BYTES / 2 + 1;
		snprintf(place, sizeof(place), "0x%x", code);
		assert_code(p, code, freed ? RUN : place, code, code + 0x18);
		fake_memory_taken = 0;
		symbol_provider_free(p);
	}
}

static int open_no_pdb(void *ctx, const char *name, int *ret_fd)
{
	(void)ctx;
	(void)name;
	(void)ret_fd;
	return -ENOENT;
}

static void tables_for_lines_count_for_the_limit(void **state)
{
	static const uint8_t debug_info[4096];
	struct pdb_budget_total rooms = {.left = 2 * (sizeof(debug_info) + 5 * 12)};
	struct pdb_budget room = {&rooms, 0};
	struct pdb_places places = {.open_beside = open_no_pdb, .budget = &room};
	struct line_source *lines = NULL;
	struct symbol_provider *p = NULL;
	uint32_t code;
	struct r2r_build b = begin_app(&code);
	size_t len;

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_section(&b, R2R_DEBUG_INFO, debug_info, sizeof(debug_info));
	r2r_header(&b, 0);
	unsigned char *data = r2r_end(&b, &len);
	struct pe_file file = {r2r_file(data, len), 0, len};

	assert_int_equal(r2r_image_open(&file, &(struct r2r_assembly_opener){0}, &p, NULL), 0);
	/* They fit, but there is no PDB. */
	assert_int_equal(r2r_lines_open(&file, p, &places, &lines), -ENOENT);
	assert_int_equal(rooms.refused, 0);
	assert_int_equal(room.taken, 0);
	assert_int_equal(rooms.left, 2 * (sizeof(debug_info) + 5 * 12));
	rooms.left--;
	assert_int_equal(r2r_lines_open(&file, p, &places, &lines), -E2BIG);
	assert_int_equal(rooms.refused, 1);
	assert_int_equal(room.taken, 0);
	symbol_provider_free(p);
	close(file.fd);
}

static void assert_il(struct r2r_debug_info *d, uint32_t function, uint32_t native, int error,
		      uint32_t expected)
{
	uint32_t il = expected;

	for (int again = 0; again < 2; again++)
		assert_int_equal(r2r_debug_info_find_il(d, function, native, &il), error);
	assert_int_equal(il, expected);
}

/* An array with one method. Code at 0 is the prolog, at 4 is IL 7, at 6 is none. */
static void places_have_the_il_of_the_last_point_before_them(void **state)
{
	static const uint8_t section[] = {1 << 3, 1,    1 << 1, 1 << 1, 1 << 1, 1 << 1, 0,
					  0x06,   0x03, 0x01,   0x94,   0x02,   0x22,   0x00};
	const uint64_t kept = 2 * sizeof(struct il_point);
	struct pdb_budget_total rooms = {.left = 2 * kept};
	struct pdb_budget room = {&rooms, 0};
	struct r2r_debug_info whole = {section, sizeof(section), 9, {.budget = &room}},
			      cut = {section, sizeof(section) - 3, 9, {0}};

	(void)state;
	assert_il(&whole, 0, 0, 0, 0);
	assert_il(&whole, 0, 3, 0, 0);
	assert_il(&whole, 0, 4, 0, 7);
	assert_il(&whole, 0, 100, 0, 7);
	assert_il(&whole, 1, 0, -ENOENT, 0);
	assert_int_equal(room.taken, kept);
	r2r_debug_info_free(&whole);
	assert_int_equal(room.taken, 0);
	rooms.left--;
	whole = (struct r2r_debug_info){section, sizeof(section), 9, {.budget = &room}};
	assert_il(&whole, 0, 4, -ENOENT, 0);
	r2r_debug_info_free(&whole);
	assert_il(&cut, 0, 0, -ENOENT, 0);
	r2r_debug_info_free(&cut);
}

static void an_image_cut_anywhere_does_no_harm(void **state)
{
	uint32_t code;
	struct r2r_build b = begin_app(&code);
	struct symbol s;
	size_t len;

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_section(&b, R2R_INSTANCE_ENTRY_POINTS, instances, sizeof(instances));
	r2r_header(&b, 0);
	unsigned char *data = r2r_end(&b, &len);
	int fd = r2r_file(data, len), failed = 0;

	for (size_t n = len; n--;) {
		struct symbol_provider *p = NULL;

		assert_int_equal(ftruncate(fd, (off_t)n), 0);
		/* A file of that size, and one that was truncated after its size was read. */
		for (int late = 0; late < 2; late++) {
			struct pe_file file = {fd, 0, late ? len : n};
			int error =
				r2r_image_open(&file, &(struct r2r_assembly_opener){0}, &p, NULL);

			failed += error != 0;
			if (!error)
				symbol_provider_find(p, r2r_file_off(code), 0, &s);
			if (!error)
				symbol_provider_free(p);
		}
	}
	assert_true(failed > 100);
	close(fd);
}

static void numbers_of_all_lengths_are_read(void **state)
{
	static const struct {
		uint8_t bytes[5];
		uint32_t value;
		int32_t as_signed;
	} cases[] = {
		{{0x00}, 0, 0},
		{{0xfe}, 127, -1},
		{{0x02}, 1, 1},
		{{0x01, 0x01}, 64, 64},
		{{0xfd, 0xff}, 0x3fff, -1},
		{{0xfb, 0xff, 0xff}, 0x1fffff, -1},
		{{0xf7, 0xff, 0xff, 0x7f}, 0x7ffffff, 0x7ffffff},
		{{0x0f, 0x78, 0x56, 0x34, 0x92}, 0x92345678, (int32_t)0x92345678},
	};
	static const uint8_t bad[] = {0x1f, 1, 2, 3, 4, 5, 6, 7, 8};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct reader r = reader_of(cases[i].bytes, sizeof(cases[i].bytes));

		assert_int_equal(r2r_native_u32(&r), cases[i].value);
		r = reader_of(cases[i].bytes, sizeof(cases[i].bytes));
		assert_int_equal(r2r_native_i32(&r), cases[i].as_signed);
	}
	struct reader r = reader_of(bad, sizeof(bad));

	assert_int_equal(r2r_native_u32(&r), 0);
	assert_true(r.failed);
	r = reader_of(bad, 0);
	r2r_native_u32(&r);
	assert_true(r.failed);
}

static void arrays_contain_exactly_the_elements_that_were_put(void **state)
{
	/* 17 elements in two blocks: only 5 in the first, only 16 in the second. */
	static const uint8_t two[] = {
		0x11, 0x01 /* 17 << 2 in two bytes */, 2, 4, 5 << 3, 11 << 1, 0 << 3, 22 << 1};
	struct r2r_array a;
	struct reader r;

	(void)state;
	assert_int_equal(r2r_array_open(two, sizeof(two), &a), 0);
	assert_int_equal(a.n, 17);
	for (uint32_t i = 0; i < 20; i++) {
		int expected = i == 5 || i == 16 ? 0 : -ENOENT;

		assert_int_equal(r2r_array_get(&a, i, &r), expected);
		if (!expected)
			assert_int_equal(r2r_native_u32(&r), i == 5 ? 11 : 22);
	}
	assert_int_equal(r2r_array_open(two, 3, &a), -EBADMSG); /* too short for its blocks */
	assert_int_equal(r2r_array_open(two, 0, &a), -EBADMSG);
}

/* The host is this program: its bundle.c contains the mark. In the copy the word before the mark is
 * the bundle's offset. */
static int make_bundle(const unsigned char *image, size_t image_bytes, const char *id,
		       uint64_t *ret_at)
{
	static const unsigned char mark[] = {0x8b, 0x12, 0x02, 0xb9, 0x6a, 0x61, 0x20, 0x38,
					     0x72, 0x7b, 0x93, 0x02, 0x14, 0xd7, 0xa0, 0x32,
					     0x13, 0xf5, 0xb9, 0xe6, 0xef, 0xae, 0x33, 0x18,
					     0xee, 0x3b, 0x2d, 0xce, 0x24, 0xb3, 0x6a, 0xae};
	struct outbuf manifest = outbuf_to(-1);
	uint64_t zero = 0, bytes = image_bytes, at;
	char *host = NULL;
	size_t len;

	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/exe", (size_t)1 << 30, &host, &len), 0);
	host = realloc(host, len + image_bytes + 64);
	memset(host + len, 0, 64);
	at = len + 64;
	metadata_u32(&manifest, 6);
	metadata_u32(&manifest, 0);
	metadata_u32(&manifest, 2);
	outbuf_char(&manifest, (char)strlen(id));
	outbuf_str(&manifest, id);
	for (int i = 0; i < 5; i++)
		outbuf_put(&manifest, &zero, 8);
	for (uint64_t compressed = 0; compressed < 2; compressed++) {
		outbuf_put(&manifest, &at, 8);
		outbuf_put(&manifest, &bytes, 8);
		outbuf_put(&manifest, &compressed, 8);
		outbuf_put(&manifest, "\1\7App.dll", 9);
	}
	uint64_t manifest_at = at + image_bytes;

	for (char *p = host; (p = memmem(p, (size_t)(host + len - p), mark, sizeof(mark))); p++)
		memcpy(p - 8, &manifest_at, 8);
	memcpy(host + at, image, image_bytes);
	int fd = memfd_create("bundle", MFD_CLOEXEC);

	if (fd < 0 || file_write_all(fd, host, len + 64 + image_bytes) ||
	    file_write_all(fd, manifest.data, manifest.len))
		abort();
	free(host);
	outbuf_close(&manifest);
	*ret_at = at;
	return fd;
}

static int count_images(void *ctx, struct symbol_provider *symbols)
{
	*(int *)ctx += (int)r2r_image_pieces(symbols);
	return 0;
}

static void assemblies_in_a_single_file_have_their_names(void **state)
{
	uint32_t code;
	struct r2r_build b = begin_app(&code);
	struct symbol_provider *p = NULL;
	struct symbol s;
	uint64_t at;
	size_t len;
	int pieces = 0;

	(void)state;
	put_functions(&b, code, five, 5);
	r2r_header(&b, 0);
	unsigned char *image = r2r_end(&b, &len);
	int fd = make_bundle(image, len, "id", &at);

	free(image);
	assert_int_equal(bundle_open(fd, &p, NULL), 0);
	close(fd);
	assert_int_equal(symbol_provider_find(p, at + r2r_file_off(code + 4), 0, &s), 0);
	assert_string_equal(s.name, RUN);
	assert_int_equal(s.start, at + r2r_file_off(code));
	assert_int_equal(s.end, s.start + 0x18);
	assert_int_equal(symbol_provider_piece(p, s.start, 0), s.piece);
	assert_int_equal(symbol_provider_find(p, at + r2r_file_off(code + 0x18), 0, &s), -ENOENT);
	assert_int_equal(symbol_provider_find(p, 64, 0, &s), -ENOENT);
	assert_int_equal(symbol_provider_find(p, at + len, 0, &s), -ENOENT);
	assert_int_equal(bundle_each(p, count_images, &pieces), 0);
	assert_int_equal(pieces, 4);
	symbol_provider_free(p);
	/* A program alone has no bundle, nor has any other file. */
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bundle_open(fd, &p, NULL), -ENOENT);
	close(fd);
	fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bundle_open(fd, &p, NULL), -ENOENT);
	close(fd);
}

/* Bundles are identified by content, not by path: their host is the same. */
static void bundles_have_an_identity(void **state)
{
	unsigned char image[256] = {0};
	uint64_t at, identity[3];
	int fd;

	(void)state;
	for (int i = 0; i < 3; i++) {
		fd = make_bundle(image, sizeof(image), i < 2 ? "one" : "two", &at);
		assert_int_equal(bundle_identity(fd, &identity[i]), 0);
		close(fd);
	}
	assert_true(identity[0] == identity[1] && identity[0] != identity[2]);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(bundle_identity(fd, &identity[0]), -ENOENT);
	close(fd);
}

static uint64_t bytes_read(void)
{
	char *text = NULL;
	size_t len;

	assert_int_equal(file_read_at(AT_FDCWD, "/proc/self/io", 4096, &text, &len), 0);
	uint64_t n = strtoull(strchr(text, ':') + 1, NULL, 10);

	free(text);
	return n;
}

static void files_that_end_with_their_sections_are_not_searched(void **state)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint64_t identity, began = bytes_read();
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(bundle_identity(fd, &identity), -ENOENT);
	assert_true(bytes_read() - began < (uint64_t)st.st_size / 4);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(methods_and_funclets_have_names_and_gaps_have_none),
		cmocka_unit_test(arm64_functions_end_by_their_unwind_information),
		cmocka_unit_test(cold_parts_belong_to_their_methods),
		cmocka_unit_test(composite_images_take_names_from_the_assemblies_beside),
		cmocka_unit_test(assembly_of_another_build_gives_no_names),
		cmocka_unit_test(code_of_a_missing_assembly_is_placed),
		cmocka_unit_test(unknown_things_are_reported),
		cmocka_unit_test(oversized_instance_tables_are_refused),
		cmocka_unit_test(hollow_images_give_no_metadata),
		cmocka_unit_test(empty_entries_of_a_process_are_bounded),
		cmocka_unit_test(metadata_is_not_read_when_half_of_the_memory_is_gone),
		cmocka_unit_test(tables_for_lines_count_for_the_limit),
		cmocka_unit_test(places_have_the_il_of_the_last_point_before_them),
		cmocka_unit_test(an_image_cut_anywhere_does_no_harm),
		cmocka_unit_test(numbers_of_all_lengths_are_read),
		cmocka_unit_test(arrays_contain_exactly_the_elements_that_were_put),
		cmocka_unit_test(assemblies_in_a_single_file_have_their_names),
		cmocka_unit_test(bundles_have_an_identity),
		cmocka_unit_test(files_that_end_with_their_sections_are_not_searched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
