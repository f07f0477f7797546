#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/vec.h"
#include "container/targets.h"
#include "profcpu/command.h"
#include "profcpu/mend.h"
#include "profcpu/options.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define PS_ID_DIGITS 12 /* of a container's id, as the runtimes' own listings show it */
#define PS_USER_BYTES 33
#define PS_USERS_MAX 65536
#define PS_ARGS_MAX ((size_t)1 << 20)

struct ps_user {
	uid_t uid;
	char name[PS_USER_BYTES];
};

struct ps_users {
	struct ps_user *v;
	size_t len, cap;
};

struct ps_options {
	bool dotnet_only, json, args;
	struct ps_users users;
};

/* A row's texts; number columns come from the target itself. */
struct ps_row {
	char user[PS_USER_BYTES];
	const char *dotnet;
	char *args; /* NULL but with --args */
};

/* Names are bytes that processes chose: nothing of them may steer a terminal. */
static void ps_make_printable(char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text >= 0x7f)
			*text = '?';
}

/* Reads /etc/passwd once. Not through name services, which may ask the network. Without it users are numbers. */
static void ps_users_load(struct ps_users *users)
{
	AUTO_FCLOSE FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	while (f && users->len < PS_USERS_MAX && (pw = fgetpwent(f))) {
		struct ps_user user = {.uid = pw->pw_uid};

		snprintf(user.name, sizeof(user.name), "%s", pw->pw_name);
		ps_make_printable(user.name);
		if (vec_push(users, user))
			return;
	}
}

/* A process with a root of its own has other users than ours: the number. */
static void ps_user(const struct target *t, const struct ps_users *users, char *name)
{
	snprintf(name, PS_USER_BYTES, "%u", t->uid);
	for (size_t i = 0; i < users->len && !t->other_root; i++) {
		if (users->v[i].uid == t->uid) {
			snprintf(name, PS_USER_BYTES, "%s", users->v[i].name);
			return;
		}
	}
}

static const char *ps_dotnet(const struct target *t)
{
	if (t->denied)
		return "?";
	if (!t->dotnet.is_dotnet)
		return "-";
	return t->dotnet.version[0] ? t->dotnet.version : "yes";
}

/* The command line with spaces between its words; NULL where it cannot be read. */
static char *ps_args(pid_t pid)
{
	char *text;
	size_t len;

	if (proc_read(pid, 0, "cmdline", PS_ARGS_MAX, &text, &len))
		return NULL;
	while (len && !text[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = ' ';
	return text;
}

static void ps_fill_row(const struct target *t, const struct ps_options *options, struct ps_row *row)
{
	ps_user(t, &options->users, row->user);
	row->dotnet = ps_dotnet(t);
	row->args = options->args ? ps_args(t->pid) : NULL;
}

static int ps_widest(int width, const char *text)
{
	size_t len = strlen(text);

	return len > (size_t)width && len < INT_MAX ? (int)len : width;
}

static void ps_print_table(struct outbuf *out, struct target_list *list, const struct ps_options *options)
{
	int user_width = 4, comm_width = 7, dotnet_width = 4;
	struct ps_row row;

	for (size_t i = 0; i < list->len; i++) {
		struct target *t = &list->v[i];

		ps_make_printable(t->comm);
		ps_user(t, &options->users, row.user);
		user_width = ps_widest(user_width, row.user);
		comm_width = ps_widest(comm_width, t->comm);
		dotnet_width = ps_widest(dotnet_width, ps_dotnet(t));
	}
	outbuf_printf(out, "%8s %8s  %-*s  %-*s  %-*s  %s\n", "PID", "NSPID", user_width, "USER", dotnet_width, ".NET",
		      PS_ID_DIGITS, "CONTAINER", "COMMAND");
	for (size_t i = 0; i < list->len; i++) {
		const struct target *t = &list->v[i];

		ps_fill_row(t, options, &row);
		if (row.args)
			ps_make_printable(row.args);
		outbuf_printf(out, "%8d %8d  %-*s  %-*s  %-*.*s  %s%s%s\n", t->pid, t->ns_pid, user_width, row.user,
			      dotnet_width, row.dotnet, PS_ID_DIGITS, PS_ID_DIGITS, t->container[0] ? t->container : "-",
			      t->comm, row.args && *row.args ? ": " : "", row.args ? row.args : "");
		free(row.args);
	}
}

static void ps_json_text(struct outbuf *out, const char *key, const char *text)
{
	outbuf_printf(out, ",\"%s\":\"", key);
	outbuf_json(out, text, strlen(text));
	outbuf_char(out, '"');
}

static void ps_print_json(struct outbuf *out, const struct target_list *list, const struct ps_options *options)
{
	struct ps_row row;

	outbuf_str(out, "{\"processes\":[");
	for (size_t i = 0; i < list->len; i++) {
		const struct target *t = &list->v[i];

		ps_fill_row(t, options, &row);
		outbuf_printf(out, "%s\n{\"pid\":%d,\"ns_pid\":%d,\"ppid\":%d,\"uid\":%u", i ? "," : "", t->pid, t->ns_pid,
			      t->ppid, t->uid);
		ps_json_text(out, "user", row.user);
		ps_json_text(out, "command", t->comm);
		if (row.args)
			ps_json_text(out, "arguments", row.args);
		ps_json_text(out, "container", t->container);
		outbuf_printf(out, ",\"dotnet\":%s", t->denied ? "null" : t->dotnet.is_dotnet ? "true" : "false");
		ps_json_text(out, "dotnet_version", t->dotnet.version);
		outbuf_char(out, '}');
		free(row.args);
	}
	outbuf_printf(out, "\n],\"not_looked_into\":%zu}\n", list->denied.count);
}

static int ps_print(const struct ps_options *options, struct target_list *list)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	char why[TARGETS_DENIED_BYTES];

	if (options->json)
		ps_print_json(&out, list, options);
	else if (list->len)
		ps_print_table(&out, list, options);
	int r = outbuf_close(&out);

	if (r) {
		log_error("cannot write to stdout: %s%s", strerror(-r), mend_of_stdout(r));
		return EXIT_FAILED;
	}
	if (!list->len && !options->json)
		log_note("no %sprocess in sight", options->dotnet_only ? ".NET " : "");
	if (list->denied.count) {
		targets_denied_text(&list->denied, why, sizeof(why));
		log_note("%zu of them may not be looked into for .NET: %s%s", list->denied.count, why,
			 targets_want_ptrace(&list->denied) ? "; root and CAP_SYS_PTRACE may (`profcpu doctor` says more)" : "");
	}
	return EXIT_DONE;
}

static int ps_parse(int argc, char **argv, struct ps_options *options)
{
	enum { PS_DOTNET = 256, PS_JSON, PS_ARGS };
	static const struct option longopts[] = {
		{"dotnet", no_argument, NULL, PS_DOTNET},
		{"json", no_argument, NULL, PS_JSON},
		{"args", no_argument, NULL, PS_ARGS},
		{0},
	};

	optind = 0;
	for (int c; (c = options_next(&command_ps, argc, argv, ":", longopts)) != -1;) {
		options->dotnet_only |= c == PS_DOTNET;
		options->json |= c == PS_JSON;
		options->args |= c == PS_ARGS;
		if (c == '?')
			return -1;
	}
	return options_no_argument(&command_ps, argc, argv);
}

static int ps_run(int argc, char **argv)
{
	struct ps_options options = {0};
	struct target_list list = {0};
	struct opener *opener = NULL;

	if (ps_parse(argc, argv, &options))
		return EXIT_USAGE;
	int r = opener_new(&opener);

	if (!r)
		r = targets_list(opener, options.dotnet_only, &list);
	opener_free(opener);
	if (r) {
		log_error("cannot list processes in /proc: %s", strerror(-r));
		return EXIT_FAILED;
	}
	ps_users_load(&options.users);
	int status = ps_print(&options, &list);

	vec_free(&options.users);
	target_list_free(&list);
	return status;
}

const struct command command_ps = {
	.name = "ps",
	.summary = "list processes: user, command, container, .NET and its version",
	.usage = "usage: profcpu ps [--dotnet] [--json] [--args]\n\n"
		 "Lists the processes in sight: PID here, PID in its own namespace, user, whether it runs .NET (its version, \"yes\"\n"
		 "where that cannot be told, \"?\" where the process may not be looked into), container id, program name.\n\n"
		 "      --dotnet  only .NET processes\n"
		 "      --args    command lines too, which may hold secrets\n"
		 "      --json    for programs\n",
	.run = ps_run,
};
