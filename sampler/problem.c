#include "sampler/problem.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

int sampler_fail(struct sampler_problem *problem, int code, const char *what, const char *format,
		 ...)
{
	va_list args;

	if (!problem)
		return code;
	problem->code = code;
	problem->what = what;
	va_start(args, format);
	vsnprintf(problem->detail, sizeof(problem->detail), format, args);
	va_end(args);
	for (char *p = problem->detail; *p; p++)
		if ((unsigned char)*p < ' ')
			*p = '?';
	return code;
}
