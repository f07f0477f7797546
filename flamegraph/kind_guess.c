#include "flamegraph/kind_guess.h"

#include "profile/idle.h"
#include "profile/profile.h"

#include <string.h>

#define KINDS_COMM_MAX 15 /* TASK_COMM_LEN without NUL */

struct kinds_word {
	const char *text;
	uint8_t len;
};
#define WORD(s)                  \
	{                        \
		s, sizeof(s) - 1 \
	}

/*
 * Entry points of the kernel, the lowest kernel frames of stacks. Source: Linux, x86
 * arch/x86/entry, arm64 arch/arm64/kernel/entry.S.
 */
static const struct kinds_word kinds_kernel_prefixes[] = {
	WORD("entry_SYSCALL"),
	WORD("entry_SYSENTER"),
	WORD("entry_INT80"),
	WORD("do_syscall_64"),
	WORD("asm_exc_"),
	WORD("asm_sysvec_"),
	WORD("asm_common_interrupt"),
	WORD("ret_from_fork"),
	WORD("secondary_startup"),
	WORD("[kernel."),
	WORD("[kernel]"),
	WORD("el0t_64_"),
	WORD("el0t_32_"),
	WORD("el0_sync"),
	WORD("el0_irq"),
	WORD("el1h_64_"),
	WORD("__primary_switched"),
	WORD("__secondary_switched"),
	WORD("[guest.kernel"),
	WORD("syscall_return_via_sysret"),
	WORD("irqentry_exit_to_user_mode"),
	WORD("asm_call_irq_on_stack"),
	WORD("page_fault_"),
};

/*
 * The .NET runtime: its libraries, the namespaces of its garbage collector, its stubs, and its
 * helpers for compiled code.
 */
static const struct kinds_word kinds_runtime_prefixes[] = {
	WORD("[libcoreclr.so"),
	WORD("[libclrjit.so"),
	WORD("[libclrgc.so"),
	WORD("[libhostpolicy.so"),
	WORD("[libhostfxr.so"),
	WORD("[libSystem.Native.so"),
	WORD("[libmscordaccore.so"),
	WORD("WKS::"),
	WORD("SVR::"),
	WORD("JIT_"),
	WORD("ThePreStub"),
	WORD("CallDescrWorker"),
	WORD("MethodDesc::"),
	WORD("MethodTable::"),
	WORD("coreclr_"),
	WORD("CorHost2::"),
	WORD("ThreadNative::"),
	WORD("PreStubWorker"),
	WORD("stub Generate"),
	WORD("[stub] "),
	WORD("CLREventBase::"),
	WORD("ThreadSuspend::"),
	WORD("GCToEEInterface::"),
	WORD("CorUnix::"),
	WORD("EEJitManager::"),
	WORD("UnsafeJitFunction"),
	WORD("TieredCompilation"),
	WORD("ETW::"),
	WORD("CILJit::"),
	WORD("Compiler::"),
	WORD("ThePreStubPatch"),
	WORD("MDInternalRO::"),
	WORD("ManagedThreadBase"),
	WORD("DispatchCallSimple"),
	WORD("VSD_ResolveWorker"),
	WORD("JitILStub"),
};

static const struct kinds_word kinds_java_prefixes[] = {
	WORD("java/"), WORD("javax/"), WORD("jdk/"), WORD("net/"),
	WORD("org/"),  WORD("com/"),   WORD("io/"),  WORD("sun/"),
};

/* Names for unknown stacks, also those of wall.folded (profcpu/post/wall.h). */
static const struct kinds_word kinds_unknown[] = {
	WORD("[unknown]"),     WORD(PROFILE_TRUNCATED), WORD(PROFILE_NO_STACK),
	WORD("[not sampled]"), WORD("[short waits]"),   WORD("[unknown state]"),
};

static bool kinds_is_unknown(const char *name, size_t len)
{
	for (size_t i = 0; i < sizeof(kinds_unknown) / sizeof(kinds_unknown[0]); i++)
		if (len == kinds_unknown[i].len && !memcmp(name, kinds_unknown[i].text, len))
			return true;
	return false;
}

static bool kinds_has_prefix(const struct kinds_word *words, size_t n, const char *name, size_t len)
{
	for (size_t i = 0; i < n; i++)
		if (len >= words[i].len && name[0] == words[i].text[0] &&
		    !memcmp(name, words[i].text, words[i].len))
			return true;
	return false;
}
#define HAS_PREFIX(words, name, len) \
	kinds_has_prefix(words, sizeof(words) / sizeof(words[0]), name, len)

static bool kinds_is_word(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c >= 0x80;
}

/*
 * "Namespace.Type.Method(int32,string)" and "Type.Method() [async]": a dot after a word before the
 * first parenthesis. Not "main.(*T).Method", which is Go.
 */
static bool kinds_is_dotted_method(const char *name, size_t len)
{
	const char *paren = memchr(name, '(', len);
	bool dotted = false;

	if (!paren || paren == name || paren[-1] == '.')
		return false;
	for (const char *p = name + 1; p < paren; p++) {
		if (*p == ':' || *p == '/' || *p == ' ')
			return false;
		dotted |= *p == '.' && kinds_is_word((unsigned char)p[-1]);
	}
	return dotted;
}

/* perf's text of a .NET method: "float64 [webapp] Work::Spin", also without parameters. */
static bool kinds_is_perf_dotnet(const char *name, size_t len)
{
	const char *open = memmem(name, len, " [", 2);

	if (!open)
		return false;
	const char *close = memmem(open, (size_t)(name + len - open), "] ", 2);

	return close && memmem(close, (size_t)(name + len - close), "::", 2);
}

bool kind_guess_is_java(const char *name, size_t len)
{
	size_t skip = len && name[0] == 'L';

	return HAS_PREFIX(kinds_java_prefixes, name + skip, len - skip) ||
	       memmem(name, len, ":::", 3);
}

/* Code without a name in an assembly, "[Shop.dll+0x1230]" or "[Shop.dll]". */
static bool kinds_is_assembly_code(const char *name, size_t len)
{
	const char *dll = *name == '[' ? memmem(name, len, ".dll", 4) : NULL;

	return dll && dll + 4 < name + len && (dll[4] == ']' || dll[4] == '+');
}

/* "[dynamic] lambda_method2(object)", and stubs that are compiled from IL: "[stub] PInvoke(int32)".
 */
static bool kinds_is_made_method(const char *name, size_t len)
{
	static const struct kinds_word made[] = {WORD("[dynamic] "), WORD("[stub] ")};

	return HAS_PREFIX(made, name, len) && memchr(name, '(', len);
}

static bool kinds_is_managed(const char *name, size_t len)
{
	if (kind_guess_is_java(name, len))
		return true;
	if (name[0] == '/' && memmem(name, len, ".js", 3))
		return true;
	return kinds_is_dotted_method(name, len) || kinds_is_perf_dotnet(name, len) ||
	       kinds_is_assembly_code(name, len) || kinds_is_made_method(name, len);
}

/* Whether a short name has no form of a function's name. "-PID" or "-PID/TID" may follow. */
static bool kinds_may_be_comm(const char *name, size_t len)
{
	static const char *const functions[] = {"main",   "_start",       "clone",
						"clone3", "start_thread", "all"};
	static const struct kinds_word worker[] = {WORD("kworker/")};
	size_t n = len;

	if (HAS_PREFIX(worker, name, len))
		return true; /* the kernel makes these names longer */
	while (n && ((name[n - 1] >= '0' && name[n - 1] <= '9') || name[n - 1] == '/'))
		n--;
	if (n && n < len && name[n - 1] == '-')
		len = n - 1;
	if (!len || len > KINDS_COMM_MAX || memchr(name, '(', len) || memchr(name, '<', len) ||
	    memmem(name, len, "::", 2))
		return false;
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strlen(functions[i]) == len && !memcmp(functions[i], name, len))
			return false;
	return true;
}

struct kind_guess kind_guess_of_name(const char *name, size_t len)
{
	struct kind_guess g = {.kind = FRAME_NATIVE, .comm = kinds_may_be_comm(name, len)};

	if (!len)
		return g;
	if (HAS_PREFIX(kinds_kernel_prefixes, name, len))
		g.kind = FRAME_KERNEL;
	else if (HAS_PREFIX(kinds_runtime_prefixes, name, len) && !kinds_is_made_method(name, len))
		g.kind = FRAME_RUNTIME;
	else if (kinds_is_unknown(name, len))
		g.kind = FRAME_UNKNOWN;
	else if (len == sizeof(IDLE_NAME) - 1 && !memcmp(name, IDLE_NAME, len))
		g.kind = FRAME_IDLE;
	else if (len == sizeof(PROFILE_RUNNABLE) - 1 && !memcmp(name, PROFILE_RUNNABLE, len))
		g.kind = FRAME_RUNNABLE;
	else if (len == sizeof(PROFILE_OUTSIDE) - 1 && !memcmp(name, PROFILE_OUTSIDE, len))
		g.kind = FRAME_SUBJECT;
	else if (kinds_is_managed(name, len))
		g.kind = FRAME_MANAGED;
	return g;
}
