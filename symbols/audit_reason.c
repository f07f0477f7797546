/* Words of kinds, reasons and remedies: a part of symbols/audit.h. */
#include "symbols/audit.h"

#include "base/cleanup.h"
#include "base/shell_word.h"

#include <string.h>

/* Placeholders in a remedy: the recording's directory, the process; and how they begin. */
#define AUDIT_DIR "DIR"
#define AUDIT_PID "PID"
#define AUDIT_DIR_OR_PID "DP"

const char *audit_kind_name(enum audit_kind kind)
{
	static const char *const names[AUDIT_KINDS] = {
		[AUDIT_KERNEL] = "kernel",     [AUDIT_NATIVE] = "native",
		[AUDIT_STRIPPED] = "stripped", [AUDIT_RUNTIME] = "runtime",
		[AUDIT_AOT] = "aot",           [AUDIT_R2R] = "r2r",
		[AUDIT_JIT] = "jit",           [AUDIT_STUBS] = "stubs",
		[AUDIT_UNMAPPED] = "unmapped",
	};

	return names[kind];
}

static const struct audit_words {
	const char *word, *text, *remedy;
} audit_words[AUDIT_REASONS] = {
	[AUDIT_NAMED] = {"none", "", NULL},
	[AUDIT_NOT_LOOKED_UP] = {"not-looked",
				 "its file was not read on the machine of the recording",
				 "run `profcpu postprocess DIR` on the machine of the recording"},
	[AUDIT_GONE] = {"gone", "its file is gone",
			"put it back, then `profcpu postprocess DIR`; or record with "
			"CAP_CHECKPOINT_RESTORE while its process runs"},
	[AUDIT_REPLACED] = {"replaced", "another file has its place now",
			    "put the old one back, then `profcpu postprocess DIR`; or record with "
			    "CAP_CHECKPOINT_RESTORE while its process runs"},
	[AUDIT_DENIED] = {"denied", "access to its file is denied",
			  "make the file readable, or add CAP_SYS_PTRACE, CAP_DAC_OVERRIDE and "
			  "CAP_CHECKPOINT_RESTORE"},
	[AUDIT_FILE_SYSTEM] = {"file-system", "its file system may not answer, so it was skipped",
			       "`profcpu postprocess --allow-fs TYPE DIR`"},
	[AUDIT_NO_ANSWER] = {"no-answer", "the lookup of its file did not end",
			     "end the process that keeps its directory locked, or the server of "
			     "its file system, then `profcpu postprocess DIR`"},
	[AUDIT_UNREADABLE] = {"unreadable", "its file is damaged or cannot be read",
			      "replace it with an intact copy, then `profcpu postprocess DIR`"},
	[AUDIT_TOO_LARGE] = {"too-large", "its file, or a table in it, is too large to be read",
			     "move its debug information to another file (objcopy "
			     "--only-keep-debug, strip -g), then `profcpu postprocess DIR`"},
	[AUDIT_MEMORY] = {"memory", "its symbols need more memory than is left for symbols",
			  "`profcpu postprocess DIR` with more memory"},
	[AUDIT_NO_FORMAT] = {"no-format", "its file is neither an ELF file nor a .NET image", NULL},
	[AUDIT_NO_R2R] = {"no-r2r", "the .NET image has no readable ReadyToRun tables or metadata",
			  NULL},
	[AUDIT_NO_SYMBOLS] = {"no-symbols",
			      "it has no symbol table, and no build id to find its debug file with",
			      "install it with symbols (not stripped, or linked with --build-id)"},
	[AUDIT_NO_DEBUG_FILE] = {"no-debug-file", "no debug file",
				 "`profcpu symbols fetch DIR`, then `profcpu postprocess DIR`"},
	[AUDIT_DEBUG_DENIED] = {"debug-denied", "access is denied to its debug file",
				"let everybody read the debug file (chmod a+r) and enter its "
				"directories (chmod a+x), then `profcpu postprocess DIR`"},
	[AUDIT_NO_DBG] = {"no-dbg", "no debug file",
			  "`dotnet publish` made its .dbg file: put it beside the program, then "
			  "`profcpu postprocess DIR`"},
	[AUDIT_NOT_COVERED] = {"not-covered", "none of its symbols covers these addresses", NULL},
	[AUDIT_KERNEL_HIDDEN] =
		{"hidden", "kernel names are hidden here",
		 "`profcpu postprocess DIR` as root or with CAP_SYSLOG, or after `profcpu doctor` "
		 "says yes to kernel names; this kernel must still run"},
	[AUDIT_KERNEL_OTHER] = {"other-kernel", "the running kernel is not the recorded one",
				"`profcpu postprocess DIR` while the recorded kernel runs"},
	[AUDIT_JIT_NOT_WANTED] = {"jit-not-asked", "it was recorded with --jit-names=none",
				  "record without that option"},
	[AUDIT_JIT_FAILED] = {"jit-failed", "names could not be taken",
			      "`profcpu doctor -p PID` lists the sources of names"},
	[AUDIT_JIT_MISSED] = {"jit-missed", "the process ended before its names could be taken",
			      "record for longer, or while it runs"},
	[AUDIT_JIT_OTHER_RECORDER] =
		{"jit-other-recorder",
		 "it was not recorded by profcpu and has no readable perf map",
		 "record with `profcpu collect`, which reads the names while it records"},
	[AUDIT_JIT_NO_MAP] = {"jit-no-map", "its runtime writes no readable perf map or jitdump",
			      NULL},
	[AUDIT_JIT_OLD_MAP] = {"jit-old-map", "it was compiled after the perf map was written",
			       NULL},
	[AUDIT_JIT_THUNKS] = {"jit-thunks", "the runtime makes small stubs, and names none of them",
			      NULL},
	[AUDIT_JIT_EARLY] = {"jitdump-early",
			     "its jitdump ended before the process (a known error of .NET 10)",
			     "record with `profcpu collect`, which needs no jitdump"},
	[AUDIT_JIT_CUT] = {"jitdump-cut",
			   "its jitdump ends within a record: it was stopped before it wrote the "
			   "rest",
			   "let the program end by itself, not by a signal, then record again"},
	[AUDIT_JIT_OPEN] = {"jit-open",
			    "its runtime had not yet written all names to its jitdump or perf map",
			    "`profcpu postprocess DIR` after the process has ended"},
	[AUDIT_JIT_FREED] =
		{"jit-freed", "code that was made or freed between two scans",
		 "record with --jit-names=rundown, which gets each method as it is compiled"},
	[AUDIT_JIT_UNREPORTED] = {"jit-untold", "the runtime did not report this code", NULL},
	[AUDIT_NOT_MAPPED] =
		{"not-mapped",
		 "nothing is mapped there: callchains are wrong in code without frame pointers",
		 "record with `profcpu collect --call-graph full`, or build it with "
		 "-fno-omit-frame-pointer"},
	/* Frame pointers are used there only beyond the end of a stack copy. */
	[AUDIT_NOT_MAPPED_UNWOUND] = {"not-mapped",
				      "nothing is mapped there: it was unmapped by then, or the "
				      "frames are wrong",
				      "`--grades` shows which were spliced or guessed"},
	[AUDIT_OTHER_PID_NS] = {"other-pid-namespace",
				"all processes outside of this PID namespace are process 0 here",
				"record on the host, or in their PID namespace"},
};

const char *audit_reason_word(enum audit_reason reason)
{
	return audit_words[reason].word;
}

const char *audit_reason_text(enum audit_reason reason)
{
	return audit_words[reason].text;
}

const char *audit_remedy(const struct audit_group *g)
{
	/* A reason may have its own remedy; profcpu doctor knows those of .NET. */
	if (g->reason == AUDIT_JIT_FAILED && g->runtime != JIT_RUNTIME_DOTNET && g->detail &&
	    strchr(g->detail, ';'))
		return NULL;
	return g->reason == AUDIT_JIT_NO_MAP || g->reason == AUDIT_JIT_OLD_MAP
		       ? jit_runtime_remedy(g->runtime)
		       : audit_words[g->reason].remedy;
}

void audit_put_remedy(const struct audit_group *g, const char *dir, struct outbuf *out)
{
	const char *text = audit_remedy(g);
	AUTO_FREE char *word = text ? shell_word(dir) : NULL;

	while (text && *text) {
		size_t n = strcspn(text, AUDIT_DIR_OR_PID);

		outbuf_put(out, text, n);
		text += n;
		if (!strncmp(text, AUDIT_DIR, strlen(AUDIT_DIR))) {
			outbuf_str(out, word ? word : AUDIT_DIR);
			text += strlen(AUDIT_DIR);
		} else if (!strncmp(text, AUDIT_PID, strlen(AUDIT_PID))) {
			outbuf_printf(out, "%d", g->pid);
			text += strlen(AUDIT_PID);
		} else if (*text) {
			outbuf_char(out, *text++);
		}
	}
}
