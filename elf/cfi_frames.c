#include "elf/cfi_frames.h"

#include <errno.h>
#include <stdlib.h>

int cfi_frames_open(const struct elf_file *elf, struct cfi_frames **ret_frames)
{
	struct cfi_frames *f = calloc(1, sizeof(*f));
	int r = f ? cfi_sections_of(elf, &f->sections) : -ENOMEM;

	if (r) {
		free(f);
		return r;
	}
	cfi_index_open(&f->eh_frame, &f->sections.eh_frame, &f->sections.header, true);
	cfi_index_open(&f->debug_frame, &f->sections.debug_frame, NULL, false);
	*ret_frames = f;
	return 0;
}

void cfi_frames_free(struct cfi_frames *f)
{
	if (!f)
		return;
	cfi_index_close(&f->eh_frame);
	cfi_index_close(&f->debug_frame);
	cfi_sections_close(&f->sections);
	free(f);
}

void cfi_frames_drop(struct cfi_frames *f)
{
	cfi_index_drop(&f->eh_frame);
	cfi_index_drop(&f->debug_frame);
}

void cfi_frames_use_fd(struct cfi_frames *f, int fd)
{
	f->sections.header.fd = f->sections.eh_frame.fd = f->sections.debug_frame.fd = fd;
}

int cfi_frames_find(struct cfi_frames *f, uint64_t vaddr, struct cfi_place *ret_place)
{
	struct cfi_place place, other;
	int r = vaddr == UINT64_MAX ? -ENOENT : cfi_index_find(&f->eh_frame, vaddr, &place);

	if (!r && place.error && f->sections.debug_frame.pages.bytes) {
		r = cfi_index_find(&f->debug_frame, vaddr, &other);
		if (r)
			return r;
		other.lo = other.lo > place.lo ? other.lo : place.lo;
		other.hi = other.hi < place.hi ? other.hi : place.hi;
		other.debug_frame = !other.error;
		if (other.error && place.error != -ENOENT)
			other.error = place.error;
		place = other;
	}
	if (!r)
		*ret_place = place;
	return r;
}

int cfi_frames_fde(struct cfi_frames *f, const struct cfi_place *place,
		   const struct cfi_cie **ret_cie, struct cfi_fde *ret_fde)
{
	int r = cfi_index_fde(place->debug_frame ? &f->debug_frame : &f->eh_frame, place->off,
			      ret_cie, ret_fde);

	/* The file may have changed since its table was read. */
	return !r && (ret_fde->start != place->start || ret_fde->end != place->end) ? -EBADMSG : r;
}

uint64_t cfi_frames_bytes(const struct cfi_frames *f)
{
	const struct cfi_sections *s = &f->sections;

	return sizeof(*f) +
	       (f->eh_frame.entries.cap + f->debug_frame.entries.cap) *
		       sizeof(struct cfi_index_entry) +
	       (f->eh_frame.row_bytes ? f->eh_frame.header_count * sizeof(uint32_t) : 0) +
	       s->header.resident + s->eh_frame.resident + s->debug_frame.resident +
	       (s->debug_frame.pages.packed && s->debug_frame.pages.data
			? s->debug_frame.pages.bytes
			: 0);
}
