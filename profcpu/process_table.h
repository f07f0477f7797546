/* Processes for people to choose from: what `ps` prints, and `collect` where there are several .NET processes. */
#ifndef PROFCPU_PROCESS_TABLE_H
#define PROFCPU_PROCESS_TABLE_H

#include "base/outbuf.h"
#include "container/targets.h"

#define PROCESS_USER_BYTES 33

/* Names of this machine's users; zeroed: none, users are numbers. */
struct process_users {
	struct process_user *v;
	size_t len, cap;
};

/* Reads /etc/passwd once. Not through name services, which may ask the network. Ended by process_users_free. */
void process_users_load(struct process_users *users);
void process_users_free(struct process_users *users);

/* At most PROCESS_USER_BYTES. A process with a root of its own has other users than ours: the number. */
void process_user(const struct target *t, const struct process_users *users, char *name);

/* The command line with blanks between its words, as its bytes are; NULL where it cannot be read. The caller frees it. */
char *process_arguments(pid_t pid);

/* What stands behind the program's name. */
enum process_words {
	PROCESS_NO_WORDS,
	PROCESS_ARGUMENTS, /* the command line, which may hold secrets */
	PROCESS_ASSEMBLY, /* of `dotnet` the assembly that it runs, else the program's path, cut; never arguments */
};

/* One row for each, under a line of headings. Nothing of what processes chose may steer a terminal: names in the list are
 * made printable. */
void process_table(struct outbuf *out, struct target_list *list, const struct process_users *users,
		   enum process_words words);

#endif
