#include "unwind/bare_code.h"

#include "base/cleanup.h"
#include "unwind/x86_64_code.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

/* Size of a slot in a procedure linkage table. Two slots of .plt.got (8 bytes) count as one. */
#define SLOT_BYTES 16

static bool is_slots(const struct elf_section *s)
{
	return !strncmp(s->name, ".plt", 4) || !strcmp(s->name, ".iplt");
}

static bool is_function(const struct elf_section *s)
{
	return (!strcmp(s->name, ".init") || !strcmp(s->name, ".fini")) &&
	       s->bytes <= BARE_CODE_SECTION_BYTES_MAX;
}

int bare_code_read(struct bare_code *b, const struct elf_file *elf)
{
	struct bare_section *sections = calloc(BARE_CODE_SECTIONS_MAX, sizeof(*sections));
	size_t n = 0;

	if (!sections)
		return -ENOMEM;
	for (size_t i = 0; i < elf->nsections && n < BARE_CODE_SECTIONS_MAX; i++) {
		const struct elf_section *s = &elf->sections[i];

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR &&
		    (is_slots(s) || is_function(s)))
			sections[n++] = (struct bare_section){.vaddr = s->addr,
							      .file_off = s->file_off,
							      .bytes = s->bytes,
							      .slots = is_slots(s)};
	}
	b->sections = sections;
	b->nsections = n;
	return 0;
}

void bare_code_free(struct bare_code *b)
{
	for (size_t i = 0; i < b->nsections; i++)
		code_rules_free(&b->sections[i].rules);
	free(b->sections);
	*b = (struct bare_code){0};
}

static int take(const struct code_rules *rules, uint64_t offset, struct unwind_rule *ret_rule)
{
	const struct unwind_rule *rule = code_rules_at(rules, offset);

	if (!rule || rule->kind != UNWIND_PLAIN)
		return -ENOENT;
	*ret_rule = *rule;
	return 0;
}

/*
 * Whether a slot other than the first begins like this: endbr64, push imm32, jmp [rip + x], bnd jmp
 * [rip + x].
 */
static bool begins_slot(const unsigned char *code)
{
	return !memcmp(code, "\xf3\x0f\x1e\xfa", 4) || code[0] == 0x68 ||
	       !memcmp(code, "\xff\x25", 2) || !memcmp(code, "\xf2\xff\x25", 3);
}

/* Follows one slot. Callers enter it at its start, the dynamic linker after its jump. */
static int slot_rule(const struct bare_section *s, const struct code_bytes *bytes, uint64_t offset,
		     struct unwind_rule *ret_rule)
{
	uint64_t begin = offset & ~(uint64_t)(SLOT_BYTES - 1);
	struct code_rules rules;
	unsigned char code[SLOT_BYTES] = {0};
	/* Other slots push a word and jump to the first slot, push [rip + x]. */
	size_t len = code_bytes_read(bytes, s->file_off + begin, code,
				     s->bytes - begin < SLOT_BYTES ? s->bytes - begin : SLOT_BYTES);
	bool first = !begin && !memcmp(code, "\xff\x35", 2);
	int r = first || begins_slot(code) ? code_rules_follow(code, len, true, &rules) : -ENOENT;

	if (r)
		return r;
	r = take(&rules, offset - begin, ret_rule);
	code_rules_free(&rules);
	if (!r && first)
		ret_rule->cfa_add += 8;
	return r;
}

static int function_rule(struct bare_section *s, const struct code_bytes *bytes, uint64_t offset,
			 struct unwind_rule *ret_rule)
{
	if (!s->tried) {
		AUTO_FREE unsigned char *code = malloc((size_t)s->bytes + 1);
		int r = code ? code_rules_follow(
				       code,
				       code_bytes_read(bytes, s->file_off, code, (size_t)s->bytes),
				       false, &s->rules)
			     : -ENOMEM;

		if (r == -ENOMEM)
			return r;
		s->tried = true;
	}
	return take(&s->rules, offset, ret_rule);
}

static int ahead_rule(const struct code_bytes *bytes, uint64_t file_off, uint64_t file_end,
		      struct unwind_rule *ret_rule)
{
	unsigned char code[BARE_CODE_AHEAD_MAX];
	size_t len = file_off < file_end ? sizeof(code) : 0;

	if (len > file_end - file_off)
		len = (size_t)(file_end - file_off);
	len = code_bytes_read(bytes, file_off, code, len);
	if (!x86_64_ahead(code, len, ret_rule))
		return -ENOENT;
	ret_rule->kind = UNWIND_AHEAD;
	return 0;
}

int bare_code_rule(struct bare_code *b, const struct code_bytes *bytes, uint64_t vaddr,
		   uint64_t file_off, uint64_t file_end, struct unwind_rule *ret_rule)
{
	for (size_t i = 0; i < b->nsections; i++) {
		struct bare_section *s = &b->sections[i];
		uint64_t offset = vaddr - s->vaddr;

		if (offset < s->bytes)
			return s->slots ? slot_rule(s, bytes, offset, ret_rule)
					: function_rule(s, bytes, offset, ret_rule);
	}
	return ahead_rule(bytes, file_off, file_end, ret_rule);
}
