/* A profiler that notes its start in the file PROFILER_FILE. All its methods return S_OK, and the
 * objects that runtimes request are itself. */
#include <stdio.h>
#include <stdlib.h>

static long note(const char *what)
{
	FILE *f = fopen(getenv("PROFILER_FILE"), "a");

	if (f) {
		fprintf(f, "%s\n", what);
		fclose(f);
	}
	return 0;
}
static long ok(void)
{
	return 0;
}
static unsigned count(void)
{
	return 1;
}
static void *object[1], *vtable[128];
static long query(void *self, const void *iid, void **ret)
{
	(void)iid;
	*ret = self;
	return 0;
}
static long create(void *self, void *outer, const void *iid, void **ret)
{
	(void)outer;
	(void)iid;
	*ret = self;
	return note("created");
}

/* A class factory and a profiler share these slots: QueryInterface, AddRef, Release, then
 * CreateInstance or Initialize. */
static void *factory[1], *factory_vtable[5];
static long create_profiler(void *self, void *outer, const void *iid, void **ret)
{
	(void)self;
	return create(object, outer, iid, ret);
}
long DllGetClassObject(const void *clsid, const void *iid, void **ret)
{
	(void)clsid;
	(void)iid;
	for (int i = 0; i < 128; i++)
		vtable[i] = (void *)ok;
	vtable[0] = (void *)query;
	vtable[1] = vtable[2] = (void *)count;
	object[0] = vtable;
	factory_vtable[0] = (void *)query;
	factory_vtable[1] = factory_vtable[2] = (void *)count;
	factory_vtable[3] = (void *)create_profiler;
	factory_vtable[4] = (void *)ok;
	factory[0] = factory_vtable;
	*ret = factory;
	return note("loaded");
}
