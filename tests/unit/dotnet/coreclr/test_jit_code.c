/* dotnet/coreclr/jit_code: each body in a runtime's memory is reported once with its name. Changes
 * are reported, and senseless data are not. */
#include "dotnet/coreclr/jit_code_impl.h"
#include "dotnet/coreclr/runtime.h"

#include "tests/unit/clr_image.h"
#include "tests/unit/fake_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static struct clr_image image;
static struct clr_jit_code *heap;
static char reports[65536]; /* "+OFFSET SIZE NAME;" and "-OFFSET;" in the order of the reports */
static int listener_error;
static uint64_t last_seen_ns; /* last_seen_ns of the body that was reported as gone last */

static int on_code(void *ctx, const struct clr_jit_code_body *code)
{
	(void)ctx;
	assert_int_equal(strlen(code->name), code->name_len);
	sprintf(reports + strlen(reports), "+%llx %x %s;",
		(unsigned long long)(code->start - CLR_IMAGE_CODE), code->bytes, code->name);
	return listener_error;
}

static int on_gone(void *ctx, uint64_t start, uint64_t seen_ns)
{
	(void)ctx;
	last_seen_ns = seen_ns;
	sprintf(reports + strlen(reports), "-%llx;", (unsigned long long)(start - CLR_IMAGE_CODE));
	return 0;
}

static const char *scan(void)
{
	static const struct clr_jit_code_listener listener = {.code = on_code, .gone = on_gone};

	reports[0] = 0;
	assert_int_equal(clr_jit_code_scan(heap, &listener, UINT64_MAX), 0);
	return reports;
}

static uint64_t module, plain;

static void begin(unsigned flags)
{
	const struct clr_io io = {
		.read = image_read, .read_pieces = image_read_pieces, .ctx = &image};
	struct parse_error err = {0};
	size_t len;
	unsigned char *bytes = image_metadata(&len);

	image_begin(&image, flags);
	module = image_file_module(&image, bytes, len);
	plain = image_type(&image, module, 2, NULL, 0);
	free(bytes);
	if (clr_jit_code_new(&io, &(struct clr_anchors){.descriptor = image.descriptor}, &heap,
			     &err))
		fail_msg("%s", err.what);
	listener_error = 0;
}

static struct clr_jit_code_stats stats(void)
{
	struct clr_jit_code_stats s;

	clr_jit_code_stats(heap, &s);
	return s;
}

static void bodies_are_reported_once(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x60, image_method(&image, plain, 1, 3), 2);
	image_stubs(&image, 0x108, 6);
	image_body(&image, 0x1000, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "+40 60 int32 [App] App.Plain::Run(string);+108 400 stub "
				    "ReportStubBlock<VSD_DispatchStub>;"
				    "+1000 20 int32 [App] App.Plain::Run(string);");
	assert_string_equal(scan(), "");
	image_body(&image, 0x2004, 0x20, image_method(&image, plain, 1, 0), 0);
	image_nibble(&image, 0x1000, 0);
	assert_string_equal(scan(), "-1000;+2004 20 int32 [App] App.Plain::Run(string);");
	assert_int_equal(stats().bodies, 3);
	assert_int_equal(stats().stubs, 1);
	clr_jit_code_free(heap);
}

/* The heap ends after a method that is being compiled, which the map does not show yet. Stubs
 * before it must not have its place. */
static void a_block_of_stubs_ends_at_its_largest_size(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_stubs(&image, 0x108, 9);
	image_body(&image, 0x520, 0x60, image_method(&image, plain, 1, 0), 0);
	image_nibble(&image, 0x520, 0);
	assert_string_equal(scan(), "+108 400 stub ReportStubBlock<VSD_VTableStub>;");
	image_body(&image, 0x520, 0x60, image_method(&image, plain, 1, 0), 0);
	image_stubs(&image, 0x608, 1);
	image_body(&image, 0x708, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "+520 60 int32 [App] App.Plain::Run(string);"
				    "+608 f8 stub ReportStubBlock<JumpStub>;"
				    "+708 20 int32 [App] App.Plain::Run(string);");
	clr_jit_code_free(heap);
}

static char il_text[512];

static int on_code_with_il(void *ctx, const struct clr_jit_code_body *code)
{
	(void)ctx;
	char *p = il_text + strlen(il_text);

	p += sprintf(p, "+%x", (unsigned int)(code->start - CLR_IMAGE_CODE));
	if (code->il)
		p += sprintf(p, " %s %.4s %u", code->il->path, (const char *)code->il->mvid,
			     code->il->rid);
	for (size_t i = 0; code->il && i < code->il->npoints; i++)
		p += sprintf(p, " %u:%d", code->il->points[i].native, (int)code->il->points[i].il);
	strcpy(p, ";");
	return 0;
}

static const unsigned char plain_info[] = {0, 0x05, 0x32, 0x03, 0xc0, 0x80, 0x08};

/* Debug info behind a flag, with the patchpoint data of a method replaced on the stack. Two places:
 * 0 of the first instruction and 8 of IL 5. */
static void code_comes_with_its_il_if_requested(void **state)
{
	unsigned char patchpoint[1 + 40 + 4 * 9 + 6] = {1}, unknown[sizeof(plain_info)] = {2};
	static const struct clr_jit_code_listener l = {.code = on_code_with_il, .gone = on_gone};

	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_path(&image, module, "/app/App.dll");
	uint64_t method = image_method(&image, plain, 1, 3);

	image_body(&image, 0x40, 0x60, method, 2);
	image_debug_info(&image, 0x40, plain_info, sizeof(plain_info));
	image_body(&image, 0x200, 0x20, method, 0);
	patchpoint[1 + 16] = 9; /* locals */
	memcpy(patchpoint + sizeof(patchpoint) - 6, plain_info + 1, 6);
	image_debug_info(&image, 0x200, patchpoint, sizeof(patchpoint));
	image_body(&image, 0x300, 0x4, method, 0); /* less code than the map claims */
	image_debug_info(&image, 0x300, plain_info, sizeof(plain_info));
	image_body(&image, 0x400, 0x20, method, 0);
	image_body(&image, 0x500, 0x20, method, 0);
	memcpy(unknown + 1, plain_info + 1, 6);
	image_debug_info(&image, 0x500, unknown, sizeof(unknown));
	il_text[0] = 0;
	clr_jit_code_request_il(heap);
	assert_int_equal(clr_jit_code_scan(heap, &l, UINT64_MAX), 0);
	assert_string_equal(
		il_text,
		"+40 /app/App.dll 0123 1 0:0 8:5;+200 /app/App.dll 0123 1 0:0 8:5;+300;+400;+500;");
	assert_int_equal(stats().with_il, 2);
	assert_int_equal(stats().without_il, 3);
	clr_jit_code_free(heap);
}

static void instantiations_are_spelled(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	uint64_t array = image_array(&image, image_array(&image, plain, 2), 0);
	uint64_t inner = image_type(&image, module, 3,
				    (uint64_t[]){image_pointer(&image, plain, 0x0f), array}, 2);
	uint64_t outer = image_type(&image, module, 3, (uint64_t[]){inner, inner}, 2);

	image_body(&image, 0x40, 0x20, image_method(&image, outer, 2, 0), 0);
	assert_string_equal(
		scan(),
		"+40 20 instance void [App] App.Pair`2[App.Pair`2[App.Plain*,App.Plain[,][]],"
		"App.Pair`2[App.Plain*,App.Plain[,][]]]::Put(!1);");
	clr_jit_code_free(heap);
}

/* Otherwise later types would find no room. */
static void arguments_of_a_changing_type_take_no_more_memory(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t pair = image_type(&image, module, 3,
				   (uint64_t[]){plain, image_array(&image, plain, 0)}, 2);

	image_body(&image, 0x40, 0x20, image_method(&image, pair, 2, 0), 0);
	assert_string_equal(
		scan(), "+40 20 instance void [App] App.Pair`2[App.Plain,App.Plain[]]::Put(!1);");
	size_t room = heap->types.args.len;

	for (uint64_t i = 1; i < 8; i++) {
		image_set_u64(&image, pair + 40, i);
		scan();
	}
	assert_int_equal(heap->types.args.len, room);
	assert_int_equal(stats().plain, 0);
	clr_jit_code_free(heap);
}

static void methods_without_metadata_have_their_signature(void **state)
{
	uint8_t sig[] = {0, 2, 8, 14, 0x21, 0, 0, 0, 0, 0, 0, 0, 0};
	char expected[128];

	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	memcpy(sig + 5, &plain, 8);
	image_body(&image, 0x40, 0x20,
		   image_dynamic_method(&image, plain, "Made", sig, sizeof(sig)), 0);
	snprintf(expected, sizeof(expected),
		 "+40 20 int32 [App] dynamicClass::Made(string,App.Plain /* MT: 0x%llx */);",
		 (unsigned long long)plain);
	assert_string_equal(scan(), expected);
	clr_jit_code_free(heap);
}

/* In a heap that frees single bodies, the next body may take the same place. */
static void a_reused_place_is_detected(void **state)
{
	static const uint8_t sig[] = {0, 0, 1};

	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t method = image_dynamic_method(&image, plain, "First", sig, sizeof(sig)), text;

	image_body(&image, 0x40, 0x20, method, 0);
	assert_string_equal(scan(), "+40 20 void [App] dynamicClass::First();");
	assert_string_equal(scan(), "");
	assert_int_equal(stats().rechecked, 1);
	memcpy(&text, image_at(&image, method + 32), 8);
	strcpy(image_at(&image, text), "Next"); /* everything else is the same */
	assert_string_equal(scan(), "-40;+40 20 void [App] dynamicClass::Next();");
	image_body(&image, 0x40, 0x30, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "-40;+40 30 int32 [App] App.Plain::Run(string);");
	clr_jit_code_free(heap);
}

/* Each scan visits only bodies that may have been replaced: no others, and each of them once. */
static void only_movable_bodies_are_visited(void **state)
{
	static const uint8_t sig[] = {0, 0, 1};
	enum { TIMES = 20 };

	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t method = image_dynamic_method(&image, plain, "Made", sig, sizeof(sig));

	for (uint32_t i = 0; i < TIMES; i++) {
		image_body(&image, 0x40, 0x20 + 0x10 * (i % 2), method, 0);
		scan();
	}
	scan();
	assert_int_equal(stats().bodies, 1);
	assert_int_equal(stats().rechecked, 1);
	assert_int_equal(heap->movable.len, 1);
	clr_jit_code_free(heap);
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	scan();
	assert_int_equal(stats().bodies, 1);
	assert_int_equal(heap->movable.len, 0);
	clr_jit_code_free(heap);
}

/* With many bodies the checks are spread: each body is checked in turn within
 * CLR_JIT_CODE_RECHECK_NS. */
static void many_reused_places_are_detected_in_time(void **state)
{
	enum { MANY = 400 };
	static const uint8_t sig[] = {0, 0, 1};
	size_t gone = 0;
	uint64_t text;

	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t method = image_dynamic_method(&image, plain, "First", sig, sizeof(sig));

	for (uint32_t i = 0; i < MANY; i++)
		image_body(&image, 0x40 + 0x40 * i, 0x20, method, 0);
	fake_clock_stop();
	scan();
	assert_int_equal(stats().added, MANY);
	memcpy(&text, image_at(&image, method + 32), 8);
	strcpy(image_at(&image, text), "Next");
	uint64_t before_ns = clock_monotonic_ns();

	for (int i = 0; i < 4; i++) {
		fake_clock_advance(i ? CLR_JIT_CODE_RECHECK_NS / 3 : NS_PER_MS);
		scan();
		assert_true(i || stats().rechecked < MANY / 2);
		gone += stats().gone;
		/* A body that was last seen before the previous scan may be gone since then. */
		assert_true(!stats().gone ||
			    (i ? last_seen_ns && last_seen_ns <= before_ns : !last_seen_ns));
	}
	fake_clock_run();
	assert_int_equal(gone, MANY);
	strcpy(image_at(&image, text), "Last");
	clr_jit_code_compare_all(heap);
	scan();
	assert_int_equal(stats().gone, MANY);
	clr_jit_code_free(heap);
}

/* A name may be longer than the first read. */
static void long_names_are_complete(void **state)
{
	static const uint8_t sig[] = {0, 0, 1};
	char name[1001], expected[1100];

	(void)state;
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	image_body(&image, 0x40, 0x20, image_dynamic_method(&image, plain, name, sig, sizeof(sig)),
		   0);
	snprintf(expected, sizeof(expected), "+40 20 void [App] dynamicClass::%s();", name);
	assert_string_equal(scan(), expected);
	clr_jit_code_free(heap);
}

/* Replaces text in the module, in place. */
static void image_replace(const char *text, const char *by)
{
	size_t from = module - CLR_IMAGE_BASE;
	char *at = memmem(image.bytes + from, sizeof(image.bytes) - from, text, strlen(text));

	assert_non_null(at);
	memcpy(at, by, strlen(text));
}

/* A new assembly can have all its structures at the addresses of an unloaded one. */
static void a_module_in_the_place_of_another_is_detected(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t inner = image_type(&image, module, 3, (uint64_t[]){plain, plain}, 2);
	uint64_t pair = image_type(&image, module, 3, (uint64_t[]){inner, plain}, 2);

	image_path(&image, module, "/app/App.dll");
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	image_body(&image, 0x80, 0x20, image_method(&image, pair, 2, 0), 0);
	assert_string_equal(scan(),
			    "+40 20 int32 [App] App.Plain::Run(string);"
			    "+80 20 instance void [App] "
			    "App.Pair`2[App.Pair`2[App.Plain,App.Plain],App.Plain]::Put(!1);");
	size_t before = image.pieces;

	assert_string_equal(scan(), "");
	assert_true(image.pieces - before < 40);
	image_replace("Plain", "Other");
	image_replace("Run", "Hop");
	assert_string_equal(scan(), ""); /* the module itself does not change */
	image_replace("0123456789abcdef", "0123456789abcdeX");
	assert_string_equal(scan(),
			    "-40;+40 20 int32 [App] App.Other::Hop(string);"
			    "-80;+80 20 instance void [App] "
			    "App.Pair`2[App.Pair`2[App.Other,App.Other],App.Other]::Put(!1);");
	assert_string_equal(scan(), "");
	clr_jit_code_free(heap);
}

/* The old code may be gone. */
static void a_name_comes_from_the_present_module(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	image_nibble(&image, 0x40, 0);
	assert_string_equal(scan(), "-40;");
	image_replace("Run", "Hop");
	image_replace("0123456789abcdef", "X123456789abcdef");
	image_body(&image, 0x80, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "+80 20 int32 [App] App.Plain::Hop(string);");
	clr_jit_code_free(heap);
}

/* Two methods that differ only in their row. */
static void another_row_at_the_same_place_is_detected(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	uint64_t method = image_method(&image, plain, 1, 0);

	image_body(&image, 0x40, 0x20, method, 0);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	image_set(&image, method, 2, 2);
	assert_string_equal(scan(), "-40;+40 20 instance void [App] App.Pair`2::Put(!1);");
	clr_jit_code_free(heap);
}

static void a_freed_heap_loses_its_bodies(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	image_body(&image, 0x80, 0x20, image_method(&image, plain, 1, 0), 0);
	scan();
	image.hole = image.section; /* cannot be read now, which does not mean that it is gone */
	image.hole_end = image.hole + 8;
	assert_string_equal(scan(), "");
	assert_int_equal(stats().unread, 1);
	image.hole_end = 0;
	image_set_u64(&image, image.slot, 0);
	assert_string_equal(scan(), "-40;-80;");
	image_set_u64(&image, image.slot, image.fragment);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);+80 20 int32 [App] "
				    "App.Plain::Run(string);");
	clr_jit_code_free(heap);
}

static void a_heap_in_the_place_of_another_keeps_its_bodies(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	scan();
	/* A heap with another head takes the place, and one range cannot be read. The first heap
	 * may still exist. */
	uint64_t fragment = image_alloc(&image, 32);

	image_set_u64(&image, image.section + 40,
		      image_put(&image, image_at(&image, image.node), 48));
	memcpy(image_at(&image, fragment + 8), image_at(&image, image.fragment + 8), 16);
	image.hole = image_alloc(&image, 72);
	image.hole_end = image.hole + 8;
	image_set_u64(&image, fragment + 24, image.hole);
	image_set_u64(&image, image.fragment, fragment);
	assert_string_equal(scan(), "-40;+40 20 int32 [App] App.Plain::Run(string);");
	assert_int_equal(stats().unread, 1);
	image_set_u64(&image, image.fragment, 0);
	assert_string_equal(scan(), "");
	assert_int_equal(stats().bodies, 1);
	clr_jit_code_free(heap);
}

static void a_cut_chain_of_ranges_loses_no_body(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	scan();
	uint64_t next = image.fragment;

	for (int i = 0; i < 64; i++) {
		uint64_t fragment = image_alloc(&image, 32);

		image_set_u64(&image, fragment, next);
		next = fragment;
	}
	image_set_u64(&image, image.slot, next);
	assert_string_equal(scan(), "");
	assert_int_equal(stats().unread, 1);
	clr_jit_code_free(heap);
}

/* The flag stays set later, when earlier bodies may be gone. */
static void an_overflow_stays_reported(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	assert_int_equal(vec_reserve(&heap->bodies, CLR_JIT_CODE_BODIES_MAX), 0);
	heap->bodies.len = CLR_JIT_CODE_BODIES_MAX - 1;
	memset(heap->bodies.v, 0, heap->bodies.len * sizeof(*heap->bodies.v));
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	assert_false(stats().over);
	image_body(&image, 0x80, 0x20, image_method(&image, plain, 1, 0), 0);
	assert_string_equal(scan(), "");
	assert_true(stats().over);
	assert_string_equal(scan(), "");
	assert_int_equal(stats().unread, 0);
	assert_int_equal(stats().bodies, 1);
	assert_true(stats().over);
	clr_jit_code_free(heap);
}

/* The target is in the middle of a change. The method is reported when it is consistent. */
static void unfinished_methods_are_reported_later(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	uint64_t method = image_method(&image, plain, 1, 0), header;

	image_body(&image, 0x40, 0x20, method, 0);
	memcpy(&header, image_at(&image, CLR_IMAGE_CODE + 0x38), 8);
	image_set(&image, header + 32, 0, 4); /* no unwind information */
	assert_string_equal(scan(), "");
	assert_int_equal(stats().unread, 1);
	image_set(&image, header + 32, 1, 4);
	image_set(&image, header + 40, 0x20000, 4); /* ends beyond its heap */
	assert_string_equal(scan(), "");
	image_set(&image, header + 40, 0x60, 4);
	image_set(&image, method, 9, 2); /* no such method */
	assert_string_equal(scan(), "");
	assert_int_equal(stats().unnamed, 1);
	image_set(&image, method, 1, 2);
	image.hole = method;
	image.hole_end = method + 8;
	assert_string_equal(scan(), "");
	image.hole_end = 0;
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	clr_jit_code_free(heap);
}

static void modules_that_grow_are_read_again(void **state)
{
	size_t len;
	unsigned char *bytes = image_metadata(&len);

	(void)state;
	begin(IMAGE_CODE_HEAP);
	uint64_t emitted = image_dynamic_module(&image, bytes, len),
		 type = image_type(&image, emitted, 2, NULL, 0), data;

	memcpy(&data, image_at(&image, emitted + 840), 8);
	image_set(&image, data, 8, 4); /* not written yet */
	image_body(&image, 0x40, 0x20, image_method(&image, type, 1, 0), 0);
	assert_string_equal(scan(), "");
	image_set(&image, data, len, 4);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	free(bytes);
	clr_jit_code_free(heap);
}

/* A type that is its own argument, ranges in a circle, a heap of half the address space. */
static void false_counts_are_bounded(void **state)
{
	(void)state;
	begin(IMAGE_CODE_HEAP);
	uint64_t type = image_type(&image, module, 3, (uint64_t[]){0, 0}, 2), dictionaries,
		 dictionary;

	memcpy(&dictionaries, image_at(&image, type + 48), 8);
	memcpy(&dictionary, image_at(&image, dictionaries), 8);
	image_set_u64(&image, dictionary, type);
	image_set_u64(&image, dictionary + 8, type);
	image_set_u64(&image, image.fragment, image.fragment);
	image_body(&image, 0x40, 0x20, image_method(&image, type, 2, 0), 0);
	assert_string_equal(scan(), "+40 20 instance void [App] App.Pair`2::Put(!1);");
	assert_int_equal(stats().plain, 1);
	image_set_u64(&image, image.section + 8, UINT64_MAX);
	image_set_u64(&image, image.node + 24, UINT64_MAX / 2);
	assert_string_equal(scan(), "-40;");
	assert_int_equal(stats().unread, 1);
	for (uint64_t at = image.range_map; at < image.range_map + 2048; at += 8)
		image_set_u64(&image, at, image.range_map);
	image.pieces = 0;
	scan();
	assert_true(image.pieces < 1000);
	clr_jit_code_free(heap);
}

static void a_listener_ends_the_scan_and_loses_nothing(void **state)
{
	static const struct clr_jit_code_listener listener = {.code = on_code, .gone = on_gone};

	(void)state;
	begin(IMAGE_CODE_HEAP);
	for (uint32_t i = 0; i < 3; i++)
		image_body(&image, 0x40 + i * 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	reports[0] = 0;
	listener_error = -ENOSPC;
	assert_int_equal(clr_jit_code_scan(heap, &listener, UINT64_MAX), -ENOSPC);
	assert_string_equal(reports, "+40 20 int32 [App] App.Plain::Run(string);");
	listener_error = 0;
	assert_string_equal(scan(), "+80 20 int32 [App] App.Plain::Run(string);+c0 20 int32 [App] "
				    "App.Plain::Run(string);");
	clr_jit_code_free(heap);
}

/* Type arguments of a method may belong to the method's own module. They may come from a later copy
 * of its metadata. */
static void a_module_may_grow_during_the_lookup_of_a_name(void **state)
{
	size_t len;
	unsigned char *bytes = image_metadata(&len);

	(void)state;
	begin(IMAGE_CODE_HEAP);
	uint64_t emitted = image_dynamic_module(&image, bytes, len),
		 own = image_type(&image, emitted, 2, NULL, 0);
	uint64_t later = image_type(&image, emitted, 9, NULL, 0);
	uint64_t pair = image_type(&image, emitted, 3, (uint64_t[]){own, later}, 2);

	free(bytes);
	image_body(&image, 0x40, 0x20, image_method(&image, own, 1, 0), 0);
	assert_string_equal(scan(), "+40 20 int32 [App] App.Plain::Run(string);");
	image_body(&image, 0x80, 0x20, image_method(&image, pair, 2, 0), 0);
	assert_string_equal(scan(), "+80 20 instance void [App] App.Pair`2::Put(!1);");
	assert_int_equal(stats().plain, 1);
	assert_int_equal(stats().modules_failed, 0);
	clr_jit_code_free(heap);
}

#define LATE_NS (3 * NS_PER_MS) /* the time of a scan */

/* Number of reads that succeed before the scan's time is over; it is over after the next read. */
static int reads_left;

static int late_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	if (!reads_left--)
		fake_clock_advance(LATE_NS);
	return image_read(ctx, addr, buf, len);
}

static int late_read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	if (!reads_left--)
		fake_clock_advance(LATE_NS);
	return image_read_pieces(ctx, pieces, n);
}

static void begin_late(void)
{
	const struct clr_io io = {
		.read = late_read, .read_pieces = late_read_pieces, .ctx = &image};

	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	clr_jit_code_free(heap);
	reads_left = -1;
	assert_int_equal(clr_jit_code_new(&io,
					  &(struct clr_anchors){.descriptor = image.descriptor},
					  &heap, NULL),
			 0);
}

static void a_late_scan_is_finished_by_the_next(void **state)
{
	static const struct clr_jit_code_listener listener = {.code = on_code, .gone = on_gone};
	static const char run[] = "20 int32 [App] App.Plain::Run(string);";
	char expected[512];
	int late = 0, r = -ETIMEDOUT;

	(void)state;
	fake_clock_stop();
	snprintf(expected, sizeof(expected),
		 "-80;-c4;+c0 %s+1000 20 instance void [App] "
		 "App.Pair`2[App.Plain,App.Plain[,]]::Put(!1);",
		 run);
	for (int reads = 0; r; reads++, late++) {
		assert_true(reads < 1000);
		begin_late();
		uint64_t array = image_array(&image, plain, 2),
			 pair = image_type(&image, module, 3, (uint64_t[]){plain, array}, 2);

		image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
		image_body(&image, 0x80, 0x20, image_method(&image, plain, 1, 0), 0);
		image_body(&image, 0xc4, 0x20, image_method(&image, plain, 1, 0), 0);
		scan();
		image_path(&image, module, "/app/App.dll");
		clr_jit_code_request_il(heap);
		image_nibble(&image, 0x80, 0);
		image_body(&image, 0xc0, 0x20, image_method(&image, plain, 1, 0),
			   0); /* in place of the third */
		image_debug_info(&image, 0xc0, plain_info, sizeof(plain_info));
		image_body(&image, 0x1000, 0x20, image_method(&image, pair, 2, 0), 0);
		reports[0] = 0;
		reads_left = reads;
		r = clr_jit_code_scan(heap, &listener, clock_monotonic_ns() + LATE_NS);
		assert_true(!r || r == -ETIMEDOUT);
		reads_left = -1;
		assert_int_equal(clr_jit_code_scan(heap, &listener, UINT64_MAX), 0);
		assert_string_equal(reports, expected);
		assert_int_equal(stats().bodies, 3);
		clr_jit_code_free(heap);
	}
	fake_clock_run();
	assert_true(late > 5);
	begin(IMAGE_CODE_HEAP);
	image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
	reports[0] = 0;
	assert_int_equal(clr_jit_code_scan(heap, &listener, 0), -ETIMEDOUT);
	assert_string_equal(reports, "");
	clr_jit_code_free(heap);
}

/* The page of the descriptor is the runtime's code, and a part of it is the runtime's barriers. */
static int barrier_maps(void *ctx, char **ret_text)
{
	uint64_t copy = CLR_IMAGE_BASE + 0x70000;

	(void)ctx;
	return asprintf(ret_text,
			"%llx-%llx r-xp 00000000 00:01 1 /libcoreclr.so\n%llx-%llx r-xs 00000000 "
			"00:02 2 /memfd:doublemapper (deleted)\n",
			(unsigned long long)CLR_IMAGE_BASE,
			(unsigned long long)CLR_IMAGE_BASE + 0x1000, (unsigned long long)copy,
			(unsigned long long)copy + 0x80) < 0
		       ? -ENOMEM
		       : 0;
}

static void a_late_scan_does_not_lose_the_barriers(void **state)
{
	const struct clr_io io = {.read = late_read,
				  .read_pieces = late_read_pieces,
				  .maps = barrier_maps,
				  .ctx = &image};
	static const struct clr_jit_code_listener listener = {.code = on_code, .gone = on_gone};
	int late = 0, r = -ETIMEDOUT;

	(void)state;
	fake_clock_stop();
	for (int reads = 0; r; reads++, late++) {
		begin_late();
		clr_jit_code_free(heap);
		assert_int_equal(
			clr_jit_code_new(&io, &(struct clr_anchors){.descriptor = image.descriptor},
					 &heap, NULL),
			0);
		memcpy(image_at(&image, CLR_IMAGE_BASE + 0x70000),
		       image_at(&image, image.descriptor + 0xe00), 0x80);
		image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
		reports[0] = 0;
		reads_left = reads;
		r = clr_jit_code_scan(heap, &listener, clock_monotonic_ns() + LATE_NS);
		assert_true(!r || r == -ETIMEDOUT);
		reads_left = -1;
		assert_int_equal(clr_jit_code_scan(heap, &listener, UINT64_MAX), 0);
		assert_string_equal(reports,
				    "+ffffffffffff0000 80 stub "
				    "InitThreadManagerPerfMapData<JIT_CopiedWriteBarriers>;"
				    "+40 20 int32 [App] App.Plain::Run(string);");
		clr_jit_code_free(heap);
	}
	fake_clock_run();
	assert_true(late > 5);
}

static void a_process_scan_has_a_time_limit(void **state)
{
	struct parse_error err = {0};
	struct clr_jit_code *none = NULL;

	(void)state;
	assert_int_equal(clr_runtime_open(getpid(), 0, &none, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.what, "took too long"));
	assert_int_equal(clr_runtime_open(getpid(), UINT64_MAX, &none, &err), -ENOENT);
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bodies_are_reported_once),
		cmocka_unit_test(a_block_of_stubs_ends_at_its_largest_size),
		cmocka_unit_test(a_process_scan_has_a_time_limit),
		cmocka_unit_test(code_comes_with_its_il_if_requested),
		cmocka_unit_test(instantiations_are_spelled),
		cmocka_unit_test(arguments_of_a_changing_type_take_no_more_memory),
		cmocka_unit_test(methods_without_metadata_have_their_signature),
		cmocka_unit_test(a_reused_place_is_detected),
		cmocka_unit_test(only_movable_bodies_are_visited),
		cmocka_unit_test(many_reused_places_are_detected_in_time),
		cmocka_unit_test(long_names_are_complete),
		cmocka_unit_test(a_module_in_the_place_of_another_is_detected),
		cmocka_unit_test(a_name_comes_from_the_present_module),
		cmocka_unit_test(another_row_at_the_same_place_is_detected),
		cmocka_unit_test(a_freed_heap_loses_its_bodies),
		cmocka_unit_test(a_heap_in_the_place_of_another_keeps_its_bodies),
		cmocka_unit_test(a_cut_chain_of_ranges_loses_no_body),
		cmocka_unit_test(an_overflow_stays_reported),
		cmocka_unit_test(unfinished_methods_are_reported_later),
		cmocka_unit_test(modules_that_grow_are_read_again),
		cmocka_unit_test(false_counts_are_bounded),
		cmocka_unit_test(a_listener_ends_the_scan_and_loses_nothing),
		cmocka_unit_test(a_module_may_grow_during_the_lookup_of_a_name),
		cmocka_unit_test(a_late_scan_is_finished_by_the_next),
		cmocka_unit_test(a_late_scan_does_not_lose_the_barriers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
