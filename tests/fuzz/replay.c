/* Runs a fuzz target over files and folders of inputs, without libFuzzer, so that the corpus is a
 * plain test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long inputs;

static int replay_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t len = 0, cap = 0, n;

	if (!f)
		return -1;
	do {
		if (len == cap) {
			cap = cap ? cap * 2 : 65536;
			uint8_t *more = realloc(data, cap);

			if (!more)
				abort();
			data = more;
		}
		n = fread(data + len, 1, cap - len, f);
		len += n;
	} while (n);
	fclose(f);
	/* An exact allocation, so that an overread is visible. */
	uint8_t *exact = malloc(len ? len : 1);

	if (!exact)
		abort();
	for (size_t i = 0; i < len; i++)
		exact[i] = data[i];
	free(data);
	LLVMFuzzerTestOneInput(exact, len);
	free(exact);
	inputs++;
	return 0;
}

static int replay_path(const char *path)
{
	struct stat st;
	struct dirent *e;

	if (stat(path, &st))
		return -1;
	if (!S_ISDIR(st.st_mode))
		return replay_file(path);
	DIR *d = opendir(path);

	if (!d)
		return -1;
	while ((e = readdir(d))) {
		char sub[4096];

		if (e->d_name[0] == '.')
			continue;
		snprintf(sub, sizeof(sub), "%s/%s", path, e->d_name);
		if (replay_path(sub)) {
			closedir(d);
			return -1;
		}
	}
	closedir(d);
	return 0;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (replay_path(argv[i])) {
			perror(argv[i]);
			return 1;
		}
	}
	printf("%lu inputs replayed\n", inputs);
	return inputs ? 0 : 1;
}
