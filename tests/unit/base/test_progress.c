#include "base/progress.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

struct terminal {
	int master, slave;
};

static int open_terminal(void **state)
{
	static struct terminal t;
	struct termios raw;

	t.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t.master < 0 || grantpt(t.master) || unlockpt(t.master))
		return -1;
	t.slave = open(ptsname(t.master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (t.slave < 0 || tcgetattr(t.slave, &raw))
		return -1;
	cfmakeraw(&raw);
	*state = &t;
	return tcsetattr(t.slave, TCSANOW, &raw);
}

static int close_terminal(void **state)
{
	struct terminal *t = *state;

	close(t->slave);
	close(t->master);
	return 0;
}

/* Checks the next output. A terminal may hand it over in pieces. */
static void assert_output(const struct terminal *t, const char *want)
{
	char got[256] = "";
	size_t len = 0;

	while (len < strlen(want)) {
		ssize_t n = read(t->master, got + len, sizeof(got) - 1 - len);

		assert_true(n > 0);
		len += (size_t)n;
	}
	assert_string_equal(got, want);
}

static void a_line_replaces_the_one_before_and_is_wiped(void **state)
{
	struct terminal *t = *state;
	struct progress p = progress_to(t->slave, false);

	progress_show(&p, "%d samples", 12345);
	assert_output(t, "\r12345 samples\r12345 samples");
	progress_show(&p, "too soon");
	p.last_ns = 1;
	progress_show(&p, "7");
	assert_output(t, "\r7            \r7");
	/* Before a message, and only once. */
	progress_clear();
	progress_clear();
	assert_output(t, "\r \r");
	p.last_ns = 1;
	progress_show(&p, "8");
	progress_close(&p);
	progress_show(&p, "no more");
	progress_clear();
	assert_int_equal(write(t->slave, "end", 3), 3);
	assert_output(t, "\r8\r8\r \rend");
}

static void a_terminal_without_a_reader_does_not_block(void **state)
{
	struct terminal *t = *state;
	int flags = fcntl(t->slave, F_GETFL);
	struct progress p = progress_to(t->slave, false);

	alarm(20); /* ends the test if it blocks */
	for (int i = 0; i < 5000; i++) {
		p.last_ns = 1;
		progress_show(
			&p, "line %d that is as long as they are when many samples were taken", i);
	}
	/* The same is true if another process fills the terminal between poll and write. */
	assert_true(p.own && fcntl(p.fd, F_GETFL) & O_NONBLOCK);
	while (write(p.fd, "x", 1) == 1)
		;
	/* Other writers of the same terminal see its flags unchanged. */
	assert_int_equal(fcntl(t->slave, F_GETFL), flags);
	progress_close(&p);
	alarm(0);
}

static void pipes_and_quiet_show_no_progress(void **state)
{
	struct terminal *t = *state;
	struct progress quiet = progress_to(t->slave, true), p;
	int pipes[2];

	assert_int_equal(pipe(pipes), 0);
	p = progress_to(pipes[1], false);
	assert_false(quiet.shown || p.shown);
	progress_show(&p, "x");
	progress_close(&p);
	progress_close(&quiet);
	assert_int_equal(write(pipes[1], "y", 1), 1); /* the pipe is still open */
	close(pipes[0]);
	close(pipes[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_line_replaces_the_one_before_and_is_wiped,
						open_terminal, close_terminal),
		cmocka_unit_test_setup_teardown(a_terminal_without_a_reader_does_not_block,
						open_terminal, close_terminal),
		cmocka_unit_test_setup_teardown(pipes_and_quiet_show_no_progress, open_terminal,
						close_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
