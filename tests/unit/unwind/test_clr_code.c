/* unwind/clr_code: code of a living runtime is found by any address in it and has rules.
 * Inconsistent data are reported. */
#include "unwind/clr_code.h"

#include "tests/unit/clr_image.h"
#include "tests/unit/fake_clock.h"
#include "tests/unit/unwind_check.h"

#define BODY 0x1040u /* offsets in the code heap */
#define INFO 0xe000u

static struct clr_image image;
static struct clr_code_reader *reader;
static uint64_t module, plain, seen_ns;

/* Changes that another thread of the target makes between two of our reads. */
static uint64_t changed_at, reads_before;

static int read_pieces(void *ctx, struct memory_piece *pieces, size_t n)
{
	if (changed_at && !reads_before--)
		image_set(&image, changed_at, 7, 4);
	return image_read_pieces(ctx, pieces, n);
}

static void begin(unsigned flags)
{
	const struct clr_io io = {.read = image_read, .read_pieces = read_pieces, .ctx = &image};
	struct clr_contract contract;
	struct parse_error err = {0};

	image_begin(&image, flags);
	module = image_alloc(&image, 856);
	plain = image_type(&image, module, 2, NULL, 0);
	changed_at = 0;
	if (clr_contract_load(&io, &(struct clr_anchors){.descriptor = image.descriptor}, &contract,
			      &err))
		fail_msg("%s", err.what);
	assert_int_equal(clr_code_reader_new(&io, &contract, &reader), 0);
}

static void end(void)
{
	clr_code_reader_free(reader);
}

/* The method of unwind_check.h, followed by a funclet that is one ret. */
static void put_method(uint32_t offset, uint64_t method)
{
	static const unsigned char leaf_info[] = {1, 0, 0, 0}, ret[] = {0xc3};

	image_body(&image, offset, 2 * sizeof(method_code), method, 1);
	image_unwind(&image, offset, 0, INFO, method_info, sizeof(method_info), method_code,
		     sizeof(method_code));
	image_unwind(&image, offset, 1, INFO + 0x20, leaf_info, sizeof(leaf_info), ret,
		     sizeof(ret));
}

static int read_code(uint32_t offset, struct clr_code *code)
{
	struct clr_code_query query = {CLR_IMAGE_CODE + offset, seen_ns};
	int error = 1;

	assert_int_equal(clr_code_read(reader, &query, 1, code, &error), 0);
	return error;
}

static void rules_of_a_method_outlive_the_process(void **state)
{
	struct unwind_rule rule;
	struct clr_code code;

	(void)state;
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_method(&image, plain, 1, 0));
	assert_int_equal(read_code(BODY + 5, &code), 0);
	end();
	memset(&image, 0, sizeof(image));
	assert_int_equal(code.kind, CLR_CODE_OF_METHOD);
	assert_int_equal(code.start, CLR_IMAGE_CODE + BODY);
	assert_int_equal(code.end, CLR_IMAGE_CODE + BODY + sizeof(method_code));
	assert_int_equal(code.method, code.start);
	assert_false(code.movable);
	for (size_t i = 0; i < METHOD_RULES; i++) {
		assert_int_equal(clr_code_rule(&code, code.start + method_rules[i].offset, &rule),
				 0);
		assert_rule(&rule, method_rules[i].rule);
	}
	assert_int_equal(clr_code_rule(&code, code.end, &rule), -ENOENT);
	assert_int_equal(clr_code_rule(&code, code.start - 1, &rule), -ENOENT);
	clr_code_free(&code);
}

static void a_step_leads_to_the_caller(void **state)
{
	uint64_t stack[] = {0xb9, 0x401000};
	struct unwind_memory memory = {0x1000, (const unsigned char *)stack, sizeof(stack), NULL};
	struct unwind_regs regs = {.v = {[ARCH_SP] = 0x1000}, .known = 1u << ARCH_SP};
	struct clr_code code;

	(void)state;
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_method(&image, plain, 1, 0));
	assert_int_equal(read_code(BODY, &code), 0);
	assert_int_equal(clr_code_step(&code, code.start + 1, &regs, &memory), 0);
	assert_true(regs.v[ARCH_IP] == 0x401000 && regs.v[ARCH_FP] == 0xb9 &&
		    regs.v[ARCH_SP] == 0x1010);
	assert_int_equal(clr_code_step(&code, code.end, &regs, &memory), -ENOENT);
	clr_code_free(&code);
	end();
}

static void a_funclet_has_its_own_rules(void **state)
{
	struct unwind_rule rule;
	struct clr_code code;

	(void)state;
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_method(&image, plain, 1, 0));
	assert_int_equal(read_code(BODY + sizeof(method_code), &code), 0);
	assert_int_equal(code.start, CLR_IMAGE_CODE + BODY + sizeof(method_code));
	assert_int_equal(code.method, CLR_IMAGE_CODE + BODY);
	assert_int_equal(clr_code_rule(&code, code.start, &rule), 0);
	assert_rule(&rule, "sp+8 same");
	clr_code_free(&code);
	/* Nothing follows the last one. */
	assert_int_equal(read_code(BODY + 2 * sizeof(method_code), &code), -ENOENT);
	end();
}

static void replaceable_code_is_movable(void **state)
{
	static const uint8_t sig[] = {0, 0, 1};
	struct clr_code code;

	(void)state;
	begin(IMAGE_CODE_HEAP | IMAGE_COLLECTIBLE);
	put_method(BODY, image_method(&image, plain, 1, 0));
	assert_int_equal(read_code(BODY, &code), 0);
	assert_true(code.movable);
	clr_code_free(&code);
	end();
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_dynamic_method(&image, plain, "Made", sig, sizeof(sig)));
	assert_int_equal(read_code(BODY, &code), 0);
	assert_true(code.movable);
	clr_code_free(&code);
	end();
}

/* In its own word, in earlier words, far away, and by the pointer that words of large methods
 * contain. */
static void the_start_of_a_method_is_found(void **state)
{
	static const unsigned char info[] = {1, 0, 0, 0}, nop[] = {0x90};
	struct clr_code code;

	(void)state;
	for (int pointers = 0; pointers < 2; pointers++) {
		begin(IMAGE_CODE_HEAP);
		image_body(&image, 0x40, 0x20, image_method(&image, plain, 1, 0), 0);
		image_unwind(&image, 0x40, 0, INFO, info, sizeof(info), nop, 1);
		image_body(&image, 0x64, 0xb000, image_method(&image, plain, 1, 0), 0);
		image_unwind(&image, 0x64, 0, INFO, info, sizeof(info), nop, 1);
		for (uint32_t word = 1; pointers && word < 0xb0; word++)
			image_set(&image, image.map + word * 4, (0x64 & ~15u) + 9 + (0x64 & 15) / 4,
				  4);
		for (uint32_t at = 0x64; at < 0x64 + 0xb000; at += 0x333) {
			assert_int_equal(read_code(at, &code), 0);
			assert_int_equal(code.start, CLR_IMAGE_CODE + 0x64);
			clr_code_free(&code);
		}
		assert_int_equal(read_code(0x5f, &code), 0);
		assert_int_equal(code.start, CLR_IMAGE_CODE + 0x40);
		clr_code_free(&code);
		assert_int_equal(read_code(0x3f, &code), -ENOENT);
		end();
	}
}

static const unsigned char lookup_stub[] = {0x90, 0x48, 0xb8, 1, 2, 3, 4, 5, 6, 7, 8,    0x50,
					    0x48, 0xb8, 1,    2, 3, 4, 5, 6, 7, 8, 0xff, 0xe0};

static void assert_stub(uint32_t offset, uint32_t start, uint32_t bytes, const char *text)
{
	struct unwind_rule rule;
	struct clr_code code;

	assert_int_equal(read_code(offset, &code), 0);
	assert_int_equal(code.kind, CLR_CODE_OF_STUB);
	assert_int_equal(code.start, CLR_IMAGE_CODE + start);
	assert_int_equal(code.end, CLR_IMAGE_CODE + start + bytes);
	assert_int_equal(clr_code_rule(&code, CLR_IMAGE_CODE + offset, &rule), 0);
	assert_rule(&rule, text);
	clr_code_free(&code);
}

static void stubs_are_known_by_their_code(void **state)
{
	static const unsigned char barrier[] = {0x48, 0x89, 0x37, 0xf3, 0xc3};
	struct clr_code code;

	(void)state;
	for (int in_heap = 0; in_heap < 2; in_heap++) {
		begin(in_heap ? IMAGE_CODE_HEAP : IMAGE_RANGE_LIST);
		if (in_heap)
			image_stubs(&image, 0x1008, 8);
		/* A stub of another kind precedes it, and its end looks like one. */
		for (uint32_t at = 0x1008; at < 0x1080; at += sizeof(lookup_stub))
			memcpy(image_at(&image, CLR_IMAGE_CODE + at), lookup_stub,
			       sizeof(lookup_stub));
		assert_stub(0x1008, 0x1008, 24, "sp+8 same");
		assert_stub(0x1008 + 24 + 11, 0x1008 + 24, 24, "sp+8 same");
		assert_stub(0x1008 + 24 + 12, 0x1008 + 24, 24, "sp+16 same");
		/* Unknown stubs count as leaves, by their code. */
		memcpy(image_at(&image, CLR_IMAGE_CODE + 0x2000), barrier, sizeof(barrier));
		assert_stub(0x2000, 0x2000, 5, "sp+8 same");
		assert_stub(0x2003, 0x2003, 2, "sp+8 same");
		memset(image_at(&image, CLR_IMAGE_CODE + 0x3000), 0xcc, 512);
		assert_int_equal(read_code(0x3080, &code), -ENOENT);
		end();
	}
}

static void the_edge_of_mapped_memory_is_no_obstacle(void **state)
{
	struct clr_code code;

	(void)state;
	begin(IMAGE_RANGE_LIST);
	memcpy(image_at(&image, CLR_IMAGE_CODE + 0x2000), lookup_stub, sizeof(lookup_stub));
	memcpy(image_at(&image, CLR_IMAGE_CODE + 0x2fe8), lookup_stub, sizeof(lookup_stub));
	image.hole = CLR_IMAGE_CODE + 0x1000;
	image.hole_end = CLR_IMAGE_CODE + 0x2000;
	assert_stub(0x2010, 0x2000, 24, "sp+16 same");
	assert_int_equal(read_code(0x1ff0, &code), -ENOENT);
	image.hole = CLR_IMAGE_CODE + 0x3000;
	image.hole_end = CLR_IMAGE_CODE + 0x4000;
	assert_stub(0x2fe8 + 12, 0x2fe8, 24, "sp+16 same");
	end();
}

static void precompiled_code_is_of_its_image(void **state)
{
	struct unwind_rule rule;
	struct clr_code code;

	(void)state;
	begin(0);
	image_set_u64(&image, image.section + 32, module);
	assert_int_equal(read_code(0x100, &code), 0);
	assert_int_equal(code.kind, CLR_CODE_OF_IMAGE);
	assert_true(code.start == CLR_IMAGE_CODE &&
		    code.end == CLR_IMAGE_CODE + CLR_IMAGE_CODE_BYTES);
	assert_int_equal(clr_code_rule(&code, code.start, &rule), -ENOENT);
	assert_int_equal(clr_code_step(&code, code.start, NULL, NULL), -ENOENT);
	clr_code_free(&code);
	end();
}

static void many_are_read_at_once_and_each_has_its_error(void **state)
{
	struct clr_code_query queries[64] = {0};
	struct clr_code code[64];
	int errors[64];

	(void)state;
	begin(IMAGE_CODE_HEAP);
	for (uint32_t i = 0; i < 64; i++) {
		queries[i].addr = CLR_IMAGE_CODE + 0x400 + 0x100 * i + 0x16;
		if (i % 2)
			put_method(0x400 + 0x100 * i, image_method(&image, plain, 1, 0));
	}
	queries[0].addr = 0x1000; /* in another place */
	/* The first has no predecessor. Later ones with an even number are far behind the previous
	 * one. */
	assert_int_equal(clr_code_read(reader, queries, 64, code, errors), 0);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(errors[i], i % 2 ? 0 : -ENOENT);
		if (!errors[i])
			clr_code_free(&code[i]);
	}
	end();
}

/* One method, seen at the time at which the clock stands. */
/* A hostile runtime may claim that every method is huge. Another call reads the rest. */
static void code_over_the_limit_is_read_later(void **state)
{
	static const unsigned char leaf_info[] = {1, 0, 0, 0};
	static unsigned char body[40000];
	enum { QUERIES = 256, FIT = CLR_CODE_BYTES_MAX / sizeof(body) };
	static struct clr_code codes[QUERIES];
	struct clr_code_query queries[QUERIES];
	int errors[QUERIES], read = 0;

	(void)state;
	begin(IMAGE_CODE_HEAP);
	memset(body, 0x90, sizeof(body) - 1);
	body[sizeof(body) - 1] = 0xc3;
	image_body(&image, BODY, sizeof(body), image_method(&image, plain, 1, 0), 0);
	image_unwind(&image, BODY, 0, INFO, leaf_info, sizeof(leaf_info), body, sizeof(body));
	for (int i = 0; i < QUERIES; i++)
		queries[i] = (struct clr_code_query){CLR_IMAGE_CODE + BODY + 5, seen_ns};
	assert_int_equal(clr_code_read(reader, queries, QUERIES, codes, errors), 0);
	for (int i = 0; i < QUERIES; i++) {
		assert_true(errors[i] == 0 || errors[i] == -EAGAIN);
		read += !errors[i];
		if (!errors[i])
			clr_code_free(&codes[i]);
	}
	assert_in_range(read, FIT - 2, FIT);
	assert_int_equal(read_code(BODY + 5, &codes[0]), 0);
	clr_code_free(&codes[0]);
	end();
}

static void begin_with_stopped_clock(void)
{
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_method(&image, plain, 1, 0));
	fake_clock_stop();
	seen_ns = clock_monotonic_ns();
}

static void end_with_running_clock(void)
{
	seen_ns = 0;
	fake_clock_run();
	end();
}

static void code_newer_than_the_map_is_read_again(void **state)
{
	struct clr_code code;

	(void)state;
	begin_with_stopped_clock();
	image_set_u64(&image, image.slot, 0); /* not yet in the map */
	assert_int_equal(read_code(BODY, &code), -ENOENT);
	image_set_u64(&image, image.slot, image.fragment);
	assert_int_equal(read_code(BODY, &code), -ENOENT);
	fake_clock_advance(CLR_CODE_REFRESH_NS - 1);
	seen_ns = clock_monotonic_ns();
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	fake_clock_advance(1);
	assert_int_equal(read_code(BODY, &code), 0);
	assert_int_equal(code.kind, CLR_CODE_OF_METHOD);
	clr_code_free(&code);
	end_with_running_clock();
}

static void code_in_an_unreadable_part_of_the_map_is_read_again(void **state)
{
	struct clr_code code;

	(void)state;
	begin_with_stopped_clock();
	image.hole = image.fragment;
	image.hole_end = image.fragment + 8;
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	image.hole = image.hole_end = 0;
	fake_clock_advance(CLR_CODE_REFRESH_NS);
	assert_int_equal(read_code(BODY, &code), 0);
	clr_code_free(&code);
	end_with_running_clock();
}

static void concurrent_changes_are_detected(void **state)
{
	struct clr_code code;
	uint64_t header;
	int reported = 0, whole = 0;

	(void)state;
	for (uint64_t before = 0; before < 24; before++) {
		begin(IMAGE_CODE_HEAP);
		put_method(BODY, image_method(&image, plain, 1, 0));
		memcpy(&header, image_at(&image, CLR_IMAGE_CODE + BODY - 8), 8);
		changed_at = header + 16; /* ignored in its header */
		reads_before = before;
		int error = read_code(BODY, &code);

		reported += error == -EAGAIN;
		whole += !error;
		if (!error)
			clr_code_free(&code);
		end();
	}
	assert_true(reported >= 5);
	assert_int_equal(reported + whole, 24);
}

static int read_nothing(void *ctx, struct memory_piece *pieces, size_t n)
{
	(void)ctx, (void)pieces, (void)n;
	return -ESRCH;
}

static void impossible_values_are_reported(void **state)
{
	static const unsigned char version[] = {2, 0, 0, 0}, chained[] = {0x21, 0, 0, 0};
	struct clr_contract contract;
	const struct clr_code_query query = {CLR_IMAGE_CODE + BODY, 0};
	struct clr_code code;
	uint64_t header;
	int error;

	(void)state;
	begin(IMAGE_CODE_HEAP);
	put_method(BODY, image_method(&image, plain, 1, 0));
	memcpy(&header, image_at(&image, CLR_IMAGE_CODE + BODY - 8), 8);
	memcpy(image_at(&image, CLR_IMAGE_CODE + INFO), version, 4);
	assert_int_equal(read_code(BODY, &code), -ENOTSUP);
	memcpy(image_at(&image, CLR_IMAGE_CODE + INFO), chained, 4);
	assert_int_equal(read_code(BODY, &code), -EBADMSG);
	image_set(&image, header + 40, BODY + CODE_RULES_BYTES_MAX + 1, 4);
	assert_int_equal(read_code(BODY, &code), -E2BIG);
	image_set(&image, header + 36, BODY + 4, 4); /* begins at another place */
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	image_set(&image, header + 32, CLR_CODE_PARTS_MAX + 1, 4);
	assert_int_equal(read_code(BODY, &code), -EBADMSG);
	image_set(&image, header + 32, 0, 4);
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	image_set_u64(&image, CLR_IMAGE_CODE + BODY - 8, 0x1000); /* at no known place */
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	image.hole = image.map;
	image.hole_end = image.map + 0x100;
	assert_int_equal(read_code(BODY, &code), -EAGAIN);
	end();

	const struct clr_io load = {.read = image_read, .ctx = &image},
			    none = {.read = image_read, .read_pieces = read_nothing, .ctx = &image};

	image_begin(&image, IMAGE_CODE_HEAP);
	assert_int_equal(clr_contract_load(&load,
					   &(struct clr_anchors){.descriptor = image.descriptor},
					   &contract, NULL),
			 0);
	assert_int_equal(clr_code_reader_new(&none, &contract, &reader), 0);
	assert_int_equal(clr_code_read(reader, &query, 1, &code, &error), -ESRCH);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_of_a_method_outlive_the_process),
		cmocka_unit_test(a_step_leads_to_the_caller),
		cmocka_unit_test(a_funclet_has_its_own_rules),
		cmocka_unit_test(replaceable_code_is_movable),
		cmocka_unit_test(the_start_of_a_method_is_found),
		cmocka_unit_test(stubs_are_known_by_their_code),
		cmocka_unit_test(the_edge_of_mapped_memory_is_no_obstacle),
		cmocka_unit_test(precompiled_code_is_of_its_image),
		cmocka_unit_test(code_over_the_limit_is_read_later),
		cmocka_unit_test(many_are_read_at_once_and_each_has_its_error),
		cmocka_unit_test(code_newer_than_the_map_is_read_again),
		cmocka_unit_test(code_in_an_unreadable_part_of_the_map_is_read_again),
		cmocka_unit_test(concurrent_changes_are_detected),
		cmocka_unit_test(impossible_values_are_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
