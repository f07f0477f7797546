/* symbols/core/map_tree: trees that share nodes. Their maps are checked by test_processes.c. */
#include "symbols/core/map_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>

#include <cmocka.h>

#define MAPS ((uint64_t)1 << 18)
#define NODES_MAX ((size_t)1 << 20)

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static uint32_t lay(struct map_trees *t, uint32_t root, uint64_t start, uint64_t end)
{
	const struct process_map map = {.start = start, .end = end};

	assert_int_equal(map_trees_reserve(t), 0);
	return map_tree_replace(t, root, start, end, &map);
}

static size_t used(const struct map_trees *t)
{
	return t->nodes.len - t->nunused;
}

static uint32_t depth(const struct map_trees *t, uint32_t root)
{
	const struct map_tree_node *node = &t->nodes.v[root];
	uint32_t below = root ? depth(t, node->child[0]) : 0;
	uint32_t above = root ? depth(t, node->child[1]) : 0;

	return root ? 1 + (below > above ? below : above) : 0;
}

/* Checks order, overlap and balance, and gives the number of maps. */
static size_t check(const struct map_trees *t, uint32_t root, uint64_t *at)
{
	const struct map_tree_node *node = &t->nodes.v[root];
	size_t below, above;

	if (!root)
		return 0;
	below = check(t, node->child[0], at);
	assert_true(*at <= node->map.start && node->map.start < node->map.end);
	*at = node->map.end;
	above = check(t, node->child[1], at);
	assert_int_equal(node->n, below + above + 1);
	assert_true(1 + below <= 3 * (1 + above) && 1 + above <= 3 * (1 + below));
	return node->n;
}

static uint32_t many_maps(struct map_trees *t)
{
	uint32_t root = 0;

	for (uint64_t i = 0; i < MAPS; i++)
		root = lay(t, root, i * 4, i * 4 + 2);
	assert_int_equal(map_tree_maps(t, root), MAPS);
	return root;
}

static void a_change_of_a_shared_tree_costs_its_depth(void **state)
{
	struct map_trees t = {.nodes_max = NODES_MAX};
	uint32_t root = many_maps(&t), seed = 1;
	size_t most = 0, one = used(&t);

	(void)state;
	assert_true(depth(&t, root) <= 45); /* log of MAPS to the base of 4/3 */
	for (int i = 0; i < 20000; i++) {
		uint32_t before = map_tree_share(&t, root);
		uint64_t start = next_random(&seed) % (MAPS * 4), at = 0;
		size_t was = used(&t);

		root = lay(&t, root, start, start + 1 + next_random(&seed) % (i % 64 ? 16 : 65536));
		if (used(&t) - was > most)
			most = used(&t) - was;
		if (!(i % 4096))
			assert_int_equal(check(&t, root, &at), map_tree_maps(&t, root));
		/* The older tree goes, or the newer one. */
		map_tree_drop(&t, i % 3 ? root : before);
		root = i % 3 ? before : root;
	}
	assert_true(most > 10 && most < MAP_TREE_CHANGE_NODES / 4);
	assert_true(used(&t) <= one + 20000);
	map_tree_drop(&t, root);
	assert_int_equal(used(&t), 1);
	map_trees_free(&t);
}

static void removed_ranges_leave_the_others(void **state)
{
	struct map_trees t = {.nodes_max = NODES_MAX};
	uint32_t root = many_maps(&t), kept = map_tree_share(&t, root);
	uint64_t at = 0;

	(void)state;
	for (uint64_t i = 0; i < MAPS; i += 2) {
		assert_int_equal(map_trees_reserve(&t), 0);
		root = map_tree_replace(&t, root, i * 4, i * 4 + 4, NULL);
	}
	assert_int_equal(check(&t, root, &at), MAPS / 2);
	at = 0;
	assert_int_equal(check(&t, kept, &at), MAPS);
	assert_int_equal(map_tree_find(&t, root, 0)->start, 4);
	assert_int_equal(map_tree_find(&t, kept, 0)->start, 0);
	assert_null(map_tree_find(&t, kept, MAPS * 4));
	map_tree_drop(&t, root);
	map_tree_drop(&t, kept);
	assert_int_equal(used(&t), 1);
	map_trees_free(&t);
}

static void all_trees_have_one_limit(void **state)
{
	struct map_trees t = {.nodes_max = 2 * MAP_TREE_CHANGE_NODES};
	uint32_t roots[2] = {0};
	uint64_t n = 0;

	(void)state;
	while (!map_trees_reserve(&t)) {
		roots[n % 2] = lay(&t, roots[n % 2], n * 2, n * 2 + 1);
		n++;
	}
	assert_int_equal(map_trees_reserve(&t), -E2BIG);
	assert_int_equal(n, MAP_TREE_CHANGE_NODES);
	map_tree_drop(&t, roots[0]);
	assert_int_equal(map_trees_reserve(&t), 0);
	map_tree_drop(&t, roots[1]);
	map_trees_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_change_of_a_shared_tree_costs_its_depth),
		cmocka_unit_test(removed_ranges_leave_the_others),
		cmocka_unit_test(all_trees_have_one_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
