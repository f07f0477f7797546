/* The table of processes that `ps` prints, and `collect` if it finds several .NET processes. */
#ifndef PROFCPU_PROCESS_TABLE_H
#define PROFCPU_PROCESS_TABLE_H

#include "base/outbuf.h"
#include "container/process_list.h"

#define PROCESS_USER_BYTES 33

/* User names of this machine. Zeroed: none, users are shown as numbers. */
struct process_users {
	struct process_user *v;
	size_t len, cap;
};

/*
 * Reads /etc/passwd once. Avoids name services, which may use the network. process_users_free ends
 * it.
 */
void process_users_load(struct process_users *users);
void process_users_free(struct process_users *users);

/*
 * Writes the user's name, at most PROCESS_USER_BYTES. A process with its own root or mounts may
 * have other users than ours, so it gets the number.
 */
void process_user_name(const struct process_entry *t, const struct process_users *users,
		       char *name);

/*
 * The command line with blanks between its words, other bytes unchanged. The caller frees it. NULL:
 * unreadable, or more than 1 MiB.
 */
char *process_arguments(pid_t pid);

/* Text after the name of the program. */
enum process_words {
	PROCESS_NO_WORDS,
	PROCESS_ARGUMENTS, /* the command line, which may hold secrets; a long one is cut */
	/*
	 * The assembly that `dotnet` runs, else the path of the program, shortened; no arguments.
	 */
	PROCESS_ASSEMBLY,
};

/*
 * Writes a line of headings and one row for each process. Rows are printable ASCII, so
 * that no process can send control sequences to the terminal.
 */
void process_table(struct outbuf *out, const struct process_list *list,
		   const struct process_users *users, enum process_words words);

#endif
