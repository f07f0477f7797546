/* The way over a runtime's events: missing events are reported. A closed connection does not mean
 * that the process ended. */
#include "profcpu/jit/way.h"

#include "base/clock.h"
#include "tests/unit/fake_runtime.h"
#include "tests/unit/nettrace_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define RUNTIME "Microsoft-Windows-DotNETRuntime"

/* In the fake runtime: descriptors of the session that listens and of the one that lists. */
static int live_fd = -1, list_fd = -1;
static bool closes;

static void put_begin(struct outbuf *s)
{
	nt_head(s);
	nt_trace(s, NS_PER_S);
}

static void end_stream(int *fd, struct outbuf *s)
{
	nt_end(s);
	fake_write(*fd, s->data, s->len);
	close(*fd);
	*fd = -1;
}

/* One event of an unknown kind, the fourth of its thread; three were dropped. */
static void put_event(struct outbuf *s)
{
	struct outbuf b = nt_events(true);
	struct nettrace_blob e = {.metadata_id = 1,
				  .sequence = 4,
				  .capture_thread = 1,
				  .ticks = 50,
				  .payload = (const unsigned char *)"",
				  .payload_len = 0};

	nt_compressed(&b, &e, 0, 0);
	nt_block(s, "EventBlock", &b);
}

static void serve(int fd, const struct fake_request *request)
{
	struct outbuf s = outbuf_to(-1);

	put_begin(&s);
	if (request->command == IPC_COLLECT_TRACING5) {
		fake_reply(fd, 0xff00, "session!", 8);
		if (live_fd < 0)
			live_fd = dup(fd);
		else
			list_fd = dup(fd);
	} else if (request->command == IPC_STOP_TRACING && list_fd >= 0) {
		end_stream(&list_fd, &s);
		fake_reply(fd, 0xff00, "session!", 8);
		if (closes)
			close(live_fd);
	} else if (request->command == IPC_STOP_TRACING) {
		put_event(&s);
		end_stream(&live_fd, &s);
		fake_reply(fd, 0xff00, "session!", 8);
	}
	outbuf_close(&s);
}

struct followed {
	char dir[32];
	int dir_fd;
	struct fake_runtime fake;
	struct jit_target target;
	void *state;
};

static void follow(struct followed *f)
{
	char why[JIT_WAY_WHY_BYTES] = "";

	*f = (struct followed){.dir = "/tmp/test_jit_way.XXXXXX"};
	assert_non_null(mkdtemp(f->dir));
	f->dir_fd = open(f->dir, O_RDONLY | O_DIRECTORY);
	f->fake = fake_start(serve);
	f->target = (struct jit_target){
		.pid = f->fake.pid, .opener = o, .until_ns = clock_monotonic_ns() + 20 * NS_PER_S};
	assert_int_equal(jit_methods_writer_open(f->dir_fd, f->fake.pid, NULL, &f->target.out), 0);
	if (jit_way_rundown.begin(&f->target, &f->state, why))
		fail_msg("%s", why);
}

static void unfollow(struct followed *f)
{
	jit_way_rundown.end(f->state, f->target.until_ns);
	fake_stop(&f->fake);
	assert_int_equal(jit_methods_writer_close(f->target.out), 0);
	assert_int_equal(jit_methods_remove(f->dir_fd), 0);
	close(f->dir_fd);
	assert_int_equal(rmdir(f->dir), 0);
}

static void dropped_events_are_reported(void **state)
{
	char why[JIT_WAY_WHY_BYTES] = "";
	struct followed f;

	(void)state;
	closes = false;
	follow(&f);
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), false, why), 0);
	assert_string_equal(why, "");
	assert_false(f.target.more);
	/* The report is appended to earlier reports. */
	strcpy(why, "first");
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), true, why), 0);
	assert_int_equal(strncmp(why, "first; ", strlen("first; ")), 0);
	/* On a busy machine, the search for stubs in valgrind's memory gives a reason too. */
	const char *lost = strstr(why, "; 3 of its events were lost");

	assert_non_null(lost);
	assert_string_equal(lost,
			    "; 3 of its events were lost and 0 were damaged: names may be missing");
	/* If the process ended just then, nothing more is read. */
	f.target.ended = true;
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), true, why), 0);
	unfollow(&f);
}

static void a_closed_connection_is_reported_if_the_process_lives(void **state)
{
	char why[JIT_WAY_WHY_BYTES] = "";
	struct followed f;
	int r;

	(void)state;
	closes = true;
	follow(&f);
	/* The process may be about to end, so the first step reports nothing. */
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), false, why), 0);
	assert_string_equal(why, "");
	do
		r = jit_way_rundown.step(f.state, clock_monotonic_ns(), false, why);
	while (!r && clock_monotonic_ns() < f.target.until_ns);
	assert_int_equal(r, -ENODATA);
	assert_string_equal(why, "its events have ended, though it runs on");
	unfollow(&f);
	follow(&f);
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), false, why), 0);
	f.target.ended = true;
	why[0] = 0;
	assert_int_equal(jit_way_rundown.step(f.state, clock_monotonic_ns(), true, why), 0);
	assert_string_equal(why, "");
	unfollow(&f);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(dropped_events_are_reported),
		cmocka_unit_test(a_closed_connection_is_reported_if_the_process_lives),
	};

	return cmocka_run_group_tests(tests, fake_set_up, fake_tear_down);
}
