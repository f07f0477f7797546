/* unwind/image_code, unwind/bare_code, unwind/clr_hijack: rules for code that CFI does not cover or
 * describes wrongly. */
#include "unwind/image_code.h"

#include "tests/unit/bare_image.h"
#include "tests/unit/unwind_check.h"
#include "elf/budget.h"
#include "elf/cfi_section.h"
#include "unwind/clr_hijack.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

/* As lld and ld write it: the first slot, then a slot of a function that is bound lazily. */
static const unsigned char plt[] = {
	0xff, 0x35, 0xca, 0x2f, 0, 0, 0xff, 0x25, 0xcc, 0x2f, 0, 0,    0x0f, 0x1f, 0x40, 0,
	0xff, 0x25, 0xca, 0x2f, 0, 0, 0x68, 0,    0,    0,    0, 0xe9, 0xe0, 0xff, 0xff, 0xff,
};
/* Slots that push nothing, of 8 bytes; gold pads the first one of .plt with nop. */
static const unsigned char plt_got[] = {0xff, 0x25, 0x9a, 0x2f, 0, 0, 0x66, 0x90,
					0xff, 0x25, 0x9a, 0x2f, 0, 0, 0x66, 0x90};
/* With endbr64 and bnd: slots that are called, and slots that push. */
static const unsigned char plt_sec[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xa6,
					0x2f, 0,    0,    0x0f, 0x1f, 0x44, 0,    0};
static const unsigned char plt_ibt[] = {
	0xff, 0x35, 0xca, 0x2f, 0,    0, 0xf2, 0xff, 0x25, 0xcc, 0x2f, 0,    0,    0x0f, 0x1f, 0,
	0xf3, 0x0f, 0x1e, 0xfa, 0x68, 0, 0,    0,    0,    0xf2, 0xe9, 0xe1, 0xff, 0xff, 0xff, 0x90,
};
/* lld's -z retpolineplt: slots of 32 bytes, unknown to profcpu. */
static const unsigned char plt_other[] = {
	0x4c, 0x8b, 0x1d, 0, 0, 0, 0,    0xe8, 0x14, 0,    0,    0,    0xe9, 0x0d, 0,    0,
	0,    0x68, 0,    0, 0, 0, 0xe9, 0xc5, 0xff, 0xff, 0xff, 0xcc, 0xcc, 0xcc, 0xcc, 0xcc,
};
/* crti.o and crtn.o */
static const unsigned char init[] = {
	0x48, 0x83, 0xec, 0x08, 0x48, 0x8b, 0x05, 0x99, 0x7e, 0x02, 0,    0x48,
	0x85, 0xc0, 0x74, 0x02, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3,
};
/* push rbx; mov ebx, edi; call; add eax, ebx; pop rbx; ret; jmp rax */
static const unsigned char text[] = {0x53, 0x89, 0xfb, 0xe8, 0,    1,    0,    0,
				     0x01, 0xd8, 0x5b, 0xc3, 0xff, 0xe0, 0xcc, 0xc3};

static const unsigned char stub_8[] = {
	0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x52,
	0x50, 0x48, 0x89, 0xe7, 0xe8, 0,    0,    0,    0,    0xc3, 0x90, 0x90,
};
static const unsigned char stub_10[] = {
	0x50, 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x41, 0x55, 0x41, 0x54, 0x51,
	0x52, 0x50, 0x48, 0x89, 0xe7, 0xe8, 0,    0,    0,    0,    0xc3, 0x90,
};
/* DW_CFA_advance_loc 1, def_cfa_offset 16; to 21: 80; to 22: 16 */
static const unsigned char stub_cfi[] = {0x41, 0x0e, 16, 0x54, 0x0e, 80, 0x41, 0x0e, 16, 0, 0, 0};
#define STUB_BYTES sizeof(stub_10)

static const char runtime_names[] = "\0coreclr_initialize\0g_dacTable\0";

static struct image_code *open_image(const struct bare_image *b)
{
	struct image_code *c;

	assert_int_equal(image_code_from_memory(b->bytes.v, b->bytes.len, &c), 0);
	return c;
}

static struct unwind_rule rule_at(struct image_code *c, uint64_t file_off)
{
	struct unwind_rule rule;

	assert_int_equal(image_code_rule(c, file_off, NULL, &rule), 0);
	return rule;
}

static void check_rule(struct image_code *c, uint64_t file_off, const char *text_of)
{
	struct unwind_rule rule = rule_at(c, file_off);

	assert_rule(&rule, text_of);
}

static void slots_of_linkage_tables_have_their_rules(void **state)
{
	struct bare_image b;

	(void)state;
	bare_image_begin(&b);
	uint64_t plain = bare_image_code(&b, ".plt", plt, sizeof(plt)),
		 got = bare_image_code(&b, ".plt.got", plt_got, sizeof(plt_got)),
		 sec = bare_image_code(&b, ".plt.sec", plt_sec, sizeof(plt_sec)),
		 ibt = bare_image_code(&b, ".plt", plt_ibt, sizeof(plt_ibt)),
		 other = bare_image_code(&b, ".plt", plt_other, sizeof(plt_other)),
		 iplt = bare_image_code(&b, ".iplt", plt + 16, 16);
	bare_image_end(&b, 0);
	struct image_code *c = open_image(&b);
	const struct {
		uint64_t at;
		const char *rule;
	} known[] = {
		/* Slots that jump to it have pushed a word. */
		{plain, "sp+16 same"},     {plain + 6, "sp+24 same"},  {plain + 16, "sp+8 same"},
		{plain + 22, "sp+8 same"}, {plain + 27, "sp+16 same"}, {got, "sp+8 same"},
		{got + 8, "sp+8 same"},    {sec, "sp+8 same"},         {sec + 4, "sp+8 same"},
		{ibt, "sp+16 same"},       {ibt + 6, "sp+24 same"},    {ibt + 16, "sp+8 same"},
		{ibt + 20, "sp+8 same"},   {ibt + 25, "sp+16 same"},   {other, "none"},
		{other + 17, "none"},      {iplt, "sp+8 same"},        {iplt + 11, "sp+16 same"},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		check_rule(c, known[i].at, known[i].rule);
	assert_int_equal(rule_at(c, plain + 27).saves, 0);
	image_code_free(c);
	bare_image_free(&b);
}

static void functions_of_several_pieces_and_leaves_have_rules(void **state)
{
	struct unwind_rule rule;
	struct bare_image b;

	(void)state;
	bare_image_begin(&b);
	uint64_t begin = bare_image_code(&b, ".init", init, sizeof(init)),
		 code = bare_image_code(&b, ".text", text, sizeof(text));
	bare_image_end(&b, 0);
	struct image_code *c = open_image(&b);

	check_rule(c, begin, "sp+8 same");
	check_rule(c, begin + 4, "sp+16 same");
	check_rule(c, begin + 17, "sp+16 same"); /* within its call instruction, because lookups of
						    callers use return address - 1 */
	check_rule(c, begin + 22, "sp+8 same");
	rule = rule_at(c, code + 1);
	assert_int_equal(rule.kind, UNWIND_AHEAD);
	rule.kind = UNWIND_PLAIN;
	assert_rule(&rule, "sp+16 same");
	check_rule(c, code + 12, "none");
	image_code_free(c);
	bare_image_free(&b);
}

static void without_section_headers_only_later_code_is_known(void **state)
{
	struct bare_image b;

	(void)state;
	bare_image_begin(&b);
	uint64_t plain = bare_image_code(&b, ".plt", plt, sizeof(plt)),
		 code = bare_image_code(&b, ".text", text, sizeof(text));
	bare_image_end(&b, 1);
	struct image_code *c = open_image(&b);

	check_rule(c, plain + 16, "none");
	assert_int_equal(rule_at(c, code + 1).kind, UNWIND_AHEAD);
	check_rule(c, b.bytes.len + 5, "none");
	image_code_free(c);
	bare_image_free(&b);
}

/* The file offset of an address in this program, by its program headers. */
static uint64_t own_file_off(uintptr_t addr)
{
	const Elf64_Phdr *h = (const Elf64_Phdr *)getauxval(AT_PHDR);
	size_t n = getauxval(AT_PHNUM);
	uintptr_t base = 0;

	for (size_t i = 0; i < n; i++)
		if (h[i].p_type == PT_PHDR)
			base = (uintptr_t)h - h[i].p_vaddr;
	for (size_t i = 0; i < n; i++)
		if (h[i].p_type == PT_LOAD && addr - base - h[i].p_vaddr < h[i].p_filesz)
			return addr - base - h[i].p_vaddr + h[i].p_offset;
	return UINT64_MAX;
}

/* Programs may have no section headers. The program headers lead to their CFI. */
static void without_section_headers_cfi_is_known(void **state)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
	    to = memfd_create("program", MFD_CLOEXEC);
	struct image_code *c;
	struct unwind_rule rule;
	Elf64_Ehdr h;
	struct stat st;
	off_t at = 0;

	(void)state;
	assert_true(from >= 0 && to >= 0 && !fstat(from, &st));
	while (at < st.st_size)
		assert_true(sendfile(to, from, &at, (size_t)(st.st_size - at)) > 0);
	assert_int_equal(pread(to, &h, sizeof(h), 0), sizeof(h));
	h.e_shoff = h.e_shnum = h.e_shstrndx = 0;
	assert_int_equal(pwrite(to, &h, sizeof(h), 0), sizeof(h));
	close(from);
	assert_int_equal(image_code_open(to, &c), 0);
	assert_int_equal(image_code_rule(c, own_file_off((uintptr_t)own_file_off), NULL, &rule), 0);
	assert_rule(&rule, "sp+8 same");
	image_code_free(c);
}

/* A target can map many files. */
static void with_little_memory_few_images_have_rules(void **state)
{
	struct image_code *first, *second;
	struct bare_image b;
	uint64_t at;

	(void)state;
	bare_image_begin(&b);
	at = bare_image_code(&b, ".plt", plt, sizeof(plt));
	bare_image_end(&b, 0);
	elf_budget_limit(ELF_BUDGET_IMAGES, 20000);
	first = open_image(&b);
	second = open_image(&b);
	assert_false(image_code_over_limit(first));
	assert_true(image_code_over_limit(second));
	check_rule(second, at, "none");
	image_code_free(first);
	image_code_free(second);
	second = open_image(&b);
	check_rule(second, at, "sp+16 same");
	image_code_free(second);
	elf_budget_limit(ELF_BUDGET_IMAGES, 0);
	bare_image_free(&b);
}

static void a_file_over_a_limit_is_known(void **state)
{
	static unsigned char large[CFI_IMAGE_BYTES_MAX + 1];
	struct bare_image b;

	(void)state;
	bare_image_begin(&b);
	(void)bare_image_code(&b, ".text", text, sizeof(text));
	bare_image_end(&b, BARE_IMAGE_SECTIONS);
	memcpy(large, b.bytes.v, b.bytes.len);
	for (int over = 0; over < 2; over++) {
		struct image_code *c;

		assert_int_equal(
			image_code_from_memory(large, over ? sizeof(large) : b.bytes.len, &c), 0);
		assert_int_equal(image_code_over_limit(c), over);
		image_code_free(c);
	}
	bare_image_free(&b);
}

static void a_step_follows_its_rule(void **state)
{
	static uint64_t stack[8] = {[3] = 0x4444};
	const struct unwind_memory memory = {0x1000, (const unsigned char *)stack, sizeof(stack),
					     NULL};
	struct unwind_regs regs = {.known = 0x1ffff};
	struct bare_image b;
	bool is_signal = true;

	(void)state;
	bare_image_begin(&b);
	uint64_t plain = bare_image_code(&b, ".plt", plt, sizeof(plt)),
		 begin = bare_image_code(&b, ".init", init, sizeof(init));
	bare_image_end(&b, 0);
	struct image_code *c = open_image(&b);

	regs.v[ARCH_SP] = 0x1010;
	regs.v[ARCH_BX] = 5;
	assert_int_equal(image_code_step(c, plain + 27, &regs, &memory, &is_signal), 0);
	assert_int_equal(regs.v[ARCH_IP], 0x4444);
	assert_int_equal(regs.v[ARCH_SP], 0x1020);
	assert_int_equal(regs.v[ARCH_BX], 5);
	assert_true(regs.known >> ARCH_BX & 1);
	assert_false(is_signal);
	/* A function may save registers, so nothing is known. */
	regs.v[ARCH_SP] = 0x1010;
	assert_int_equal(image_code_step(c, begin + 4, &regs, &memory, &is_signal), 0);
	assert_int_equal(regs.v[ARCH_SP], 0x1020);
	assert_false(regs.known >> ARCH_BX & 1);
	assert_int_equal(image_code_step(c, b.bytes.len - 1, &regs, &memory, &is_signal), -ENOENT);
	image_code_free(c);
	bare_image_free(&b);
}

/* Places the stub in b, behind a byte of another function. fde_before: bytes before it that belong
 * to the same function. */
static uint64_t add_runtime(struct bare_image *b, const unsigned char *stub, const char *names,
			    size_t names_len, uint64_t fde_before)
{
	bare_image_begin(b);
	bare_image_code(b, ".text", text, sizeof(text));
	uint64_t at = bare_image_code(b, ".stub", stub, STUB_BYTES);

	bare_image_add(b, ".dynstr", SHT_STRTAB, SHF_ALLOC, names, names_len);
	bare_image_fde(b, BARE_IMAGE_AT + at - fde_before, STUB_BYTES - 2 + fde_before, stub_cfi,
		       sizeof(stub_cfi));
	return at;
}

static void the_stub_of_hijacked_returns_has_no_return_address_of_its_own(void **state)
{
	const unsigned char *const stubs[] = {stub_8, stub_10};
	struct unwind_rule rule;
	struct bare_image b;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint64_t at = add_runtime(&b, stubs[i], runtime_names, sizeof(runtime_names), 0);

		bare_image_end(&b, 0);
		struct image_code *c = open_image(&b);

		assert_true(image_code_has_hijack_stub(c));
		assert_int_equal(rule_at(c, at - 1).kind, UNWIND_HIJACK_NEXT);
		assert_int_equal(rule_at(c, at - 2).kind, UNWIND_NONE);
		rule = rule_at(c, at);
		assert_true(rule.kind == UNWIND_HIJACK && rule.cfa_reg == ARCH_SP && !rule.cfa_add);
		rule = rule_at(c, at + 1);
		assert_true(rule.kind == UNWIND_HIJACK && rule.cfa_add == 8);
		rule = rule_at(c, at + 21);
		assert_true(rule.kind == UNWIND_HIJACK && rule.cfa_add == 72);
		assert_int_not_equal(rule_at(c, at + STUB_BYTES - 2).kind, UNWIND_HIJACK);
		image_code_free(c);
		bare_image_free(&b);
	}
}

static void check_no_hijack(struct bare_image *b)
{
	bare_image_end(b, 0);
	struct image_code *c = open_image(b);

	assert_false(image_code_has_hijack_stub(c));
	image_code_free(c);
	bare_image_free(b);
}

static void only_a_runtimes_single_stub_matches(void **state)
{
	struct bare_image b;

	(void)state;
	/* not a runtime */
	add_runtime(&b, stub_10, "\0g_dacTables", 13, 0);
	check_no_hijack(&b);
	/* two such stubs */
	add_runtime(&b, stub_10, runtime_names, sizeof(runtime_names), 0);
	bare_image_code(&b, ".more", stub_8, sizeof(stub_8));
	check_no_hijack(&b);
	/* in the middle of a function */
	add_runtime(&b, stub_10, runtime_names, sizeof(runtime_names), 4);
	check_no_hijack(&b);
	unsigned char other[STUB_BYTES];

	memcpy(other, stub_10, sizeof(other));
	other[16] = 0xe6; /* mov rsi, rsp */
	add_runtime(&b, other, runtime_names, sizeof(runtime_names), 0);
	check_no_hijack(&b);
}

/* A target can map many such files. */
static void without_work_left_the_stub_is_not_searched(void **state)
{
	struct bare_image b;

	(void)state;
	add_runtime(&b, stub_10, runtime_names, sizeof(runtime_names), 0);
	bare_image_end(&b, 0);
	while (elf_budget_work(0))
		elf_budget_worked(UINT64_MAX);
	struct image_code *c = open_image(&b);

	elf_budget_reset_work();
	assert_false(image_code_has_hijack_stub(c));
	assert_true(image_code_over_limit(c));
	image_code_free(c);
	bare_image_free(&b);
}

/* An image of a runtime's size: the stub crosses the border of two reads, or the file ends within
 * it. */
static void the_stub_is_found_wherever_it_is(void **state)
{
	const size_t chunk = (size_t)256 << 10, len = 3 * chunk;
	const struct elf_segment segments[] = {
		{.file_bytes = 1000, .flags = PF_R},
		{.file_off = 64, .file_bytes = len - 64, .flags = PF_R | PF_X}};
	unsigned char *code = calloc(1, len);
	struct code_bytes bytes = {.fd = -1, .memory = code, .bytes = len};
	uint64_t at;

	(void)state;
	for (size_t where = 64 + chunk - 40; where < 64 + chunk + 40; where++) {
		memset(code + 64 + chunk - 50, 0, 120);
		memcpy(code + where, stub_10, STUB_BYTES);
		assert_int_equal(clr_hijack_find(&bytes, segments, 2, &at), 0);
		assert_int_equal(at, where);
	}
	memset(code, 0, len);
	assert_int_equal(clr_hijack_find(&bytes, segments, 2, &at), -ENOENT);
	memcpy(code + 10, stub_10, STUB_BYTES); /* no code */
	assert_int_equal(clr_hijack_find(&bytes, segments, 2, &at), -ENOENT);
	for (size_t left = 1; left < 17; left++) {
		memcpy(code + len - left, stub_10, left);
		assert_int_equal(clr_hijack_find(&bytes, segments, 2, &at), -ENOENT);
	}
	memcpy(code + len - 17, stub_10, 17);
	assert_int_equal(clr_hijack_find(&bytes, segments, 2, &at), 0);
	free(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_of_linkage_tables_have_their_rules),
		cmocka_unit_test(functions_of_several_pieces_and_leaves_have_rules),
		cmocka_unit_test(without_section_headers_only_later_code_is_known),
		cmocka_unit_test(without_section_headers_cfi_is_known),
		cmocka_unit_test(with_little_memory_few_images_have_rules),
		cmocka_unit_test(a_file_over_a_limit_is_known),
		cmocka_unit_test(a_step_follows_its_rule),
		cmocka_unit_test(the_stub_of_hijacked_returns_has_no_return_address_of_its_own),
		cmocka_unit_test(only_a_runtimes_single_stub_matches),
		cmocka_unit_test(without_work_left_the_stub_is_not_searched),
		cmocka_unit_test(the_stub_is_found_wherever_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
