/*
 * Compares two sources of rules for precompiled .NET functions: unwind information, and analysis of
 * the code alone. Compares each instruction that the analysis reaches. Prints the number of
 * functions and instructions, and how many agree; exit status 1 if one differs.
 *
 * usage: r2r_rules [-v] FILE.dll...
 */
#include "base/cleanup.h"
#include "base/file.h"
#include "unwind/r2r_unwind.h"
#include "unwind/x86_64_code.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct counts {
	unsigned long functions, failed, doubtful, instructions, unknown, wrong;
};

struct checking {
	const struct r2r_unwind_function *f;
	struct counts *counts;
	bool verbose;
	const char *name;
};

/* Whether both rules lead to the same place. The frame pointer may be both unchanged and
 * saved. */
static int check(void *ctx, size_t offset, const struct unwind_rule *followed)
{
	const struct checking *c = ctx;
	const struct unwind_rule *rule = code_rules_at(c->f->rules, offset);
	bool fp;

	c->counts->instructions++;
	if (followed->kind == UNWIND_NONE || followed->cfa_reg != (rule ? rule->cfa_reg : 0)) {
		c->counts->unknown++;
		return 0;
	}
	fp = rule->fp == UNWIND_FP_AT
		     ? followed->fp != UNWIND_FP_AT || followed->fp_at == rule->fp_at
		     : followed->fp != UNWIND_FP_AT;
	if (rule->kind == UNWIND_PLAIN && rule->cfa_add == followed->cfa_add && fp)
		return 0;
	if (c->verbose)
		printf("%s: function at 0x%llx, offset 0x%zx: CFA is reg%u + %d, fp %u at %d; by "
		       "the code + %d, fp %u at %d\n",
		       c->name, (unsigned long long)c->f->start, offset, rule->cfa_reg,
		       rule->cfa_add, rule->fp, rule->fp_at, followed->cfa_add, followed->fp,
		       followed->fp_at);
	c->counts->wrong++;
	return 0;
}

static void check_function(int fd, struct checking *c)
{
	size_t len = (size_t)(c->f->end - c->f->start);
	AUTO_FREE unsigned char *code = malloc(len + 1);

	if (!code || file_pread_all(fd, code, len, c->f->start) ||
	    x86_64_follow(code, len, false, check, c))
		c->counts->failed++;
}

static int check_file(const char *name, bool verbose, struct counts *counts)
{
	AUTO_CLOSE int fd = open(name, O_RDONLY | O_CLOEXEC);
	struct pe_file file = {.fd = fd, .bytes = fd < 0 ? 0 : (uint64_t)lseek(fd, 0, SEEK_END)};
	struct r2r_unwind *u;
	struct r2r_unwind_function f;
	uint64_t at;

	if (fd < 0 || r2r_unwind_open(&file, &u, NULL))
		return -1;
	for (uint32_t i = 0; i < r2r_unwind_function_count(u); i++) {
		counts->functions++;
		if (r2r_unwind_file_off(u, i, &at) || r2r_unwind_find(u, at, NULL, &f)) {
			counts->failed++;
			continue;
		}
		counts->doubtful += f.rules->doubtful;
		check_function(fd, &(struct checking){&f, counts, verbose, name});
	}
	printf("%s: %zu bytes of memory\n", name, r2r_unwind_bytes(u));
	r2r_unwind_free(u);
	return 0;
}

int main(int argc, char **argv)
{
	struct counts n = {0};
	bool verbose = argc > 1 && !strcmp(argv[1], "-v");
	int files = 0;

	for (int i = 1 + verbose; i < argc; i++)
		files += !check_file(argv[i], verbose, &n);
	printf("%d files, %lu functions: %lu not read, %lu doubtful; %lu instructions: %lu not "
	       "known by the code, %lu wrong\n",
	       files, n.functions, n.failed, n.doubtful, n.instructions, n.unknown, n.wrong);
	return n.wrong || n.failed || !files;
}
