/*
 * Load for the web API of this folder: some connections to each route, which send a request after
 * each response, over the loopback interface only. Ends by itself, or on Ctrl-C, and prints the
 * results of each route.
 *
 * usage: load [-c CONNECTIONS] [-d SECONDS] PORT [ROUTE...]
 *
 * Defaults: 5 connections a route, 30 s (an hour at most), routes /cpu and /wait. Latency is from
 * the first byte of the request to the last byte of the response. HTTP/1.1 with keep-alive;
 * responses must have a Content-Length. Exit status: 0 if every route responded, 1 if not, 2 usage.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROUTES_MAX 16
#define CONNECTIONS_MAX 256
#define SECONDS_MAX 3600
#define ANSWER_MAX 65536
#define TIMES_MAX (1u << 24)
#define RETRY_NS 100000000u

struct route {
	const char *path;
	char request[512];
	size_t request_bytes;
	uint64_t *times_ns;
	size_t n_times, room;
	uint64_t answers, errors;
};

struct connection {
	struct route *route;
	int fd; /* -1: to open at retry_ns */
	uint64_t sent_ns, retry_ns;
	size_t used;
	char answer[ANSWER_MAX + 1];
};

static volatile sig_atomic_t stopped;
static uint16_t port;

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void connection_close(struct connection *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
	c->retry_ns = now_ns() + RETRY_NS;
}

static void connection_fail(struct connection *c)
{
	c->route->errors++;
	connection_close(c);
}

/* A request is far smaller than a socket's buffer, so it is sent completely or not at all. */
static void connection_ask(struct connection *c)
{
	c->used = 0;
	c->sent_ns = now_ns();
	if (send(c->fd, c->route->request, c->route->request_bytes, MSG_NOSIGNAL) !=
	    (ssize_t)c->route->request_bytes)
		connection_fail(c);
}

static void connection_open(struct connection *c)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons(port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1;

	c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&to, sizeof(to))) {
		connection_fail(c);
		return;
	}
	setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	connection_ask(c);
}

static void route_add_time(struct route *r, uint64_t time_ns)
{
	if (r->n_times == r->room && r->room < TIMES_MAX) {
		size_t room = r->room ? 2 * r->room : 1024;
		uint64_t *bigger = realloc(r->times_ns, room * sizeof(*bigger));

		if (!bigger)
			return;
		r->times_ns = bigger;
		r->room = room;
	}
	if (r->n_times < r->room)
		r->times_ns[r->n_times++] = time_ns;
}

/* Length of a complete response; 0 if not yet known, -1 if invalid. */
static long answer_bytes(const char *answer)
{
	static const char name[] = "\r\nContent-Length:";
	const char *end = strstr(answer, "\r\n\r\n");
	const char *length = strcasestr(answer, name);

	if (!end)
		return 0;
	if (!length || length > end)
		return -1;
	long body = strtol(length + sizeof(name) - 1, NULL, 10);

	return body < 0 || body > ANSWER_MAX ? -1 : end + 4 - answer + body;
}

static void connection_read(struct connection *c)
{
	ssize_t n = recv(c->fd, c->answer + c->used, ANSWER_MAX - c->used, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		connection_fail(c);
		return;
	}
	c->used += (size_t)n;
	c->answer[c->used] = 0;
	long whole = answer_bytes(c->answer);

	if (whole < 0 || (whole == 0 && c->used == ANSWER_MAX)) {
		connection_fail(c);
	} else if (whole > 0 && c->used >= (size_t)whole) {
		if (strncmp(c->answer, "HTTP/1.1 200 ", 13)) {
			connection_fail(c);
			return;
		}
		c->route->answers++;
		route_add_time(c->route, now_ns() - c->sent_ns);
		connection_ask(c);
	}
}

static void run(struct connection *connections, size_t n, uint64_t end_ns)
{
	struct pollfd *polled = calloc(n, sizeof(*polled));

	if (!polled) {
		fprintf(stderr, "load: out of memory\n");
		return;
	}
	for (uint64_t now = now_ns(); !stopped && now < end_ns; now = now_ns()) {
		for (size_t i = 0; i < n; i++) {
			if (connections[i].fd < 0 && now >= connections[i].retry_ns)
				connection_open(&connections[i]);
			polled[i] = (struct pollfd){.fd = connections[i].fd, .events = POLLIN};
		}
		uint64_t left_ms = (end_ns - now) / 1000000 + 1;

		if (poll(polled, n, left_ms < 100 ? (int)left_ms : 100) <= 0)
			continue;
		for (size_t i = 0; i < n; i++)
			if (polled[i].fd >= 0 && polled[i].revents)
				connection_read(&connections[i]);
	}
	for (size_t i = 0; i < n; i++)
		if (connections[i].fd >= 0)
			close(connections[i].fd);
	free(polled);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double percentile_ms(const struct route *r, double percent)
{
	if (!r->n_times)
		return 0;
	size_t i = (size_t)(percent / 100 * (double)(r->n_times - 1) + 0.5);

	return (double)r->times_ns[i] / 1e6;
}

static void route_print(struct route *r, double seconds)
{
	if (r->n_times)
		qsort(r->times_ns, r->n_times, sizeof(*r->times_ns), compare_times);
	printf("%-20s %9llu %7llu %10.1f %9.1f %9.1f %9.1f %9.1f\n", r->path,
	       (unsigned long long)r->answers, (unsigned long long)r->errors,
	       (double)r->answers / seconds, percentile_ms(r, 50), percentile_ms(r, 90),
	       percentile_ms(r, 99), percentile_ms(r, 100));
}

static int usage(void)
{
	fprintf(stderr, "usage: load [-c CONNECTIONS] [-d SECONDS] PORT [ROUTE...]\n");
	return 2;
}

static int route_init(struct route *r, const char *path)
{
	r->path = path;
	int n = snprintf(
		r->request, sizeof(r->request),
		"GET %s HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nUser-Agent: load\r\nAccept: */*\r\n\r\n",
		path, port);

	if (path[0] != '/' || n < 0 || (size_t)n >= sizeof(r->request)) {
		fprintf(stderr, "load: '%s' is no route: it must begin with / and be short\n",
			path);
		return -1;
	}
	r->request_bytes = (size_t)n;
	return 0;
}

/* Runs all routes at the same time; 0 if each got a response. */
static int load(struct route *routes, size_t n_routes, size_t per_route, double seconds)
{
	struct connection *connections = calloc(n_routes * per_route, sizeof(*connections));
	int status = 0;

	if (!connections) {
		fprintf(stderr, "load: out of memory\n");
		return 1;
	}
	for (size_t i = 0; i < n_routes * per_route; i++) {
		connections[i].route = &routes[i / per_route];
		connections[i].fd = -1;
	}
	uint64_t start = now_ns();

	run(connections, n_routes * per_route, start + (uint64_t)(seconds * 1e9));
	double took = (double)(now_ns() - start) / 1e9;

	printf("%-20s %9s %7s %10s %9s %9s %9s %9s\n", "route", "answers", "errors", "per_second",
	       "p50_ms", "p90_ms", "p99_ms", "max_ms");
	for (size_t i = 0; i < n_routes; i++) {
		route_print(&routes[i], took);
		if (!routes[i].answers)
			status = 1;
		free(routes[i].times_ns);
	}
	free(connections);
	return status;
}

int main(int argc, char **argv)
{
	static struct route routes[ROUTES_MAX];
	static char *default_routes[] = {"/cpu", "/wait", NULL};
	unsigned long per_route = 5;
	double seconds = 30;
	size_t n = 0;
	int c;

	while ((c = getopt(argc, argv, "c:d:")) != -1) {
		if (c == 'c')
			per_route = strtoul(optarg, NULL, 10);
		else if (c == 'd')
			seconds = strtod(optarg, NULL);
		else
			return usage();
	}
	port = optind < argc ? (uint16_t)strtoul(argv[optind], NULL, 10) : 0;
	if (!port || per_route < 1 || per_route > CONNECTIONS_MAX ||
	    !(seconds > 0 && seconds <= SECONDS_MAX))
		return usage();
	for (char **path = optind + 1 < argc ? argv + optind + 1 : default_routes; *path; path++)
		if (n == ROUTES_MAX || route_init(&routes[n++], *path))
			return usage();
	signal(SIGINT, on_signal);
	signal(SIGTERM, on_signal);
	return load(routes, n, per_route, seconds);
}
