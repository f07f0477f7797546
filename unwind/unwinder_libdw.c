/* Stacks of other architectures: gives libdw the code of the images that the unwinder follows. */
#include "unwind/unwinder_impl.h"

#include "base/cleanup.h"
#include "base/hash.h"
#include "base/log.h"
#include "container/vdso.h"
#include "elf/budget.h"

#include <elf.h>
#include <errno.h>
#include <unistd.h>

/*
 * Memory for images; more than this, or than half of ELF_BUDGET_LIBDW, is dropped before the next
 * walk.
 */
#define LIBDW_BYTES_KEPT ((uint64_t)192 << 20)
#define LIBDW_BYTES_MAX (LIBDW_BYTES_KEPT + LIBDW_IMAGE_BYTES_MAX)
#define LIBDW_TRIES 4 /* of a walk, each without the image on which the last one failed */

void unwinder_drop_libdw(struct unwinder *u)
{
	if (u->libdw)
		libdw_child_forget(u->libdw);
	for (size_t i = 0; i < u->images.len; i++) {
		libdw_image_free(u->images.v[i].libdw);
		u->images.v[i].libdw = NULL;
		u->images.v[i].libdw_tried = false;
	}
	u->libdw_bytes = 0;
}

/* The vdso of 32-bit programs of the running kernel. 0; -ENOENT; -ENOMEM. */
static int open_vdso32(struct unwinder *u, const struct image_key *key, struct unwind_image *image)
{
	const char *name = unwinder_path(u, key);
	struct parse_error err;
	const void *data;
	size_t len;

	if (u->options.recorded_elsewhere || u->machine->elf != EM_386 ||
	    strcmp(name, "[vdso32]") != 0 || vdso_find(name, &data, &len))
		return -ENOENT;
	return libdw_image_new(-1, data, len, EM_386, &image->libdw, &err);
}

/* Identifies an image also after it got another number. */
static uint64_t image_hash(const struct unwinder *u, uint32_t number)
{
	struct image_key key = *unwinder_key(u, number);
	const char *path = unwinder_path(u, &key);

	key.path = 0;
	return hash_mix(image_key_hash(&key), hash_bytes(path, strlen(path)));
}

static int open_file(struct unwinder *u, uint32_t number, const struct process_map *map)
{
	struct unwind_image *image = unwinder_image(u, number);
	struct parse_error err;
	int fd = -1, r = -E2BIG;

	if (u->libdw_bytes + LIBDW_IMAGE_BYTES_MAX <= LIBDW_BYTES_MAX)
		r = unwinder_open_file(u, number, map, &fd);
	bool missing = r;

	if (!r) {
		r = libdw_image_new(fd, NULL, 0, u->machine->elf, &image->libdw, &err);
		close(fd);
	}
	unwinder_count_image(u, image, missing,
			     r == -EMFILE  ? LIMIT_OPEN_FILES
			     : r == -E2BIG ? LIMIT_FILE_SIZE
					   : LIMITS);
	return r;
}

static size_t image_bytes(const struct libdw_image *image)
{
	size_t bytes = 0;

	if (image)
		libdw_image_file(image, &bytes);
	return bytes;
}

/* Drops an image that became refused. */
static void refuse_image(struct unwinder *u, uint32_t number, bool failed)
{
	struct unwind_image *image = unwinder_image(u, number);

	log_warn("%s: libdw %s on its call frame information; its functions may lack callers; use "
		 "--call-graph fp",
		 unwinder_path(u, unwinder_key(u, number)), failed ? "fails" : "spends too long");
	u->libdw_bytes -= image_bytes(image->libdw);
	libdw_image_free(image->libdw);
	image->libdw = NULL;
	unwinder_count_image(u, image, false, LIMIT_LIBDW_RULES);
}

/* Charges an image for a walk, or with 0 frames for reading it. */
static int charge_image(struct unwinder *u, uint32_t number, uint64_t cpu_ns, uint64_t frames,
			bool *ret_refused)
{
	const struct libdw_charge charge = {.image = image_hash(u, number),
					    .bytes = image_bytes(u->images.v[number].libdw),
					    .cpu_ns = cpu_ns,
					    .frames = frames};

	return libdw_budget_charge(&u->libdw_budget, &charge, ret_refused);
}

/* Reads the CFI of an image once. Returns 0, also if there is none; -ENOMEM. */
static int open_image(struct unwinder *u, uint32_t number, const struct process_map *map)
{
	struct unwind_image *image = unwinder_image(u, number);
	const struct image_key *key = unwinder_key(u, number);
	uint64_t begin_ns = clock_thread_ns();
	bool refused;
	int r;

	if (!image || image->libdw_tried)
		return image ? 0 : -ENOMEM;
	if (libdw_budget_refuses(&u->libdw_budget, image_hash(u, number))) {
		image->libdw_tried = true;
		unwinder_count_image(u, image, false, LIMIT_LIBDW_RULES);
		return 0;
	}
	r = key->kind == IMAGE_KIND_FILE   ? open_file(u, number, map)
	    : key->kind == IMAGE_KIND_VDSO ? open_vdso32(u, key, image)
					   : -ENOENT;
	u->libdw_bytes += image_bytes(image->libdw);
	image->libdw_tried = r != -ENOMEM;
	if (r != -ENOMEM)
		r = charge_image(u, number, clock_thread_ns() - begin_ns, 0, &refused);
	if (!r && refused)
		refuse_image(u, number, false);
	return r;
}

static int find_code(void *ctx, uint64_t addr, struct libdw_child_code *ret_code)
{
	struct unwinder *u = ctx;
	const struct process_map *map = processes_find_map(u->tracker->processes, u->thread, addr);

	if (!map)
		return -ENOENT;
	bool under = map->under != PROCESS_NO_IMAGE;
	uint32_t number = under ? map->under : map->image;
	int r = open_image(u, number, map);

	if (r)
		return r;
	*ret_code = (struct libdw_child_code){.start = map->start,
					      .end = map->end,
					      .file_off = under ? map->under_pgoff : map->pgoff,
					      .number = number,
					      .image = unwinder_image(u, number)->libdw};
	return 0;
}

/*
 * Charges a walk to the image that took most of it. *ret_again: without that image it may succeed.
 */
static int charge_walk(struct unwinder *u, const struct libdw_cost *cost, bool failed,
		       bool *ret_again)
{
	bool known = cost->slowest < u->images.len, refused = false;
	int r = 0;

	if (known && failed)
		r = libdw_budget_fail(&u->libdw_budget, image_hash(u, cost->slowest), cost->cpu_ns,
				      &refused);
	else if (known)
		r = charge_image(u, cost->slowest, cost->cpu_ns, u->other.n, &refused);
	if (refused) {
		refuse_image(u, cost->slowest, failed);
		/* A new child knows nothing of it. */
		libdw_child_forget(u->libdw);
	}
	*ret_again = failed && refused;
	if (failed && !refused)
		libdw_budget_fail_alone(&u->libdw_budget, known ? 0 : cost->cpu_ns);
	return r;
}

/* Walks, without images on which libdw fails. Returns 0 or -ENOMEM. */
static int walk_sample(struct unwinder *u, struct libdw_sample *sample)
{
	bool again = true, failed = true;
	int r = 0;

	if (!libdw_budget_lasts(&u->libdw_budget))
		r = machine_walk_sampled(sample->machine, sample->regs, sample->regs_mask,
					 WALK_DAMAGED, &u->other);
	for (int i = 0; i < LIBDW_TRIES && again && !r && libdw_budget_lasts(&u->libdw_budget);
	     i++) {
		struct libdw_cost cost;

		sample->early = libdw_budget_is_spent(&u->libdw_budget);
		r = libdw_child_walk(u->libdw, sample, &u->other, &cost, &failed);
		if (!r)
			r = charge_walk(u, &cost, failed, &again);
	}
	u->walk_limit = !failed                                                ? LIMITS
			: u->libdw_budget.refused_ns < LIBDW_BUDGET_REFUSED_NS ? LIMIT_LIBDW_PROCESS
									       : LIMIT_LIBDW_RULES;
	return r;
}

int unwinder_walk_libdw(struct unwinder *u, const struct unwinder_sample *s,
			const struct machine *machine)
{
	struct libdw_sample sample = {
		.machine = machine,
		.space = processes_generation(u->tracker->processes, u->thread),
		.regs = s->regs,
		.regs_mask = s->regs_mask,
		.memory = {.data = s->stack, .len = s->stack ? s->stack_bytes : 0}};
	int r = u->libdw ? 0 : libdw_child_new(find_code, u, &u->libdw);

	if (u->libdw_bytes > LIBDW_BYTES_KEPT ||
	    (u->libdw_bytes && elf_budget_is_low(ELF_BUDGET_LIBDW)))
		unwinder_drop_libdw(u);
	u->machine = machine;
	u->other.max = u->options.frames_max;
	return r ? r : walk_sample(u, &sample);
}
