#include "base/cleanup.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/printable.h"
#include "base/remedy.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/doctor_probe.h"
#include "profcpu/doctor_report.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct doctor_options {
	pid_t pid;
	bool json;
};

static void doctor_print(struct outbuf *out, struct doctor_report *report)
{
	static const char *const words[] = {
		[DOCTOR_YES] = "yes", [DOCTOR_NO] = "no", [DOCTOR_FATAL] = "NO"};
	int width = 0;

	for (size_t i = 0; i < report->len; i++) {
		/* The texts contain the name of the target, which may hold control characters. */
		printable_ascii(report->items[i].found);
		if (strlen(report->items[i].name) > (size_t)width)
			width = (int)strlen(report->items[i].name);
	}
	for (size_t i = 0; i < report->len; i++) {
		const struct doctor_item *item = &report->items[i];

		outbuf_printf(out, "%-3s  %-*s  %s\n", words[item->state], width, item->name,
			      item->found);
		if (item->effect)
			outbuf_printf(out, "%-3s  %-*s    effect: %s\n", "", width, "",
				      item->effect);
		if (item->remedy)
			outbuf_printf(out, "%-3s  %-*s    remedy: %s\n", "", width, "",
				      item->remedy);
	}
	outbuf_printf(out, "\n%s\n",
		      !report->can_record   ? "Recording cannot work here: see NO."
		      : report->can_off_cpu ? "Recording can work here."
					    : "Recording can work here, without --off-cpu.");
}

static void doctor_print_json(struct outbuf *out, const struct doctor_report *report)
{
	struct json_writer top = json_put_document(out, 2);

	json_put_bool(&top, "can_record", report->can_record);
	json_put_bool(&top, "can_off_cpu", report->can_record && report->can_off_cpu);
	struct json_writer items = json_put_array(&top, "items");

	for (size_t i = 0; i < report->len; i++) {
		const struct doctor_item *item = &report->items[i];
		struct json_writer w = json_put_object(&items, NULL);

		json_put_bool(&w, "ok", item->state == DOCTOR_YES);
		json_put_bool(&w, "fatal", item->state == DOCTOR_FATAL);
		json_put_text(&w, "name", item->name);
		json_put_text(&w, "found", item->found);
		json_put_text(&w, "effect", item->effect);
		json_put_text(&w, "remedy", item->remedy);
		json_put_end(&w);
	}
	json_put_end(&items);
	json_put_end(&top);
}

static int doctor_parse(int argc, char **argv, struct doctor_options *options)
{
	enum { DOCTOR_JSON = 256 };
	static const struct option longopts[] = {
		{"pid", required_argument, NULL, 'p'},
		{"json", no_argument, NULL, DOCTOR_JSON},
		{0},
	};
	uint64_t pid;

	optind = 0;
	for (int c; (c = options_next(&command_doctor, argc, argv, ":p:", longopts)) != -1;) {
		if (c == 'p' && options_u64("--pid", optarg, 1, INT_MAX, &pid))
			return -1;
		if (c == 'p')
			options->pid = (pid_t)pid;
		options->json |= c == DOCTOR_JSON;
		if (c == '?')
			return -1;
	}
	return options_no_argument(&command_doctor, argc, argv);
}

static int doctor_run(int argc, char **argv)
{
	struct doctor_options options = {0};
	/* Too large for the stack. */
	AUTO_FREE struct doctor_facts *facts = calloc(1, sizeof(*facts));
	AUTO_FREE struct doctor_report *report = calloc(1, sizeof(*report));

	if (doctor_parse(argc, argv, &options))
		return EXIT_USAGE;
	int r = facts && report ? doctor_probe(options.pid, facts) : -ENOMEM;

	if (r) {
		log_error("cannot probe this machine: %s", strerror(-r));
		return EXIT_FAILED;
	}
	doctor_report_facts(facts, report);
	struct outbuf out = outbuf_to(STDOUT_FILENO);

	if (options.json)
		doctor_print_json(&out, report);
	else
		doctor_print(&out, report);
	r = outbuf_close(&out);
	if (r)
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
	return r || !report->can_record ? EXIT_FAILED : EXIT_DONE;
}

const struct command command_doctor = {
	.name = "doctor",
	.summary = "test what recording needs here, and print the remedies",
	.usage = "usage: profcpu doctor [-p PID] [--json]\n\n"
		 "Tests each requirement of recording here. Each line begins with\n"
		 "  yes   it works\n"
		 "  no    it is missing; effect and remedy follow\n"
		 "  NO    it is missing, and nothing can be recorded without it\n\n"
		 "  -p, --pid PID  test this process too: its samples, files, memory map, .NET\n"
		 "                 runtime, perf map and diagnostic port\n"
		 "      --json     print JSON\n\n"
		 "exit status: 0 if recording can work, 1 if not, 2 wrong usage\n",
	.run = doctor_run,
};
