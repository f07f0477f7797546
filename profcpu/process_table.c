#include "profcpu/process_table.h"

#include "base/cleanup.h"
#include "base/path.h"
#include "base/printable.h"
#include "base/vec.h"

#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>

#define PROCESS_ID_DIGITS 12 /* shown digits of a container's id, as docker ps shows */
#define PROCESS_USERS_MAX 65536
#define PROCESS_ARGUMENTS_MAX ((size_t)1 << 20)
#define PROCESS_ARGUMENTS_SHOWN \
	4096                    /* bytes, as of names: one process must not fill the terminal */
#define PROCESS_ASSEMBLY_MAX 60 /* shown bytes of a path, from its end, which differs most */

struct process_user {
	uid_t uid;
	char name[PROCESS_USER_BYTES];
};

void process_users_load(struct process_users *users)
{
	AUTO_FCLOSE FILE *f = fopen("/etc/passwd", "re");
	struct passwd *pw;

	while (f && users->len < PROCESS_USERS_MAX && (pw = fgetpwent(f))) {
		struct process_user user = {.uid = pw->pw_uid};

		snprintf(user.name, sizeof(user.name), "%s", pw->pw_name);
		if (vec_push(users, user))
			return;
	}
}

void process_users_free(struct process_users *users)
{
	vec_free(users);
}

void process_user_name(const struct process_entry *t, const struct process_users *users, char *name)
{
	snprintf(name, PROCESS_USER_BYTES, "%u", t->uid);
	for (size_t i = 0; i < users->len && !t->other_root; i++) {
		if (users->v[i].uid == t->uid) {
			snprintf(name, PROCESS_USER_BYTES, "%s", users->v[i].name);
			return;
		}
	}
}

static const char *process_dotnet(const struct process_entry *t)
{
	if (t->denied)
		return "?";
	if (!t->dotnet.is_dotnet)
		return "-";
	return t->dotnet.version[0] ? t->dotnet.version : "yes";
}

char *process_arguments(pid_t pid)
{
	char *text;
	size_t len;

	if (proc_read(pid, 0, "cmdline", PROCESS_ARGUMENTS_MAX, &text, &len))
		return NULL;
	while (len && !text[len - 1])
		len--;
	for (size_t i = 0; i < len; i++)
		if (!text[i])
			text[i] = ' ';
	return text;
}

static bool process_is_assembly(const char *word)
{
	size_t len = strlen(word);

	return len > 4 && !strcmp(word + len - 4, ".dll");
}

/* The text of PROCESS_ASSEMBLY; the caller frees it. NULL if it only repeats the program's name. */
static char *process_assembly(const struct process_entry *t)
{
	AUTO_FREE char *text = NULL;
	size_t len;

	if (proc_read(t->pid, 0, "cmdline", PROCESS_ARGUMENTS_MAX, &text, &len) || !len)
		return NULL;
	const char *word = text, *end = text + len;

	if (!strcmp(path_base(text), "dotnet"))
		while (word < end && !process_is_assembly(word))
			word += strlen(word) + 1;
	if (word >= end)
		return NULL;
	size_t n = strlen(word);
	char *shown = NULL;

	if (!strcmp(word, t->comm) || !n ||
	    asprintf(&shown, "%s%s", n > PROCESS_ASSEMBLY_MAX ? "..." : "",
		     n > PROCESS_ASSEMBLY_MAX ? word + n - PROCESS_ASSEMBLY_MAX : word) < 0)
		return NULL;
	return shown;
}

static char *process_words(const struct process_entry *t, enum process_words words)
{
	char *text = words == PROCESS_ARGUMENTS  ? process_arguments(t->pid)
		     : words == PROCESS_ASSEMBLY ? process_assembly(t)
						 : NULL;

	return text;
}

static int process_widest(int width, const char *text)
{
	size_t len = strlen(text);

	return len > (size_t)width && len < INT_MAX ? (int)len : width;
}

void process_table(struct outbuf *out, const struct process_list *list,
		   const struct process_users *users, enum process_words words)
{
	int user_width = 4, dotnet_width = 4;
	struct outbuf row = outbuf_to(-1);
	char user[PROCESS_USER_BYTES];

	for (size_t i = 0; i < list->len; i++) {
		const struct process_entry *t = &list->v[i];

		process_user_name(t, users, user);
		user_width = process_widest(user_width, user);
		dotnet_width = process_widest(dotnet_width, process_dotnet(t));
	}
	outbuf_printf(out, "%8s %8s  %-*s  %-*s  %-*s  %s\n", "PID", "NSPID", user_width, "USER",
		      dotnet_width, ".NET", PROCESS_ID_DIGITS, "CONTAINER", "COMMAND");
	for (size_t i = 0; i < list->len; i++) {
		const struct process_entry *t = &list->v[i];
		AUTO_FREE char *text = process_words(t, words);
		size_t len = text ? strlen(text) : 0;
		bool cut = len > PROCESS_ARGUMENTS_SHOWN;
		int shown = cut ? PROCESS_ARGUMENTS_SHOWN - (int)strlen(PRINTABLE_CUT) : (int)len;

		process_user_name(t, users, user);
		row.len = 0;
		outbuf_printf(&row, "%8d %8d  %-*s  %-*s  %-*.*s  %s%s%.*s%s", t->pid, t->ns_pid,
			      user_width, user, dotnet_width, process_dotnet(t), PROCESS_ID_DIGITS,
			      PROCESS_ID_DIGITS, t->container[0] ? t->container : "-", t->comm,
			      len ? ": " : "", shown, text ? text : "", cut ? PRINTABLE_CUT : "");
		outbuf_char(&row, '\0');
		if (row.error)
			break;
		/* The process chose most of these texts. */
		printable_ascii(row.data);
		row.data[row.len - 1] = '\n';
		outbuf_put(out, row.data, row.len);
	}
	if (row.error)
		out->error = row.error;
	(void)outbuf_close(&row);
}
