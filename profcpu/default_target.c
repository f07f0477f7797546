#include "profcpu/default_target.h"

#include "base/log.h"
#include "base/outbuf.h"
#include "container/process_list.h"
#include "profcpu/command.h"
#include "profcpu/process_table.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Shows assemblies, by which processes differ, and no arguments, which may hold secrets. */
static void target_print_several(struct process_list *list)
{
	struct outbuf out = outbuf_to(STDERR_FILENO);
	struct process_users users = {0};

	log_error("%zu .NET processes in sight; choose with -p:", list->len);
	process_users_load(&users);
	process_table(&out, list, &users, PROCESS_ASSEMBLY);
	process_users_free(&users);
	outbuf_close(&out);
}

static void target_announce(const struct process_list *list, enum process_list_choice choice,
			    pid_t pid, bool dotnet)
{
	char why[PROCESS_LIST_DENIED_BYTES];

	if (choice == PROCESS_LIST_PID1 && dotnet)
		log_error("no .NET process in sight; name one with -p");
	else if (choice == PROCESS_LIST_PID1)
		log_note("no .NET process in sight; profiling PID 1 (-p chooses another)");
	else
		log_note("%s the only .NET process in sight: PID %d (%s%s%s)",
			 dotnet ? "taking" : "profiling", (int)pid, list->v[0].comm,
			 list->v[0].dotnet.version[0] ? ", .NET " : "", list->v[0].dotnet.version);
	if (!list->denied.count)
		return;
	process_list_denied_text(&list->denied, why, sizeof(why));
	log_note("cannot inspect: %s; -p chooses one of them%s", why,
		 process_list_need_ptrace(&list->denied)
			 ? ", and root or CAP_SYS_PTRACE inspects all"
			 : "");
}

int default_target(struct options_pids *pids, bool dotnet)
{
	struct process_list list = {0};
	struct opener *opener = NULL;
	enum process_list_choice choice;
	pid_t pid;
	int r = opener_new(&opener);

	if (!r)
		r = process_list_dotnet(opener, &list, &choice, &pid);
	opener_free(opener);
	if (r) {
		log_error("cannot search /proc for .NET processes: %s; name one with -p",
			  strerror(-r));
		return EXIT_FAILED;
	}
	if (choice == PROCESS_LIST_SEVERAL) {
		target_print_several(&list);
		process_list_free(&list);
		return EXIT_USAGE;
	}
	target_announce(&list, choice, pid, dotnet);
	process_list_free(&list);
	if (choice == PROCESS_LIST_PID1 && dotnet)
		return EXIT_FAILED;
	if (vec_push(&pids->list, pid)) {
		log_error("out of memory");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

int default_target_one(pid_t *pid, bool dotnet)
{
	struct options_pids pids = {0};
	int status = *pid ? EXIT_DONE : default_target(&pids, dotnet);

	if (!*pid && status == EXIT_DONE)
		*pid = pids.list.v[0];
	vec_free(&pids.list);
	return status;
}
