/* Prints the full form of each managed name on stdin, one per line. Tests use it to compare names
 * of several sources. */
#include "symbols/names/managed_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	struct outbuf out = outbuf_to(STDOUT_FILENO);
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;

	while ((n = getline(&line, &cap, stdin)) > 0) {
		managed_name_full(line, (size_t)n - (line[n - 1] == '\n'), &out, NULL, NULL);
		outbuf_char(&out, '\n');
	}
	free(line);
	return outbuf_close(&out) ? 1 : 0;
}
