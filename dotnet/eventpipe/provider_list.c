#include "dotnet/eventpipe/provider_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define LEVEL_INFORMATIONAL 4
#define LEVEL_VERBOSE 5

/* Keywords of the runtime's events: clretwall.man of dotnet/runtime has their meaning. */
static const struct {
	const char *name;
	uint64_t keyword;
} runtime_keywords[] = {
	{"gc", 0x1},
	{"gchandle", 0x2},
	{"assemblyloader", 0x4},
	{"fusion", 0x4},
	{"loader", 0x8},
	{"jit", 0x10},
	{"ngen", 0x20},
	{"startenumeration", 0x40},
	{"endenumeration", 0x80},
	{"security", 0x400},
	{"appdomainresourcemanagement", 0x800},
	{"jittracing", 0x1000},
	{"interop", 0x2000},
	{"contention", 0x4000},
	{"exception", 0x8000},
	{"threading", 0x10000},
	{"jittedmethodiltonativemap", 0x20000},
	{"overrideandsuppressngenevents", 0x40000},
	{"type", 0x80000},
	{"gcheapdump", 0x100000},
	{"gcsampledobjectallocationhigh", 0x200000},
	{"gcheapsurvivalandmovement", 0x400000},
	{"gcheapcollect", 0x800000},
	{"managedheapcollect", 0x800000},
	{"managedheadcollect", 0x800000}, /* as dotnet-trace spells it */
	{"gcheapandtypenames", 0x1000000},
	{"gcsampledobjectallocationlow", 0x2000000},
	{"perftrack", 0x20000000},
	{"stack", 0x40000000},
	{"threadtransfer", 0x80000000},
	{"debugger", 0x100000000},
	{"monitoring", 0x200000000},
	{"codesymbols", 0x400000000},
	{"eventsource", 0x800000000},
	{"compilation", 0x1000000000},
	{"compilationdiagnostic", 0x2000000000},
	{"methoddiagnostic", 0x4000000000},
	{"typediagnostic", 0x8000000000},
	{"jitinstrumentationdata", 0x10000000000},
	{"profiler", 0x20000000000},
	{"waithandle", 0x40000000000},
	{"allocationsampling", 0x80000000000},
};

/* Entity Framework and SqlClient announce their commands to listeners of these names. */
#define DATABASE_COLUMNS                                                                  \
	"Command.CommandTimeout;Command.CommandType;Command.Connection.ConnectionString;" \
	"Command.Connection.Database;Command.Connection.DataSource;Command.Connection.PacketSize"
#define DATABASE_SQL "SqlClientDiagnosticListener/System.Data.SqlClient.WriteCommand"
#define DATABASE_EF \
	"Microsoft.EntityFrameworkCore/Microsoft.EntityFrameworkCore.Database.Command.Command"

static const struct {
	const char *profile;
	struct session_provider provider;
} profile_providers[] = {
	{"dotnet-common",
	 {.name = PROVIDER_RUNTIME, .keywords = 0x100003801d, .level = LEVEL_INFORMATIONAL}},
	{"dotnet-sampled-thread-time", {.name = PROVIDER_SAMPLER, .level = LEVEL_INFORMATIONAL}},
	{"gc-verbose", {.name = PROVIDER_RUNTIME, .keywords = 0x8003, .level = LEVEL_VERBOSE}},
	{"gc-collect", {.name = PROVIDER_RUNTIME, .keywords = 0x1, .level = LEVEL_INFORMATIONAL}},
	{"database",
	 {.name = "System.Threading.Tasks.TplEventSource",
	  .keywords = 0x80,
	  .level = LEVEL_INFORMATIONAL}},
	{"database",
	 {.name = "Microsoft-Diagnostics-DiagnosticSource",
	  .keywords = 0x3,
	  .level = LEVEL_VERBOSE,
	  .arguments = "FilterAndPayloadSpecs=\"" DATABASE_SQL "Before@Activity1Start:-"
		       "Command;Command.CommandText;ConnectionId;Operation;"
		       "Command.Connection.ServerVersion;" DATABASE_COLUMNS "\r\n" DATABASE_SQL
		       "After@Activity1Stop:\r\n" DATABASE_EF "Executing@Activity2Start:-"
		       "Command.CommandText;Command;ConnectionId;IsAsync;"
		       "Command.Connection.ClientConnectionId;"
		       "Command.Connection.ServerVersion;" DATABASE_COLUMNS "\r\n" DATABASE_EF
		       "Executed@Activity2Stop:\""}},
};

void provider_list_free(struct provider_list *l)
{
	vec_free(&l->v);
	arena_free(&l->text);
}

static int __attribute__((format(printf, 2, 3)))
list_refuse(struct provider_list *l, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(l->why, sizeof(l->why), format, args);
	va_end(args);
	return -EINVAL;
}

static int list_no_memory(struct provider_list *l)
{
	snprintf(l->why, sizeof(l->why), "out of memory");
	return -ENOMEM;
}

static struct session_provider *list_find(const struct provider_list *l, const char *name)
{
	for (size_t i = 0; i < l->v.len; i++)
		if (!strcasecmp(l->v.v[i].name, name))
			return &l->v.v[i];
	return NULL;
}

bool provider_list_has(const struct provider_list *l, const char *name)
{
	return list_find(l, name) != NULL;
}

static int list_level(struct provider_list *l, const char *text, uint32_t *ret_level)
{
	static const char *const words[] = {"logalways", "critical",      "error",
					    "warning",   "informational", "verbose"};
	char *end;
	unsigned long level = strtoul(text, &end, 10);

	if (isdigit((unsigned char)*text) && !*end) {
		*ret_level = level > LEVEL_VERBOSE ? LEVEL_VERBOSE : (uint32_t)level;
		return 0;
	}
	for (uint32_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcasecmp(words[i], text)) {
			*ret_level = i;
			return 0;
		}
	return list_refuse(l,
			   "level '%.40s' is neither 0 to 5 nor logalways, critical, error, "
			   "warning, informational or verbose",
			   text);
}

static int list_keywords(struct provider_list *l, const char *text, uint64_t *ret_keywords)
{
	char *end;

	errno = 0;
	*ret_keywords = strtoull(text, &end, 16);
	return isxdigit((unsigned char)*text) && !*end && !errno
		       ? 0
		       : list_refuse(l, "keywords '%.40s' are not a hexadecimal number of 64 bits",
				     text);
}

/* Replaces escapes, in place. */
static void list_unescape(char *text)
{
	char *to = text;

	for (const char *p = text; *p; p++) {
		if (*p != '\\' || !p[1]) {
			*to++ = *p;
			continue;
		}
		p++;
		*to++ = *p == 'n' ? '\n' : *p == 'r' ? '\r' : *p == 't' ? '\t' : *p;
	}
	*to = 0;
}

/* Whether each part between semicolons is KEY=VALUE. Semicolons in quotes do not separate. */
static bool list_are_pairs(const char *text)
{
	bool quoted = false, has_value = false;
	size_t key = 0;

	for (const char *p = text;; p++) {
		if (*p == '"')
			quoted = !quoted;
		if (!*p || (*p == ';' && !quoted)) {
			/* A last semicolon ends the list. */
			if (!has_value && (key || *p))
				return false;
			if (!*p)
				return !quoted;
			has_value = false;
			key = 0;
		} else if (*p == '=' && !quoted && key) {
			has_value = true;
		} else {
			key++;
		}
	}
}

/* The more verbose one; 0 stands for all levels. */
static uint32_t list_wider(uint32_t a, uint32_t b)
{
	return !a || !b ? 0 : a > b ? a : b;
}

static char *list_copy(struct arena *a, const char *text)
{
	return arena_strndup(a, text, strlen(text));
}

static int list_push(struct provider_list *l, const struct session_provider *p)
{
	struct session_provider copy = *p;

	copy.name = list_copy(&l->text, p->name);
	copy.arguments = p->arguments ? list_copy(&l->text, p->arguments) : NULL;
	if (!copy.name || (p->arguments && !copy.arguments) || vec_push(&l->v, copy))
		return list_no_memory(l);
	return 0;
}

/* Adds one provider; text is changed. */
static int list_add_one(struct provider_list *l, char *text)
{
	struct session_provider p = {.level = LEVEL_INFORMATIONAL};
	char *fields[4] = {text};
	int r = 0;

	for (size_t n = 1; n < 4 && fields[n - 1]; n++) {
		fields[n] = strchr(fields[n - 1], ':');
		if (fields[n])
			*fields[n]++ = 0;
	}
	if (!*text)
		return list_refuse(l, "the name of a provider is missing");
	p.name = text;
	if (fields[1] && *fields[1])
		r = list_keywords(l, fields[1], &p.keywords);
	if (!r && fields[2] && *fields[2])
		r = list_level(l, fields[2], &p.level);
	if (!r && fields[3] && *fields[3]) {
		list_unescape(fields[3]);
		p.arguments = fields[3];
		if (!list_are_pairs(p.arguments))
			r = list_refuse(l, "arguments of %.80s are not KEY=VALUE;KEY=VALUE", text);
	}
	if (r)
		return r;
	struct session_provider *known = list_find(l, p.name);

	if (!known)
		return list_push(l, &p);
	if (known->arguments && p.arguments)
		return list_refuse(l, "%.80s has arguments twice", text);
	known->keywords |= p.keywords;
	known->level = list_wider(known->level, p.level);
	if (p.arguments && !(known->arguments = list_copy(&l->text, p.arguments)))
		return list_no_memory(l);
	return 0;
}

int provider_list_add(struct provider_list *l, const char *text)
{
	char *copy = strdup(text), *start = copy;
	bool quoted = false;
	int r = 0;

	if (!copy)
		return list_no_memory(l);
	for (char *p = copy; !r; p++) {
		bool at_end = !*p;

		if (*p == '"')
			quoted = !quoted;
		if (!at_end && (*p != ',' || quoted))
			continue;
		*p = 0;
		r = list_add_one(l, start);
		start = p + 1;
		if (at_end)
			break;
	}
	free(copy);
	return r;
}

/* Refuses a profile, and names those that there are. */
static int list_refuse_profile(struct provider_list *l, const char *name)
{
	const char *before = "";
	size_t len = 0;

	(void)list_refuse(l, "'%.40s' is not a profile; the profiles are", name);
	for (size_t i = 0; i < sizeof(profile_providers) / sizeof(profile_providers[0]); i++) {
		const char *known = profile_providers[i].profile;

		len = strlen(l->why);
		if (strcmp(known, before) != 0)
			snprintf(l->why + len, sizeof(l->why) - len, "%s %s", i ? "," : "", known);
		before = known;
	}
	return -EINVAL;
}

int provider_list_add_profile(struct provider_list *l, const char *name)
{
	bool known = false;
	int r = 0;

	for (size_t i = 0; i < sizeof(profile_providers) / sizeof(profile_providers[0]) && !r;
	     i++) {
		const struct session_provider *p = &profile_providers[i].provider;

		if (strcasecmp(profile_providers[i].profile, name) != 0)
			continue;
		known = true;
		if (!provider_list_has(l, p->name))
			r = list_push(l, p);
	}
	return known ? r : list_refuse_profile(l, name);
}

int provider_list_add_runtime(struct provider_list *l, const char *events, const char *level)
{
	struct session_provider p = {.name = PROVIDER_RUNTIME, .level = LEVEL_INFORMATIONAL};
	int r = level ? list_level(l, level, &p.level) : 0;

	while (!r && *events) {
		size_t len = strcspn(events, "+");
		bool known = false;

		for (size_t i = 0; i < sizeof(runtime_keywords) / sizeof(runtime_keywords[0]); i++)
			if (strlen(runtime_keywords[i].name) == len &&
			    !strncasecmp(runtime_keywords[i].name, events, len)) {
				p.keywords |= runtime_keywords[i].keyword;
				known = true;
			}
		if (!known)
			r = list_refuse(l, "'%.*s' is not a group of the runtime's events",
					len > 40 ? 40 : (int)len, events);
		events += len + (events[len] == '+');
	}
	return r || provider_list_has(l, p.name) ? r : list_push(l, &p);
}
