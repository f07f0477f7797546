#include "symbols/tracker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/mman.h>

#include <cmocka.h>

#define IMAGE_NONE (-1)

/* Counts what a tracker asks of its owner. */
struct owner {
	struct lookup_cache cache;
	struct tracker *tracker;
	uint32_t images, comms; /* given so far */
	int error;              /* of the next image */
};

static int image(void *ctx, const struct perfdata_record *record, uint32_t *ret_image,
		 bool *ret_anonymous)
{
	struct owner *o = ctx;

	(void)record;
	*ret_image = o->images++;
	*ret_anonymous = false;
	return o->error;
}

static int comm(void *ctx, int32_t tid, const char *name, uint32_t *ret_comm)
{
	struct owner *o = ctx;

	*ret_comm = name ? 100 + o->comms++ : (uint32_t)tid;
	return 0;
}

static void begin(struct owner *o, bool named)
{
	*o = (struct owner){0};
	struct tracker_options options = {.lookup_cache = &o->cache, .ctx = o};

	if (named) {
		options.image = image;
		options.comm = comm;
	}
	assert_int_equal(tracker_new(&options, &o->tracker), 0);
}

static uint32_t comm_of(struct owner *o, struct process_thread *t)
{
	uint32_t id;

	assert_int_equal(processes_comm_of(o->tracker->processes, t, &id), 0);
	return id;
}

static void end(struct owner *o)
{
	tracker_free(o->tracker);
	lookup_cache_free(&o->cache);
}

static struct perfdata_record map(int32_t pid, uint64_t addr, const char *name)
{
	return (struct perfdata_record){
		.type = PERF_RECORD_MMAP2,
		.misc = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.mmap = {.addr = addr, .len = 0x1000, .prot = PROT_EXEC, .filename = name}};
}

/* The image that a process has mapped at an address, or IMAGE_NONE. */
static int64_t at(const struct owner *o, int32_t pid, uint64_t addr)
{
	struct process_thread *t;
	const struct process_map *m;

	assert_int_equal(processes_thread(o->tracker->processes, pid, pid, &t), 0);
	m = processes_find_map(o->tracker->processes, t, addr);
	return m ? (int64_t)m->image : IMAGE_NONE;
}

static const char *path(const struct owner *o, uint32_t number)
{
	return intern_text(&o->cache.texts, o->cache.images.v[number].key.path);
}

static void one_record_changes_maps_once(void **state)
{
	struct owner o;
	struct perfdata_record r = map(7, 0x1000, "/a");

	(void)state;
	begin(&o, true);
	assert_int_equal(tracker_apply(o.tracker, &r), 0);
	assert_int_equal(o.images, 1);
	assert_int_equal(at(&o, 7, 0x1800), 0);
	/* No image without memory, no map without its image. */
	o.error = -E2BIG;
	r = map(7, 0x5000, "/b");
	assert_int_equal(tracker_apply(o.tracker, &r), 0);
	assert_int_equal(at(&o, 7, 0x5000), IMAGE_NONE);
	o.error = -ENOMEM;
	assert_int_equal(tracker_apply(o.tracker, &r), -ENOMEM);
	end(&o);
}

static void maps_of_kernels_are_no_maps_of_processes(void **state)
{
	static const uint16_t modes[] = {PERF_RECORD_MISC_KERNEL, PERF_RECORD_MISC_GUEST_KERNEL};
	struct perfdata_record r = map(7, 0x1000, "[kernel.kallsyms]_text");
	struct owner o;

	(void)state;
	begin(&o, true);
	for (int i = 0; i < 2; i++) {
		r.misc = modes[i];
		assert_int_equal(tracker_apply(o.tracker, &r), 0);
	}
	assert_int_equal(o.images, 0);
	assert_int_equal(at(&o, 7, 0x1000), IMAGE_NONE);
	end(&o);
}

static void an_image_keeps_its_first_place(void **state)
{
	struct perfdata_record r = map(7, 0x1000, "/a"), again = map(8, 0x9000, "/a"),
			       other = map(8, 0x3000, "/b");
	struct owner o;

	(void)state;
	begin(&o, false);
	assert_int_equal(tracker_apply(o.tracker, &r), 0);
	assert_int_equal(tracker_apply(o.tracker, &again), 0);
	assert_int_equal(tracker_apply(o.tracker, &other), 0);
	assert_int_equal(at(&o, 7, 0x1000), at(&o, 8, 0x9000));
	assert_int_equal(o.cache.images.len, 2);
	assert_int_equal(o.tracker->places.v[at(&o, 8, 0x9000)].pid, 7);
	assert_int_equal(o.tracker->places.v[at(&o, 8, 0x9000)].start, 0x1000);
	assert_int_equal(o.tracker->places.v[at(&o, 8, 0x3000)].pid, 8);
	assert_int_equal(o.tracker->places.v[at(&o, 8, 0x3000)].end, 0x4000);
	end(&o);
}

static void forks_take_maps_and_names_except_synthesized_ones(void **state)
{
	struct perfdata_record r = map(7, 0x1000, "/a"),
			       name = {.type = PERF_RECORD_COMM, .pid = 7, .tid = 7},
			       fork = {.type = PERF_RECORD_FORK, .pid = 8, .tid = 8};
	struct process_thread *t;
	struct owner o;

	(void)state;
	begin(&o, true);
	name.comm.name = "first";
	fork.task.ppid = fork.task.ptid = 7;
	assert_int_equal(tracker_apply(o.tracker, &name), 0);
	assert_int_equal(tracker_apply(o.tracker, &r), 0);
	assert_int_equal(tracker_apply(o.tracker, &fork), 0);
	assert_int_equal(at(&o, 8, 0x1000), 0);
	assert_int_equal(processes_thread(o.tracker->processes, 8, 8, &t), 0);
	assert_int_equal(comm_of(&o, t), 100);
	fork.pid = fork.tid = 9;
	fork.misc = PERF_RECORD_MISC_FORK_EXEC;
	assert_int_equal(tracker_apply(o.tracker, &fork), 0);
	assert_int_equal(at(&o, 9, 0x1000), IMAGE_NONE);
	assert_int_equal(processes_thread(o.tracker->processes, 10, 10, &t), 0);
	assert_int_equal(comm_of(&o, t), 10);
	end(&o);
}

#define STORM 20000 /* names, more than fit into SMALL bytes */
#define FEW 40      /* images of an ordinary process */
#define SMALL (TRACKER_PART_OF_MEMORY * ((uint64_t)1 << 20))

static void map_new_name(struct owner *o, int32_t pid, uint64_t addr, int number)
{
	char name[40];

	snprintf(name, sizeof(name), "/memfd:%d (deleted)", number);
	struct perfdata_record r = map(pid, addr, name);

	assert_int_equal(tracker_apply(o->tracker, &r), 0);
}

/* While a recording runs, a process that maps ever new files costs bounded memory and no maps. */
static void images_without_maps_are_forgotten(void **state)
{
	struct perfdata_record kept = map(7, 0x1000, "/kept"), anon = map(7, 0x9200, "//anon");
	struct owner o = {0};

	(void)state;
	anon.mmap.len = 0x100;
	assert_int_equal(tracker_new(&(struct tracker_options){.lookup_cache = &o.cache,
							       .recording = true,
							       .bytes = SMALL},
				     &o.tracker),
			 0);
	map_new_name(&o, 7, 0x7000, -1);
	assert_int_equal(tracker_apply(o.tracker, &kept), 0);
	kept = map(7, 0x9000, "/under");
	assert_int_equal(tracker_apply(o.tracker, &kept), 0);
	assert_int_equal(tracker_apply(o.tracker, &anon), 0);
	for (int i = 0; i < STORM; i++) {
		map_new_name(&o, 8, 0x1000, i);
		/* The newest map of each process is known. */
		assert_int_equal(o.tracker->places.v[at(&o, 8, 0x1000)].pid, 8);
	}
	assert_true(o.tracker->renumbered > 0);
	assert_true(o.cache.images.len < STORM / 2);
	assert_int_equal(tracker_dropped(o.tracker).maps, 0);
	/* Maps from before the storm still have their images. */
	const struct process_map *m;
	struct process_thread *t;

	assert_int_equal(processes_thread(o.tracker->processes, 7, 7, &t), 0);
	m = processes_find_map(o.tracker->processes, t, 0x9200);
	assert_string_equal(path(&o, m->image), "//anon");
	assert_string_equal(path(&o, m->under), "/under");
	assert_string_equal(path(&o, (uint32_t)at(&o, 7, 0x1000)), "/kept");
	assert_int_equal(o.tracker->places.v[at(&o, 7, 0x1000)].start, 0x1000);
	assert_string_equal(path(&o, (uint32_t)at(&o, 7, 0x7000)), "/memfd:-1 (deleted)");
	end(&o);
}

/* perf gives the processes of other PID namespaces one number, and mixes their maps. */
static void a_recording_keeps_no_maps_of_other_pid_namespaces(void **state)
{
	(void)state;
	for (int recording = 0; recording < 2; recording++) {
		struct perfdata_record foreign = map(0, 0x1000, "/a");
		struct owner o = {0};

		assert_int_equal(tracker_new(&(struct tracker_options){.lookup_cache = &o.cache,
								       .recording = recording},
					     &o.tracker),
				 0);
		assert_int_equal(tracker_apply(o.tracker, &foreign), 0);
		assert_int_equal(at(&o, 0, 0x1000), recording ? IMAGE_NONE : 0);
		assert_int_equal(o.cache.images.len, !recording);
		end(&o);
	}
}

/* Names of a recording refer to images, so all of them stay, and further ones are counted. */
static void images_over_the_limit_are_dropped(void **state)
{
	struct owner o = {0};

	(void)state;
	assert_int_equal(
		tracker_new(&(struct tracker_options){.lookup_cache = &o.cache, .bytes = SMALL},
			    &o.tracker),
		0);
	for (int i = 0; i < STORM; i++)
		map_new_name(&o, 8, 0x1000 * (uint64_t)(1 + i), i);
	assert_true(o.cache.images.len > 500);
	assert_int_equal(tracker_dropped(o.tracker).maps, STORM - o.cache.images.len);
	assert_int_equal(o.cache.texts.len, o.cache.images.len);
	/* Known images still count. */
	map_new_name(&o, 8, 0, 5);
	assert_string_equal(path(&o, (uint32_t)at(&o, 8, 0)), "/memfd:5 (deleted)");
	end(&o);
}

/* A process with many files, and one that it forked, take no images of one that starts later. */
static void many_images_of_a_family_leave_room_to_others(void **state)
{
	(void)state;
	for (int recording = 0; recording < 2; recording++) {
		struct perfdata_record fork = {.type = PERF_RECORD_FORK, .pid = 9, .tid = 9};
		struct owner o = {0};

		assert_int_equal(tracker_new(&(struct tracker_options){.lookup_cache = &o.cache,
								       .recording = recording,
								       .bytes = SMALL},
					     &o.tracker),
				 0);
		for (int i = 0; i < STORM / 2; i++)
			map_new_name(&o, 8, 0x1000 * (uint64_t)(1 + i), i);
		fork.task.ppid = fork.task.ptid = 8;
		assert_int_equal(tracker_apply(o.tracker, &fork), 0);
		for (int i = STORM / 2; i < STORM; i++)
			map_new_name(&o, 9, 0x1000 * (uint64_t)(1 + i), i);
		assert_int_equal(at(&o, 9, 0x1000 * (uint64_t)STORM), IMAGE_NONE);
		assert_true(o.cache.images.len > 500);
		assert_int_equal(tracker_dropped(o.tracker).most_pid, 9);
		for (int i = 0; i < FEW; i++) {
			map_new_name(&o, 7, 0x1000 * (uint64_t)(1 + i), STORM + i);
			assert_int_not_equal(at(&o, 7, 0x1000 * (uint64_t)(1 + i)), IMAGE_NONE);
		}
		assert_int_equal(tracker_dropped(o.tracker).most_pid, 9);
		end(&o);
	}
}

/* Images of ended processes do not count while a recording runs. */
static void forgotten_images_make_room_for_their_family(void **state)
{
	struct perfdata_record exit = {.type = PERF_RECORD_EXIT, .tid = 9},
			       fork = {.type = PERF_RECORD_FORK, .pid = 9, .tid = 9};
	struct owner o = {0};

	(void)state;
	assert_int_equal(tracker_new(&(struct tracker_options){.lookup_cache = &o.cache,
							       .recording = true,
							       .bytes = SMALL},
				     &o.tracker),
			 0);
	fork.task.ppid = fork.task.ptid = exit.pid = 8;
	for (int i = 0; i < STORM; i++) {
		if (i % FEW == 0) {
			assert_int_equal(tracker_apply(o.tracker, &exit), 0);
			assert_int_equal(tracker_apply(o.tracker, &fork), 0);
		}
		map_new_name(&o, 9, 0x1000 * (uint64_t)(1 + i % FEW), i);
	}
	assert_true(o.tracker->renumbered > 0);
	assert_int_equal(tracker_dropped(o.tracker).maps, 0);
	end(&o);
}

/* The images and maps of an ordinary program are known even if no memory is left. */
static void without_memory_the_limits_are_the_smallest(void **state)
{
	struct owner o = {0};
	struct tracker_dropped dropped;

	(void)state;
	assert_int_equal(
		tracker_new(&(struct tracker_options){.lookup_cache = &o.cache, .bytes = 1},
			    &o.tracker),
		0);
	for (int i = 0; i < 2 * STORM; i++)
		map_new_name(&o, 8, 0x2000 * (uint64_t)(1 + i), 5);
	dropped = tracker_dropped(o.tracker);
	assert_true(dropped.maps > STORM && dropped.maps < 7 * STORM / 4);
	assert_int_equal(dropped.maps_bytes, TRACKER_BYTES_MIN);
	assert_int_equal(dropped.images_bytes, TRACKER_BYTES_MIN);
	end(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_record_changes_maps_once),
		cmocka_unit_test(maps_of_kernels_are_no_maps_of_processes),
		cmocka_unit_test(an_image_keeps_its_first_place),
		cmocka_unit_test(forks_take_maps_and_names_except_synthesized_ones),
		cmocka_unit_test(images_without_maps_are_forgotten),
		cmocka_unit_test(a_recording_keeps_no_maps_of_other_pid_namespaces),
		cmocka_unit_test(images_over_the_limit_are_dropped),
		cmocka_unit_test(many_images_of_a_family_leave_room_to_others),
		cmocka_unit_test(forgotten_images_make_room_for_their_family),
		cmocka_unit_test(without_memory_the_limits_are_the_smallest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
