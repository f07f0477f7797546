#include "profcpu/crash.h"

#include "base/path.h"
#include "base/thread.h"
#include "base/version.h"
#include "profcpu/crash_registers.h"
#include "profcpu/crash_symbols.h"

#include <errno.h>
#include <libunwind.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define CRASH_OBJECTS_MAX 128 /* the program and its libraries */
#define CRASH_BUILD_ID_MAX 32 /* bytes */
#define CRASH_LINE_MAX 512

/* Part of libunwind's interface for other programs, declared in none of its headers. */
int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t as, unw_word_t ip, unw_dyn_info_t *di,
				       unw_proc_info_t *pi, int need_unwind_info, void *arg);

/* The program or a library. */
struct crash_object {
	uint64_t bias, start, end; /* [start, end) has its code */
	uint64_t table;            /* address of .eh_frame_hdr */
	const char *name;          /* file name; "": the program */
};

/* Written at the start, read by the handler. */
static struct {
	unw_addr_space_t space;
	struct crash_object objects[CRASH_OBJECTS_MAX];
	size_t nobjects;
	char build_id[2 * CRASH_BUILD_ID_MAX + 1];
} crash;

static atomic_int crashed_tid; /* the first thread that crashed; 0: none */

struct crash_line {
	char text[CRASH_LINE_MAX];
	size_t len;
};

static void line_text(struct crash_line *line, const char *text)
{
	while (*text && line->len < sizeof(line->text) - 1)
		line->text[line->len++] = *text++;
}

static void line_number(struct crash_line *line, uint64_t number, unsigned base)
{
	char digits[24], *at = digits + sizeof(digits);

	*--at = 0;
	do
		*--at = "0123456789abcdef"[number % base];
	while (number /= base);
	line_text(line, base == 16 ? "0x" : "");
	line_text(line, at);
}

static void line_print(struct crash_line *line)
{
	size_t done = 0;
	ssize_t n;

	line->text[line->len++] = '\n';
	while (done < line->len &&
	       ((n = write(STDERR_FILENO, line->text + done, line->len - done)) > 0 ||
		errno == EINTR))
		done += n > 0 ? (size_t)n : 0;
	*line = (struct crash_line){0};
}

static const struct crash_object *crash_object_at(uint64_t addr)
{
	for (size_t i = 0; i < crash.nobjects; i++)
		if (addr >= crash.objects[i].start && addr < crash.objects[i].end)
			return &crash.objects[i];
	return NULL;
}

static bool crash_read(uint64_t addr, void *buf, size_t len)
{
	struct iovec from = {.iov_base = (void *)(uintptr_t)addr, .iov_len = len};
	struct iovec to = {.iov_base = buf, .iov_len = len};

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)len;
}

/* Callbacks of libunwind; ctx: the registers, by their DWARF numbers. */

static int crash_access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int is_write,
			    void *ctx)
{
	(void)as;
	(void)ctx;
	return !is_write && crash_read(addr, value, sizeof(*value)) ? 0 : -UNW_EINVAL;
}

static int crash_access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int is_write,
			    void *ctx)
{
	const unw_word_t *regs = ctx;

	(void)as;
	if (is_write || reg < 0 || reg >= CRASH_REGISTERS)
		return -UNW_EBADREG;
	*value = regs[reg];
	return 0;
}

static int crash_access_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value,
			      int is_write, void *ctx)
{
	(void)as;
	(void)reg;
	(void)value;
	(void)is_write;
	(void)ctx;
	return -UNW_EBADREG;
}

/* Layout of .eh_frame_hdr; the encodings are those that every linker writes. */
static int crash_find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need,
				void *ctx)
{
	const struct crash_object *object = crash_object_at(ip);
	struct {
		uint8_t version, frame_encoding, count_encoding, table_encoding;
		int32_t frame;
		uint32_t count;
	} head;

	if (!object || !object->table || !crash_read(object->table, &head, sizeof(head)) ||
	    head.version != 1 || head.frame_encoding != 0x1b || head.count_encoding != 0x03 ||
	    head.table_encoding != 0x3b)
		return -UNW_ENOINFO;
	unw_dyn_info_t table = {
		.format = UNW_INFO_FORMAT_REMOTE_TABLE,
		.start_ip = object->start,
		.end_ip = object->end,
		.u.rti = {.segbase = object->table,
			  .table_len = head.count * UINT64_C(8) / sizeof(unw_word_t),
			  .table_data = object->table + sizeof(head)},
	};
	return UNW_OBJ(dwarf_search_unwind_table)(as, ip, &table, pi, need, ctx);
}

static void crash_put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *ctx)
{
	(void)as;
	(void)pi;
	(void)ctx;
}

static int crash_dyn_info_list(unw_addr_space_t as, unw_word_t *ret_list, void *ctx)
{
	(void)as;
	(void)ret_list;
	(void)ctx;
	return -UNW_ENOINFO;
}

static int crash_resume(unw_addr_space_t as, unw_cursor_t *cursor, void *ctx)
{
	(void)as;
	(void)cursor;
	(void)ctx;
	return -UNW_EINVAL;
}

static int crash_proc_name(unw_addr_space_t as, unw_word_t addr, char *buf, size_t len,
			   unw_word_t *ret_off, void *ctx)
{
	(void)as;
	(void)addr;
	(void)buf;
	(void)len;
	(void)ret_off;
	(void)ctx;
	return -UNW_EINVAL;
}

static void print_frame(const struct crash_symbols *symbols, unsigned number, uint64_t addr,
			bool exact)
{
	const struct crash_object *object = crash_object_at(addr - !exact);
	const char *name = NULL;
	struct crash_line line = {0};
	uint64_t off = addr;

	line_text(&line, "profcpu: #");
	line_number(&line, number, 10);
	line_text(&line, " ");
	if (object && !*object->name)
		name = crash_symbols_find(symbols, addr - !exact - object->bias, &off);
	if (name)
		off += !exact;
	else if (object)
		off = addr - object->bias;
	line_text(&line, name            ? name
			 : !object       ? "[unknown]"
			 : *object->name ? object->name
					 : "profcpu");
	line_text(&line, "+");
	line_number(&line, off, 16);
	line_print(&line);
}

/*
 * A call through a bad pointer leaves the return address in the link register or on top of the
 * stack.
 */
static void return_from_bad_call(unw_word_t *regs)
{
	unw_word_t back = 0;
	size_t pushed = 0;

	if (crash_object_at(regs[CRASH_IP]))
		return;
#ifdef CRASH_LINK
	back = regs[CRASH_LINK];
#else
	pushed = sizeof(back);
	if (!crash_read(regs[CRASH_SP], &back, sizeof(back)))
		return;
#endif
	if (!crash_object_at(back - 1))
		return;
	regs[CRASH_IP] = back;
	regs[CRASH_SP] += pushed;
}

static void print_stack(const ucontext_t *context)
{
	unw_word_t regs[CRASH_REGISTERS], addr;
	bool exact = true, known = crash_registers(context, regs);
	struct crash_symbols symbols;
	unw_cursor_t cursor;
	unsigned n = 0;

	if (!known)
		return;
	crash_symbols_open(&symbols);
	if (!crash_object_at(regs[CRASH_IP]))
		print_frame(&symbols, n++, regs[CRASH_IP], true);
	return_from_bad_call(regs);
	if (unw_init_remote(&cursor, crash.space, regs))
		return;
	do {
		if (unw_get_reg(&cursor, UNW_REG_IP, &addr) || !addr)
			return;
		print_frame(&symbols, n++, addr, exact);
		exact = unw_is_signal_frame(&cursor) > 0;
	} while (n < CRASH_FRAMES_MAX && unw_step(&cursor) > 0);
}

static const char *signal_name(int number)
{
	switch (number) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGILL:
		return "SIGILL";
	case SIGFPE:
		return "SIGFPE";
	case SIGABRT:
		return "SIGABRT";
	default:
		return "SIGSYS";
	}
}

static void print_head(const siginfo_t *info, pid_t tid)
{
	struct crash_line line = {0};
	char name[16] = "";

	prctl(PR_GET_NAME, name);
	line_text(&line, "profcpu: thread ");
	line_text(&line, name);
	line_text(&line, " (TID ");
	line_number(&line, (uint64_t)tid, 10);
	line_text(&line, "): crashed: ");
	line_text(&line, signal_name(info->si_signo));
	if (info->si_code > 0) {
		line_text(&line, " at address ");
		line_number(&line, (uintptr_t)info->si_addr, 16);
	} else {
		line_text(&line, " from PID ");
		line_number(&line, (uint64_t)info->si_pid, 10);
	}
	line_text(&line, "; report these lines with the command that you ran");
	line_print(&line);
	line_text(&line, "profcpu: version " PROFCPU_VERSION ", build id ");
	line_text(&line, *crash.build_id ? crash.build_id : "unknown");
	line_print(&line);
}

/* Sends the signal to this thread after the time limit, even if the handler hangs. */
static void limit_time(int number, pid_t tid)
{
	struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = number};
	struct itimerspec limit = {.it_value.tv_sec = CRASH_SECONDS_MAX};
	int timer;

	event._sigev_un._tid = tid;
	if (!syscall(SYS_timer_create, CLOCK_MONOTONIC, &event, &timer))
		syscall(SYS_timer_settime, timer, 0, &limit, NULL);
}

/*
 * Blocks the signal and sends it again: it ends the process when the handler returns, with the
 * registers of the crash in the core dump.
 */
static void take_default_action(int number, pid_t tid)
{
	struct sigaction action = {.sa_handler = SIG_DFL};
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, number);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	sigaction(number, &action, NULL);
	syscall(SYS_tgkill, getpid(), tid, number);
}

/* Entered again in the same thread, it crashed itself or took too long. Other threads wait. */
static void crash_handle(int number, siginfo_t *info, void *context)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);
	int first = 0;

	if (atomic_compare_exchange_strong(&crashed_tid, &first, tid)) {
		limit_time(number, tid);
		print_head(info, tid);
		if (crash.space)
			print_stack(context);
	} else if (first != tid) {
		for (;;)
			pause();
	}
	take_default_action(number, tid);
}

static void take_build_id(const struct crash_object *object, const ElfW(Phdr) * notes)
{
	const unsigned char *at = (const void *)(uintptr_t)(object->bias + notes->p_vaddr),
			    *end = at + notes->p_memsz;
	size_t n = 0;

	while (end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		const unsigned char *id = at + sizeof(*note) + ((note->n_namesz + 3) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {
			for (; n < note->n_descsz && n < CRASH_BUILD_ID_MAX; n++) {
				crash.build_id[2 * n] = "0123456789abcdef"[id[n] >> 4];
				crash.build_id[2 * n + 1] = "0123456789abcdef"[id[n] & 15];
			}
			return;
		}
		at = id + ((note->n_descsz + 3) & ~3u);
	}
}

static int add_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct crash_object *object = &crash.objects[crash.nobjects];

	(void)size;
	(void)ctx;
	if (crash.nobjects == CRASH_OBJECTS_MAX)
		return 1;
	*object = (struct crash_object){
		.bias = info->dlpi_addr, .start = UINT64_MAX, .name = path_base(info->dlpi_name)};
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			object->start = start < object->start ? start : object->start;
			object->end = start + p->p_memsz;
		} else if (p->p_type == PT_GNU_EH_FRAME) {
			object->table = start;
		} else if (p->p_type == PT_NOTE && !crash.nobjects && !*crash.build_id) {
			take_build_id(object, p);
		}
	}
	crash.nobjects++;
	return 0;
}

void crash_begin(void)
{
	static unw_accessors_t accessors = {
		.find_proc_info = crash_find_proc_info,
		.put_unwind_info = crash_put_unwind_info,
		.get_dyn_info_list_addr = crash_dyn_info_list,
		.access_mem = crash_access_mem,
		.access_reg = crash_access_reg,
		.access_fpreg = crash_access_fpreg,
		.resume = crash_resume,
		.get_proc_name = crash_proc_name,
	};
	struct sigaction action = {.sa_sigaction = crash_handle,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER},
			 before;
	const int signals[] = THREAD_CRASH_SIGNALS;

	dl_iterate_phdr(add_object, NULL);
	crash.space = unw_create_addr_space(&accessors, 0);
	if (crash.space)
		unw_set_caching_policy(crash.space, UNW_CACHE_NONE);
	thread_begin_signal_stack();
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		if (!sigaction(signals[i], NULL, &before) && before.sa_handler == SIG_DFL)
			sigaction(signals[i], &action, NULL);
}
