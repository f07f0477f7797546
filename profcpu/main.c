#include "base/log.h"
#include "profcpu/command.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MAIN_MMAP_BYTES (256 << 10)

/* Messages go to stderr, one line each; only here is anything printed that the library parts say. */
static void main_sink(enum log_level level, const char *text, unsigned long repeats)
{
	static const char *const words[] = {
		[LOG_ERROR] = "error: ", [LOG_WARN] = "warning: ", [LOG_NOTE] = ""};

	fprintf(stderr, "profcpu: %s%s", words[level], text);
	if (repeats)
		fprintf(stderr, " (and %lu more like it)", repeats);
	fputc('\n', stderr);
}

/*
 * Where stdin, stdout or stderr is closed, the next file that is opened would get its number, and messages would be
 * written into a recording. In their places comes what can neither be read nor written, so that lost output is still
 * an error. Open descriptors are handed out lowest first.
 */
static int main_hold_standard_descriptors(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
			continue;
		if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd && open("/", O_PATH) != fd)
			return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	/* malloc would else keep what large arrays leave behind as they grow, up to a fifth of all memory. */
	mallopt(M_MMAP_THRESHOLD, MAIN_MMAP_BYTES);
	if (main_hold_standard_descriptors())
		return EXIT_FAILED;
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
		log_error("there is no command '%s'; `profcpu help` lists them", name);
		return EXIT_USAGE;
	}
	if (argc > 2 && (!strcmp(argv[2], "--help") || !strcmp(argv[2], "-h"))) {
		fputs(c->usage, stdout);
		return command_end(EXIT_DONE);
	}
	int status = c->run(argc - 1, argv + 1);

	log_sum_up();
	return status;
}
