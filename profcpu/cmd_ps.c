#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/remedy.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/process_table.h"

#include <stdio.h>
#include <string.h>

struct ps_options {
	bool dotnet_only, json, args;
	struct process_users users;
};

static void ps_print_json(struct outbuf *out, const struct process_list *list,
			  const struct ps_options *options)
{
	struct json_writer top = json_put_document(out, 2);
	struct json_writer processes = json_put_array(&top, "processes");
	char user[PROCESS_USER_BYTES];

	for (size_t i = 0; i < list->len; i++) {
		const struct process_entry *t = &list->v[i];

		AUTO_FREE char *arguments = options->args ? process_arguments(t->pid) : NULL;
		struct json_writer item = json_put_object(&processes, NULL);

		process_user_name(t, &options->users, user);
		json_put_i64(&item, "pid", t->pid);
		json_put_i64(&item, "ns_pid", t->ns_pid);
		json_put_i64(&item, "ppid", t->ppid);
		json_put_u64(&item, "uid", t->uid);
		json_put_text(&item, "user", user);
		json_put_text(&item, "command", t->comm);
		if (arguments)
			json_put_text(&item, "arguments", arguments);
		json_put_text(&item, "container", t->container);
		if (t->denied)
			json_put_text(&item, "dotnet", NULL);
		else
			json_put_bool(&item, "dotnet", t->dotnet.is_dotnet);
		json_put_text(&item, "dotnet_version", t->dotnet.version);
		json_put_end(&item);
	}
	json_put_end(&processes);
	json_put_u64(&top, "not_looked_into", list->denied.count);
	json_put_end(&top);
}

static int ps_print(const struct ps_options *options, struct process_list *list)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	char why[PROCESS_LIST_DENIED_BYTES];

	if (options->json)
		ps_print_json(&out, list, options);
	else if (list->len)
		process_table(&out, list, &options->users,
			      options->args ? PROCESS_ARGUMENTS : PROCESS_NO_WORDS);
	int r = outbuf_close(&out);

	if (r) {
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
		return EXIT_FAILED;
	}
	if (!list->len && !options->json)
		log_note("no %sprocess in sight", options->dotnet_only ? ".NET " : "");
	if (list->denied.count) {
		process_list_denied_text(&list->denied, why, sizeof(why));
		log_note("%zu process%s cannot be inspected for .NET: %s%s", list->denied.count,
			 list->denied.count == 1 ? "" : "es", why,
			 process_list_need_ptrace(&list->denied)
				 ? "; run as root or with CAP_SYS_PTRACE (see `profcpu doctor`)"
				 : "");
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
	struct process_list list = {0};
	struct opener *opener = NULL;

	if (ps_parse(argc, argv, &options))
		return EXIT_USAGE;
	int r = opener_new(&opener);

	if (!r)
		r = process_list_load(opener, options.dotnet_only, &list);
	opener_free(opener);
	if (r) {
		log_error("cannot list processes in /proc: %s", strerror(-r));
		return EXIT_FAILED;
	}
	process_users_load(&options.users);
	int status = ps_print(&options, &list);

	process_users_free(&options.users);
	process_list_free(&list);
	return status;
}

const struct command command_ps = {
	.name = "ps",
	.summary = "list processes: user, command, container, .NET and its version",
	.usage = "usage: profcpu ps [--dotnet] [--json] [--args]\n"
		 "\n"
		 "Lists the processes in sight, with these columns:\n"
		 "  PID        PID here\n"
		 "  NSPID      PID in its own namespace\n"
		 "  USER       user; a number if /etc/passwd has no name, or if the process\n"
		 "             has its own root or mounts and so may have other user names\n"
		 "  .NET       version of .NET; yes: not known; -: not .NET; ?: the process\n"
		 "             cannot be inspected\n"
		 "  CONTAINER  id of the container\n"
		 "  COMMAND    name of the program\n"
		 "\n"
		 "      --dotnet  list only .NET processes\n"
		 "      --args    print command lines too; they may hold secrets\n"
		 "      --json    print JSON\n",
	.run = ps_run,
};
