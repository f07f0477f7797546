/* Finds the starts of methods, and the bounds and rules of stubs. */
#include "unwind/clr_code.h"
#include "unwind/clr_code_impl.h"

#include <errno.h>

/*
 * The nibble map, as in dotnet/coreclr/jit_code.c: a word has 8 nibbles for 256 bytes of code, the
 * first one highest. If the last nibble is above 8, the word is a pointer: all 256 bytes belong to
 * the code to which it points.
 */
#define WORD_CODE_BYTES 256
#define NIBBLE_CODE_BYTES 32
#define NIBBLES 8
#define POINTER_ABOVE 8u
#define FIRST_WORDS 64
#define WORDS_MAX 1024
#define PAGE 4096u

/* Finds the last start in a word at or before limit. Results are offsets from base. */
static bool start_in(uint32_t word, uint64_t at, uint64_t limit, uint64_t *ret_offset)
{
	if ((word & 15) > POINTER_ABOVE) {
		*ret_offset = (word & ~15u) + (((word & 15) - POINTER_ABOVE - 1) << 2);
		return *ret_offset <= limit;
	}
	for (int i = NIBBLES - 1; i >= 0; i--) {
		uint32_t nibble = word >> (28 - 4 * i) & 15;
		uint64_t offset = at + (uint64_t)i * NIBBLE_CODE_BYTES + 4 * (uint64_t)(nibble - 1);

		if (nibble && nibble <= NIBBLES && offset <= limit) {
			*ret_offset = offset;
			return true;
		}
	}
	return false;
}

int clr_code_find_start(const struct clr_io *io, uint64_t base, uint64_t map, uint64_t addr,
			uint64_t *ret_start)
{
	uint32_t words[WORDS_MAX];
	uint64_t limit = addr - base, end = limit / WORD_CODE_BYTES + 1, first = end, offset,
		 searched = 0;

	if (addr < base)
		return -ENOENT;
	for (size_t most = FIRST_WORDS; first && searched < CLR_CODE_METHOD_BYTES_MAX;
	     most = WORDS_MAX, end = first) {
		size_t n = end < most ? (size_t)end : most;

		first = end - n;
		int r = io->read(io->ctx, map + first * sizeof(*words), words, n * sizeof(*words));

		if (r)
			return r;
		for (size_t i = n; i-- > 0;)
			if (start_in(words[i], (first + i) * WORD_CODE_BYTES, limit, &offset)) {
				*ret_start = base + offset;
				return 0;
			}
		searched += n * WORD_CODE_BYTES;
	}
	return -ENOENT;
}

int clr_code_window_add(struct clr_code_window *w, uint64_t addr, bool wanted,
			struct clr_batch *batch)
{
	uint64_t start = addr < CLR_STUB_CODE_MAX ? 0 : addr - CLR_STUB_CODE_MAX,
		 page = (start / PAGE + 1) * PAGE;
	uint32_t front = wanted ? CLR_CODE_WINDOW : 0, rest = 0;
	int r;

	if (wanted && start + CLR_CODE_WINDOW > page) {
		front = (uint32_t)(page - start);
		rest = CLR_CODE_WINDOW - front;
	}
	w->addr = wanted ? addr : 0;
	w->start = start;
	r = clr_batch_add(batch, start, w->bytes, front);
	return r ? r : clr_batch_add(batch, start + front, w->bytes + front, rest);
}

void clr_code_window_got(struct clr_code_window *w, const struct clr_batch *batch, size_t *piece)
{
	const struct memory_piece *front = &batch->pieces.v[*piece], *rest = front + 1;

	*piece += 2;
	w->len = front->ok ? front->len : 0;
	if (rest->ok && front->ok) {
		w->len += rest->len;
	} else if (rest->ok) {
		memmove(w->bytes, w->bytes + front->len, rest->len);
		w->start += front->len;
		w->len = rest->len;
	}
	if (w->addr - w->start >= w->len)
		w->len = 0;
}

int clr_code_stub(const struct clr_code_window *w, uint64_t addr, uint64_t *ret_start,
		  uint64_t *ret_end, struct code_rules *ret_rules)
{
	size_t at = (size_t)(addr - w->start), len;
	struct clr_stub_code stub;
	int r;

	if (!w->len)
		return -ENOENT;
	/* Take the stub that begins first: its end may look like another one. */
	for (size_t s = (size_t)(-w->start & 3); s <= at; s += 4) {
		if (clr_stub_code_match(w->bytes + s, w->len - s, w->start + s, &stub) ||
		    addr - stub.start >= stub.bytes)
			continue;
		r = code_rules_follow(w->bytes + s, stub.bytes, true, ret_rules);
		if (!r) {
			*ret_start = stub.start;
			*ret_end = stub.start + stub.bytes;
		}
		return r;
	}
	r = code_rules_ahead(w->bytes + at, w->len - at, ret_rules, &len);
	if (!r) {
		*ret_start = addr;
		*ret_end = addr + len;
	}
	return r;
}
