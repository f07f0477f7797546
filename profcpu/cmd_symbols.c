#include "base/cleanup.h"
#include "base/clock.h"
#include "base/intern.h"
#include "base/json_writer.h"
#include "base/log.h"
#include "base/outbuf.h"
#include "base/path.h"
#include "base/remedy.h"
#include "base/shell_word.h"
#include "profcpu/arguments.h"
#include "profcpu/command.h"
#include "profcpu/post/download_missing.h"
#include "profcpu/post/symbols_images.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define SYMBOLS_FETCH_S 600 /* limit for all downloads; --timeout replaces it */
#define SYMBOLS_CONNECT_MS 10000
#define SYMBOLS_RETRIES 3

struct symbols_arguments {
	struct fetch_options fetch;
	uint64_t timeout_ns;
	bool json, again, lines;
	char **what;
	int nwhat;
};

/*
 * Reads all arguments of the command line. Reports and leaves out unreadable ones; then *ret_failed
 * is true.
 */
static int symbols_gather(const struct symbols_arguments *a, struct symbols_images *images,
			  const char **ret_recording, bool *ret_failed)
{
	*ret_recording = NULL;
	*ret_failed = false;
	for (int i = 0; i < a->nwhat; i++) {
		bool is_recording;
		int r = post_symbols_images_add(images, a->what[i], a->lines, &is_recording);

		if (r == -ENOMEM)
			return r;
		*ret_failed |= r;
		if (!r && is_recording)
			*ret_recording = a->what[i];
	}
	return 0;
}

static int symbols_end(struct outbuf *out, bool failed)
{
	int r = outbuf_close(out);

	if (r) {
		log_error("cannot write to stdout: %s%s", strerror(-r), remedy_for_stdout(r));
		return EXIT_FAILED;
	}
	return failed ? EXIT_FAILED : EXIT_DONE;
}

static void symbols_put_id(struct outbuf *out, const struct build_id *id)
{
	char hex[2 * BUILD_ID_MAX + 1] = "-";

	if (id->len)
		build_id_hex(id, hex);
	outbuf_printf(out, "%-40s", hex);
}

static void symbols_put_path(struct outbuf *out, const char *path)
{
	outbuf_printable(out, path, strlen(path), PATH_MAX);
}

/* fetch */

/* Prints the result for an image. item: its download; NULL: none was needed or possible. */
static void symbols_put_fetched(struct outbuf *out, const struct symbols_image *image,
				const struct symbol_fetch_item *item)
{
	static const char *const words[SYMBOL_FETCH_STATES] = {
		[SYMBOL_FETCH_NO_SERVER] = "no server", [SYMBOL_FETCH_CACHED] = "cached",
		[SYMBOL_FETCH_DOWNLOADED] = "fetched",  [SYMBOL_FETCH_ABSENT] = "absent",
		[SYMBOL_FETCH_FAILED] = "failed",       [SYMBOL_FETCH_NO_ROOM] = "no room",
	};
	const char *word = item           ? words[item->state]
			   : image->place ? debug_file_place_name(image->place)
					  : "-";

	if (!item && !image->place && image->own == SYMBOL_SYMTAB)
		word = "own";
	outbuf_printf(out, "%-16s ", word);
	symbols_put_id(out, &image->build_id);
	outbuf_char(out, ' ');
	symbols_put_path(out, path_base(image->path));
	if (item && item->state == SYMBOL_FETCH_DOWNLOADED)
		outbuf_printf(out, " (%.1f MiB)", (double)item->bytes / (1 << 20));
	if (item && item->state == SYMBOL_FETCH_NO_SERVER)
		outbuf_str(out, ": no server is allowed for it; name one with --symbol-server or "
				"DEBUGINFOD_URLS");
	if (item && item->state == SYMBOL_FETCH_ABSENT)
		outbuf_str(out, ": no server has it; install it, or name another server with "
				"--symbol-server");
	if (!item && image->stripped)
		outbuf_str(out, ": has no build id, which a download needs");
	outbuf_char(out, '\n');
}

static void symbols_put_pdb(struct outbuf *out, const struct symbol_fetch_item *item)
{
	struct symbols_image image = {.build_id.len = sizeof(item->file.id)};
	AUTO_FREE char *name = strdup(item->file.name);

	image.path = name;
	memcpy(image.build_id.bytes, item->file.id, sizeof(item->file.id));
	if (name)
		symbols_put_fetched(out, &image, item);
}

/*
 * Adds the images that need a download. places[i]: index of the item of image i, plus 1; 0: none.
 */
static int symbols_wanted(const struct symbols_images *images, struct fetch_list *list,
			  size_t *places)
{
	int r = 0;

	for (size_t i = 0; i < images->list.len && !r; i++) {
		const struct symbols_image *image = &images->list.v[i];

		if (!image->stripped || !image->build_id.len)
			continue;
		r = download_missing_add(list, image->path, &image->build_id, &places[i]);
		places[i]++;
	}
	return r;
}

static int symbols_fetch_all(struct symbols_arguments *a, const struct symbols_images *images,
			     const char *recording, bool *failed)
{
	struct symbol_fetch_options how = {.servers = &a->fetch.servers,
					   .connect_ms = SYMBOLS_CONNECT_MS,
					   .retries = SYMBOLS_RETRIES,
					   .until_ns = clock_monotonic_ns() + a->timeout_ns,
					   .again = a->again,
					   .unreachable = true};
	AUTO_FREE size_t *places = calloc(images->list.len + 1, sizeof(*places));
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct debug_cache *cache = NULL;
	struct fetch_list list = {0};
	size_t elf, item; /* elf: number of items for images; PDBs follow them */
	bool got = false;
	int r = places ? symbols_wanted(images, &list, places) : -ENOMEM;

	elf = list.items.len;
	for (size_t i = 0; i < images->pdbs.len && !r; i++)
		r = download_missing_add_pdb(&list, images->pdbs.v[i].name, images->pdbs.v[i].guid,
					     &item);
	if (r)
		log_error("out of memory");
	if (!r)
		r = download_missing_open_cache(&cache, false);
	if (!r)
		r = download_missing_run(cache, &list, &how, a->fetch.quiet);
	for (size_t i = elf; i < list.items.len && !r && !a->fetch.quiet; i++)
		symbols_put_pdb(&out, &list.items.v[i]);
	for (size_t i = 0; i < images->list.len && !r; i++)
		if (!a->fetch.quiet)
			symbols_put_fetched(&out, &images->list.v[i],
					    places[i] ? &list.items.v[places[i] - 1] : NULL);
	for (size_t i = 0; i < list.items.len && !r; i++) {
		*failed |= list.items.v[i].state == SYMBOL_FETCH_FAILED ||
			   list.items.v[i].state == SYMBOL_FETCH_NO_ROOM;
		got |= list.items.v[i].state == SYMBOL_FETCH_DOWNLOADED ||
		       list.items.v[i].state == SYMBOL_FETCH_CACHED;
	}
	if (got && recording && !a->fetch.quiet) {
		AUTO_FREE char *word = shell_word(recording);

		outbuf_printf(&out, "next: profcpu postprocess %s\n", word ? word : "DIR");
	}
	download_missing_list_free(&list);
	debug_cache_free(cache);
	int status = symbols_end(&out, *failed);

	return r ? EXIT_FAILED : status;
}

static int symbols_fetch(struct symbols_arguments *a)
{
	struct symbols_images images = {0};
	const char *recording;
	bool failed;
	int status = EXIT_FAILED;

	if (!download_missing_add_environment_servers(&a->fetch) &&
	    !symbols_gather(a, &images, &recording, &failed))
		status = symbols_fetch_all(a, &images, recording, &failed);
	post_symbols_images_free(&images);
	return status;
}

/* list */

struct symbols_size {
	uint64_t files, bytes;
};

static int symbols_count(void *ctx, const char *key, uint64_t bytes)
{
	struct symbols_size *size = ctx;

	(void)key;
	size->files++;
	size->bytes += bytes;
	return 0;
}

static void symbols_list_json(struct outbuf *out, const struct symbols_images *images,
			      const char *cache, const struct symbols_size *size)
{
	struct json_writer top = json_put_document(out, 2);
	struct json_writer list = json_put_array(&top, "images");
	char hex[2 * BUILD_ID_MAX + 1];

	for (size_t i = 0; i < images->list.len; i++) {
		const struct symbols_image *image = &images->list.v[i];
		struct json_writer w = json_put_object(&list, NULL);

		build_id_hex(&image->build_id, hex);
		json_put_text(&w, "path", image->path);
		json_put_text(&w, "build_id", hex);
		json_put_text(&w, "symbols", symbol_source_name(image->own));
		json_put_text(&w, "debug_file", debug_file_place_name(image->place));
		json_put_text(&w, "debug_path", image->debug_path ? image->debug_path : "");
		json_put_bool(&w, "stripped", image->stripped);
		if (image->recorded) {
			struct json_writer addresses = json_put_object(&w, "addresses");

			json_put_u64(&addresses, "named", image->named);
			json_put_u64(&addresses, "placed", image->placed);
			json_put_u64(&addresses, "unknown", image->unknown);
			json_put_end(&addresses);
		}
		json_put_end(&w);
	}
	json_put_end(&list);
	struct json_writer c = json_put_object(&top, "cache");

	json_put_text(&c, "path", cache);
	json_put_u64(&c, "files", size->files);
	json_put_u64(&c, "bytes", size->bytes);
	json_put_end(&c);
	json_put_end(&top);
}

static void symbols_list_text(struct outbuf *out, const struct symbols_images *images,
			      const char *cache, const struct symbols_size *size)
{
	if (images->list.len)
		outbuf_printf(out, "%-8s %-16s %-40s %7s %7s %7s %s\n", "SYMBOLS", "DEBUG-FILE",
			      "BUILD-ID", "NAMED", "PLACED", "UNKNOWN", "IMAGE");
	for (size_t i = 0; i < images->list.len; i++) {
		const struct symbols_image *image = &images->list.v[i];

		outbuf_printf(out, "%-8s %-16s ", symbol_source_name(image->own),
			      debug_file_place_name(image->place));
		symbols_put_id(out, &image->build_id);
		/* Files and processes have no counts of addresses. */
		if (image->recorded)
			outbuf_printf(out, " %7llu %7llu %7llu", (unsigned long long)image->named,
				      (unsigned long long)image->placed,
				      (unsigned long long)image->unknown);
		else
			outbuf_printf(out, " %7s %7s %7s", "-", "-", "-");
		outbuf_char(out, ' ');
		symbols_put_path(out, image->path);
		outbuf_char(out, '\n');
	}
	outbuf_str(out, "cache: ");
	outbuf_printable(out, cache, strlen(cache), PATH_MAX);
	outbuf_printf(out, ", %llu files, %.1f MiB\n", (unsigned long long)size->files,
		      (double)size->bytes / (1 << 20));
}

static int symbols_list(struct symbols_arguments *a)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	struct symbols_images images = {0};
	struct debug_cache *cache = NULL;
	struct symbols_size size = {0};
	const char *recording;
	bool failed;
	int r = symbols_gather(a, &images, &recording, &failed);

	if (!r && failed && !images.list.len) { /* the errors said all */
		post_symbols_images_free(&images);
		return symbols_end(&out, true);
	}
	/* A missing cache counts as empty. */
	if (!r && !debug_cache_open(&cache))
		r = debug_cache_each(cache, symbols_count, &size);
	if (r)
		log_error("cannot list symbols: %s", strerror(-r));
	else if (a->json)
		symbols_list_json(&out, &images, cache ? debug_cache_path(cache) : "", &size);
	else
		symbols_list_text(&out, &images, cache ? debug_cache_path(cache) : "none", &size);
	debug_cache_free(cache);
	post_symbols_images_free(&images);
	return symbols_end(&out, failed || r);
}

/* verify */

struct symbols_verify {
	struct outbuf out;
	/* Build ids and paths with a line already, because several images can share one. */
	struct intern seen;
	const struct debug_cache *cache;
	struct symbols_images images;
	uint64_t good, bad;
};

/* Whether this path with this build id has no line yet. True also if memory is out. */
static bool symbols_is_new(struct symbols_verify *v, const struct build_id *id, const char *path)
{
	char text[2 * BUILD_ID_MAX + PATH_MAX + 1];
	size_t had = v->seen.len;
	uint32_t known;

	build_id_hex(id, text);
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", path);
	return intern_str(&v->seen, text, &known) || known == had;
}

static void symbols_put_verdict(struct symbols_verify *v, const char *verdict, const char *path,
				const char *what)
{
	outbuf_printf(&v->out, "%-4s ", verdict);
	symbols_put_path(&v->out, path);
	if (what)
		outbuf_printf(&v->out, ": it %s", what);
	outbuf_char(&v->out, '\n');
}

static void symbols_verdict(struct symbols_verify *v, const struct symbol_file *file, int fd,
			    const char *path)
{
	const char *what = "cannot be read";
	int r = symbol_file_check(file, fd, &what);

	*(r ? &v->bad : &v->good) += 1;
	symbols_put_verdict(v, r ? "bad" : "ok", path, r ? what : NULL);
}

static int symbols_verify_cached(void *ctx, const char *key, uint64_t bytes)
{
	struct symbols_verify *v = ctx;
	AUTO_CLOSE int fd = debug_cache_open_key(v->cache, key);
	AUTO_FREE char *path = NULL;
	struct symbol_file file;
	char name[NAME_MAX + 1];

	(void)bytes;
	if (asprintf(&path, "%s/%s", debug_cache_path(v->cache), key) < 0)
		return -ENOMEM;
	if (!symbol_file_of_key(key, &file, name)) {
		symbols_verdict(v, &file, fd, path);
		return 0;
	}
	v->bad++;
	symbols_put_verdict(v, "bad", path, "does not have the name of a debug file");
	return 0;
}

/* Checks a debug file of an image, and closes it. Returns whether it exists. */
static bool symbols_verify_one(struct symbols_verify *v, const struct symbol_file *file,
			       int debug_fd, const char *path)
{
	AUTO_CLOSE int fd = debug_fd;

	if (fd >= 0 && symbols_is_new(v, &file->build_id, path))
		symbols_verdict(v, file, fd, path);
	return fd >= 0;
}

/* Checks the debug files beside an image, and those with its build id in caches of other tools. */
static int symbols_verify_image(struct symbols_verify *v, const struct symbols_image *image)
{
	static const char *const suffixes[] = {".dbg", ".debug"};
	struct symbol_file file = {.kind = SYMBOL_FILE_ELF,
				   .name = path_base(image->path),
				   .build_id = image->build_id};
	bool any = image->place == DEBUG_FILE_INSTALLED;
	char path[PATH_MAX];

	if (!image->build_id.len) {
		if (symbols_is_new(v, &image->build_id, image->path))
			symbols_put_verdict(v, "none", image->path, "has no build id to check");
		return 0;
	}
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(*suffixes) && !image->elsewhere; i++) {
		int fd = -1;

		snprintf(path, sizeof(path), "%s%s", image->path, suffixes[i]);
		if (!post_symbols_images_open(&v->images, image, path, &fd))
			any |= symbols_verify_one(v, &file, fd, path);
	}
	for (enum debug_cache_place place = 0; place < DEBUG_CACHE_PLACES; place++) {
		int fd = debug_cache_open_build_id(place, &image->build_id, path);

		any |= symbols_verify_one(v, &file, fd, path);
	}
	if (image->place == DEBUG_FILE_INSTALLED &&
	    symbols_is_new(v, &image->build_id, image->debug_path)) {
		v->good++;
		symbols_put_verdict(v, "ok", image->debug_path, NULL);
	}
	if (!any && symbols_is_new(v, &image->build_id, image->path))
		symbols_put_verdict(v, "none", image->path, "has no debug file here");
	return 0;
}

static int symbols_verify(struct symbols_arguments *a)
{
	struct symbols_verify v = {.out = outbuf_to(STDOUT_FILENO)};
	struct debug_cache *cache = NULL;
	const char *recording;
	bool failed;
	int r = symbols_gather(a, &v.images, &recording, &failed);

	for (size_t i = 0; i < v.images.list.len && !r; i++)
		r = symbols_verify_image(&v, &v.images.list.v[i]);
	if (!r && !a->nwhat) {
		r = download_missing_open_cache(&cache, false);
		v.cache = cache;
		failed |= r != 0;
		r = r ? 0 : debug_cache_each(cache, symbols_verify_cached, &v);
		if (!r && cache && !v.good && !v.bad)
			log_note("no debug files in %s", debug_cache_path(cache));
	}
	if (r)
		log_error("cannot verify debug files: %s", strerror(-r));
	options_warn_skipped();
	debug_cache_free(cache);
	post_symbols_images_free(&v.images);
	intern_free(&v.seen);
	return symbols_end(&v.out, failed || r || v.bad);
}

enum symbols_option {
	SYMBOLS_SERVER = 256,
	SYMBOLS_TIMEOUT,
	SYMBOLS_AGAIN,
	SYMBOLS_LINES,
	SYMBOLS_JSON,
};

static int symbols_parse_one(struct symbols_arguments *a, int c)
{
	switch (c) {
	case OPTIONS_ALLOW_FS:
		return options_allow_fs(optarg);
	case SYMBOLS_SERVER:
		return download_missing_add_server(&a->fetch, optarg);
	case SYMBOLS_TIMEOUT:
		return options_duration("--timeout", optarg, &a->timeout_ns);
	case SYMBOLS_AGAIN:
		a->again = true;
		return 0;
	case SYMBOLS_LINES:
		a->lines = true;
		return 0;
	case SYMBOLS_JSON:
		a->json = true;
		return 0;
	case 'q':
		a->fetch.quiet = true;
		return 0;
	default:
		return -EINVAL;
	}
}

static const struct symbols_verb {
	const char *name;
	int (*run)(struct symbols_arguments *a);
	bool needs_what;
} symbols_verbs[] = {
	{"fetch", symbols_fetch, true},
	{"list", symbols_list, false},
	{"verify", symbols_verify, false},
};

static int symbols_parse(int argc, char **argv, struct symbols_arguments *a,
			 const struct symbols_verb **ret_verb)
{
	static const struct option longopts[] = {
		{"allow-fs", required_argument, NULL, OPTIONS_ALLOW_FS},
		{"symbol-server", required_argument, NULL, SYMBOLS_SERVER},
		{"timeout", required_argument, NULL, SYMBOLS_TIMEOUT},
		{"again", no_argument, NULL, SYMBOLS_AGAIN},
		{"lines", no_argument, NULL, SYMBOLS_LINES},
		{"json", no_argument, NULL, SYMBOLS_JSON},
		{"quiet", no_argument, NULL, 'q'},
		{0},
	};

	*ret_verb = NULL;
	optind = 0;
	for (int c; (c = options_next(&command_symbols, argc, argv, ":q", longopts)) != -1;)
		if (symbols_parse_one(a, c))
			return -EINVAL;
	const char *word = optind < argc ? argv[optind] : NULL;

	for (size_t i = 0; word && i < sizeof(symbols_verbs) / sizeof(*symbols_verbs); i++)
		if (!strcmp(word, symbols_verbs[i].name))
			*ret_verb = &symbols_verbs[i];
	if (!*ret_verb) {
		log_error("symbols: no command %s%s%s; use fetch, list or verify, for example "
			  "`profcpu symbols fetch DIR`",
			  word ? "'" : "given", word ? word : "", word ? "'" : "");
		return -EINVAL;
	}
	a->what = argv + optind + 1;
	a->nwhat = argc - optind - 1;
	if ((*ret_verb)->needs_what && !a->nwhat) {
		log_error("symbols fetch: no recording, PID or file given; for example `profcpu "
			  "symbols fetch DIR`");
		return -EINVAL;
	}
	for (int i = 0; i < a->nwhat; i++)
		if (options_input(&command_symbols, a->what[i]))
			return -EINVAL;
	return 0;
}

static int symbols_run(int argc, char **argv)
{
	struct symbols_arguments a = {.timeout_ns = SYMBOLS_FETCH_S * NS_PER_S};
	const struct symbols_verb *verb;
	int status = symbols_parse(argc, argv, &a, &verb) ? EXIT_USAGE : verb->run(&a);

	download_missing_options_free(&a.fetch);
	return command_end(status);
}

const struct command command_symbols = {
	.name = "symbols",
	.summary = "fetch, list and verify debug files of libraries without symbols",
	.usage = "usage: profcpu symbols fetch [OPTION...] WHAT...\n"
		 "       profcpu symbols list [--json] [WHAT...]\n"
		 "       profcpu symbols verify [WHAT...]\n"
		 "\n"
		 "WHAT is a recording (DIR, prof.tar.gz, perf.data), a PID, or an ELF file.\n"
		 "\n"
		 "fetch   downloads missing debug files to $XDG_CACHE_HOME/profcpu/symbols; for a\n"
		 "        recording, those of libraries with sampled functions without a name.\n"
		 "        Then `profcpu postprocess` uses them, on any machine\n"
		 "list    prints the symbols of each image, and the size of the cache\n"
		 "verify  opens the debug files of WHAT, or all in the cache, and checks their\n"
		 "        build ids\n"
		 "\n"
		 "Servers of --symbol-server or, without it, DOTNET_SYMBOL_SERVER come first,\n"
		 "then those of DEBUGINFOD_URLS. If neither the option nor DOTNET_SYMBOL_SERVER\n"
		 "is set, Microsoft's server is used, only for files of .NET. An empty\n"
		 "DOTNET_SYMBOL_SERVER means none.\n"
		 "\n"
		 "      --allow-fs TYPE      read files on this type of file system too; repeat\n"
		 "                           it (`profcpu help collect`)\n"
		 "      --symbol-server URL  a symbol server (SSQP); repeat it, or separate\n"
		 "                           several by ;\n"
		 "      --timeout SECONDS    limit for all downloads (600)\n"
		 "      --again              request also files that a server lacked within a day\n"
		 "      --lines              download also the PDBs for the lines of .NET code in\n"
		 "                           a recording; on the machine of the recording\n"
		 "      --json               print JSON\n"
		 "  -q, --quiet              print only errors\n"
		 "\n"
		 "exit status:\n"
		 "  0  done\n"
		 "  1  failed; fetch: a server could not be reached or sent something wrong;\n"
		 "     verify: a debug file is bad\n"
		 "  2  wrong usage\n",
	.run = symbols_run,
};
