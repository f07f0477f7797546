/* Return addresses, cached by their place on the stack for the time when they are hijacked. */
#include "base/hash.h"
#include "unwind/return_cache.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define STACK_AT UINT64_C(0x7ffd00000000)

static uint64_t stack[64];
static const struct unwind_memory memory = {STACK_AT, (const unsigned char *)stack, sizeof(stack),
					    NULL};

static uint64_t word_at(unsigned i)
{
	return STACK_AT + 8 * (uint64_t)i;
}

static struct walk_frame frame_of(unsigned i, uint64_t ip)
{
	stack[i] = ip;
	return (struct walk_frame){.ip = ip, .at = word_at(i), .how = WALK_RULE};
}

static struct return_cache *cache_of_three(void)
{
	struct walk_frame frames[4] = {{.ip = 0x1000, .exact = true},
				       frame_of(3, 0x2000),
				       frame_of(10, 0x3000),
				       frame_of(20, 0x4000)};
	struct return_cache *k;

	assert_int_equal(return_cache_new(&k), 0);
	return_cache_put(k, 7, frames, 4);
	return k;
}

static void cached_returns_are_valid_while_the_caller_is_the_same(void **state)
{
	struct return_cache *k = cache_of_three();
	uint64_t ip = 1;

	(void)state;
	stack[3] = 0x7777; /* hijacked */
	assert_int_equal(return_cache_find(k, 7, word_at(3), &memory, &ip), 0);
	assert_int_equal(ip, 0x2000);
	assert_int_equal(return_cache_find(k, 7, word_at(10), &memory, &ip), 0);
	assert_int_equal(ip, 0x3000);
	ip = 1;
	/* the caller of the last one is unknown */
	assert_int_equal(return_cache_find(k, 7, word_at(20), &memory, &ip), -ENOENT);
	assert_int_equal(return_cache_find(k, 8, word_at(3), &memory, &ip), -ENOENT);
	assert_int_equal(return_cache_find(k, 7, word_at(4), &memory, &ip), -ENOENT);
	stack[10] = 0x3001;
	assert_int_equal(return_cache_find(k, 7, word_at(3), &memory, &ip), -ENOENT);
	stack[10] = 0x3000;
	const struct unwind_memory less = {STACK_AT, memory.data, 10 * 8, NULL};

	assert_int_equal(return_cache_find(k, 7, word_at(3), &less, &ip), -ENOENT);
	assert_int_equal(ip, 1);
	return_cache_free(k);
}

static void the_newest_stack_counts_and_guessed_ones_are_not_kept(void **state)
{
	struct return_cache *k = cache_of_three();
	struct walk_frame frames[4] = {{.ip = 0x1000, .exact = true},
				       frame_of(3, 0x2222),
				       frame_of(10, 0x3000),
				       frame_of(20, 0x4000)};
	uint64_t ip;

	(void)state;
	return_cache_put(k, 7, frames, 4);
	assert_int_equal(return_cache_find(k, 7, word_at(3), &memory, &ip), 0);
	assert_int_equal(ip, 0x2222);
	frames[1].ip = 0x2333;
	frames[1].how = WALK_GUESS;
	return_cache_put(k, 7, frames, 4);
	frames[1].how = WALK_RULE;
	frames[2].how = WALK_SPLICE;
	return_cache_put(k, 7, frames, 4);
	frames[2].how = WALK_RULE;
	frames[1].at = 0;
	return_cache_put(k, 7, frames, 4);
	frames[1].at = word_at(3);
	frames[1].exact = true; /* interrupted by a signal */
	return_cache_put(k, 7, frames, 4);
	assert_int_equal(return_cache_find(k, 7, word_at(3), &memory, &ip), 0);
	assert_int_equal(ip, 0x2222);
	return_cache_free(k);
}

static void stacks_of_any_depth_take_no_more_room(void **state)
{
	static struct walk_frame frames[WALK_FRAMES_MAX];
	struct return_cache *k;
	uint64_t ip;

	(void)state;
	for (size_t i = 0; i < WALK_FRAMES_MAX; i++)
		frames[i] = (struct walk_frame){
			.ip = 0x1000 + i, .at = word_at(0) + 8 * (i % 64), .how = WALK_RULE};
	memset(stack, 0, sizeof(stack));
	stack[RETURN_CACHE_FRAMES - 1] = 0x1000 + RETURN_CACHE_FRAMES - 1;
	assert_int_equal(return_cache_new(&k), 0);
	for (int32_t tid = 1; tid <= 10000; tid++)
		return_cache_put(k, tid, frames, WALK_FRAMES_MAX);
	assert_int_equal(
		return_cache_find(k, 10000, word_at(RETURN_CACHE_FRAMES - 2), &memory, &ip), 0);
	assert_int_equal(ip, 0x1000 + RETURN_CACHE_FRAMES - 2);
	return_cache_free(k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cached_returns_are_valid_while_the_caller_is_the_same),
		cmocka_unit_test(the_newest_stack_counts_and_guessed_ones_are_not_kept),
		cmocka_unit_test(stacks_of_any_depth_take_no_more_room),
	};

	hash_secret[0] = 0x9e3779b97f4a7c15; /* no two places share an entry */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
