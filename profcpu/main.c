#include "base/log.h"
#include "base/progress.h"
#include "container/ask.h"
#include "profcpu/command.h"
#include "profcpu/crash.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAIN_MMAP_BYTES (256 << 10)

/* Prints each message of the whole program as one line on stderr. */
static void main_sink(enum log_level level, const char *text, unsigned long repeats)
{
	static const char *const words[] = {
		[LOG_ERROR] = "error: ", [LOG_WARN] = "warning: ", [LOG_NOTE] = ""};

	progress_clear();
	fprintf(stderr, "profcpu: %s%s", words[level], text);
	if (repeats)
		fprintf(stderr, " (and %lu more like it)", repeats);
	fputc('\n', stderr);
}

/*
 * Fills closed standard descriptors. Else the next opened file would get such a number, and
 * messages would go into a recording. Their replacement cannot be read or written, so lost output
 * stays an error. open() returns the lowest free descriptor.
 */
static int main_fill_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd &&
		    open("/", O_PATH) != fd)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	/*
	 * Return large blocks to the system at once. Else malloc keeps the remains of growing
	 * arrays, up to a fifth of all memory.
	 */
	mallopt(M_MMAP_THRESHOLD, MAIN_MMAP_BYTES);
	if (main_fill_standard_descriptors())
		return EXIT_FAILED;
	crash_begin();
	log_set_sink(main_sink);
	if (argc < 2) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	const char *name = argv[1];

	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	const struct command *c = command_find(name);

	if (!c) {
		log_error("no command '%s'; `profcpu help` lists the commands", name);
		return EXIT_USAGE;
	}
	if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		fputs(c->usage, stdout);
		return command_end(EXIT_DONE);
	}
	/*
	 * A write beyond RLIMIT_FSIZE is an error, with a message. collect ignores the signal
	 * later, because the command that it starts must not inherit that.
	 */
	if (c != &command_collect && c != &command_compare)
		signal(SIGXFSZ, SIG_IGN);
	int status = c->run(argc - 1, argv + 1);

	log_summarize();
	ask_leave();
	return status;
}
