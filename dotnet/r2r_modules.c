#include "dotnet/r2r_modules.h"

#include "base/cleanup.h"
#include "base/file.h"
#include "container/holes.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define MODULE_FILE_NAME_MAX 512
#define MVID_BYTES 16
/* Higher than all numbers in signatures. */
#define CORE_LIBRARY_NUMBER (R2R_OWN_MODULE - 1)

int r2r_modules_init(struct r2r_modules *m, const struct pe *pe, const struct r2r_header *h,
		     struct r2r_component *components, size_t ncomponents,
		     const struct r2r_assembly_opener *beside)
{
	struct pe_range mvids = r2r_header_section(h, R2R_MANIFEST_MVIDS);
	struct pe_cli cli;
	int error;

	*m = (struct r2r_modules){
		.pe = *pe, .components = components, .ncomponents = ncomponents, .beside = *beside};
	m->manifest = r2r_header_section(h, R2R_MANIFEST_METADATA);
	m->pe.file.fd = fcntl(pe->file.fd, F_DUPFD_CLOEXEC, 0);
	if (m->pe.file.fd < 0)
		return -errno;
	if (!h->composite) {
		error = pe_cli(pe, pe->directories[PE_CLI], &cli, NULL);
		if (error)
			return error;
		m->own = cli.metadata;
	}
	error = pe_read(pe, mvids, R2R_HEADER_COMPONENTS_MAX * MVID_BYTES, &m->mvids, NULL);
	m->nmvids = error ? 0 : mvids.bytes / MVID_BYTES;
	return error == -ENOMEM ? error : 0;
}

void r2r_modules_free(struct r2r_modules *m)
{
	for (size_t i = 0; i < m->modules.len; i++) {
		clr_metadata_free(m->modules.v[i].metadata);
		free(m->modules.v[i].data);
		free(m->modules.v[i].name);
	}
	vec_free(&m->modules);
	hashmap_free(&m->by_number);
	free(m->components);
	free(m->mvids);
	if (m->pe.file.fd >= 0)
		close(m->pe.file.fd);
	*m = (struct r2r_modules){.pe.file.fd = -1};
}

/* Reads metadata from an image. 0; -ENOENT: none, or not readable; -ENOMEM. */
static int read_metadata(struct r2r_modules *m, const struct pe *pe, struct pe_range range,
			 struct r2r_module *module)
{
	/* No memory helps then. */
	if (range.bytes > R2R_MODULES_METADATA_BYTES_MAX ||
	    range.bytes > R2R_MODULES_BYTES_MAX - m->bytes ||
	    pe_range_at(pe, range.rva, range.bytes).bytes != range.bytes ||
	    holes_is_sparse(pe->file.fd))
		return -ENOENT;
	while (!pe_has_memory(range.bytes))
		if (!m->beside.make_room || !m->beside.make_room(m->beside.ctx))
			return -ENOENT;
	int error = range.bytes ? pe_read(pe, range, R2R_MODULES_METADATA_BYTES_MAX, &module->data,
					  NULL)
				: -ENOENT;

	if (!error)
		error = clr_metadata_open(module->data, range.bytes, &module->metadata, NULL);
	if (!error)
		m->bytes += range.bytes;
	return error && error != -ENOMEM ? -ENOENT : error;
}

/* Reads the metadata of another assembly from its own file. */
static int read_beside(struct r2r_modules *m, struct r2r_module *module)
{
	AUTO_CLOSE int fd = -1;
	char name[MODULE_FILE_NAME_MAX];
	struct pe_file file;
	struct pe_cli cli;
	struct pe pe;

	/* Reject names that are paths. */
	if (!m->beside.open || strchr(module->name, '/') ||
	    strlen(module->name) + sizeof(".dll") > sizeof(name))
		return -ENOENT;
	strcpy(stpcpy(name, module->name), ".dll");
	int error = m->beside.open(m->beside.ctx, name, &file);

	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	fd = file.fd;
	error = pe_open(&file, &pe, NULL);
	if (!error)
		error = pe_cli(&pe, pe.directories[PE_CLI], &cli, NULL);
	if (error)
		return error == -ENOMEM ? error : -ENOENT;
	error = read_metadata(m, &pe, cli.metadata, module);
	const char *assembly = error ? NULL : clr_metadata_assembly(module->metadata);

	return error || (assembly && !strcmp(assembly, module->name)) ? error : -ENOENT;
}

/* Whether the metadata has the MVID that a row of the image's manifest requires. */
static bool is_same_build(const struct r2r_modules *m, uint32_t row,
			  const struct clr_metadata *metadata)
{
	static const unsigned char unknown[MVID_BYTES];
	const unsigned char *mvid = clr_metadata_mvid(metadata);
	const unsigned char *wanted =
		row - 1 < m->nmvids ? m->mvids + (row - 1) * MVID_BYTES : unknown;

	return !memcmp(wanted, unknown, MVID_BYTES) || (mvid && !memcmp(wanted, mvid, MVID_BYTES));
}

static int add_module(struct r2r_modules *m, uint32_t number, struct r2r_module *module)
{
	int error = vec_reserve(&m->modules, 1)
			    ? -ENOMEM
			    : hashmap_put(&m->by_number, number, (uint32_t)m->modules.len);

	if (!error) {
		m->modules.v[m->modules.len++] = *module;
		return 0;
	}
	clr_metadata_free(module->metadata);
	free(module->data);
	free(module->name);
	return error;
}

/*
 * Finds an assembly by name: one read before under another number, or its file. row: row in the
 * manifest; 0: none.
 */
static int read_named(struct r2r_modules *m, uint32_t number, const char *name, uint32_t row)
{
	struct r2r_module module = {0};

	for (size_t i = 0; i < m->modules.len; i++)
		if (m->modules.v[i].name && !strcmp(m->modules.v[i].name, name))
			return hashmap_put(&m->by_number, number, (uint32_t)i);
	module.name = strdup(name);
	if (!module.name)
		return -ENOMEM;
	int error = read_beside(m, &module);

	if (!error && row && !is_same_build(m, row, module.metadata))
		error = -ENOENT;
	if (error) {
		clr_metadata_free(module.metadata);
		free(module.data);
		module.metadata = NULL;
		module.data = NULL;
	}
	if (error == -ENOMEM) {
		free(module.name);
		return error;
	}
	return add_module(m, number, &module);
}

/* Reads metadata that the image itself holds. */
static int read_inside(struct r2r_modules *m, uint32_t number, struct pe_range range)
{
	struct r2r_module module = {0};
	int error = m->pe.file.fd >= 0 ? read_metadata(m, &m->pe, range, &module) : -ENOENT;

	if (error) {
		free(module.data);
		module.data = NULL;
	}
	return error == -ENOMEM ? error : add_module(m, number, &module);
}

/* Reads an assembly whose metadata a composite image embeds. */
static int read_embedded(struct r2r_modules *m, uint32_t number,
			 const struct r2r_component *component)
{
	struct pe_cli cli;
	int error = pe_cli(&m->pe, component->cli, &cli, NULL);

	return error == -ENOMEM
		       ? error
		       : read_inside(m, number, error ? (struct pe_range){0} : cli.metadata);
}

static const struct clr_metadata *known_metadata(const struct r2r_modules *m, uint32_t number)
{
	const uint32_t *known = hashmap_get(&m->by_number, number);

	return known ? m->modules.v[*known].metadata : NULL;
}

/* Number of the manifest. It follows the assemblies that the image's own metadata refers to. */
static uint32_t manifest_number(const struct r2r_modules *m)
{
	const struct clr_metadata *own = known_metadata(m, R2R_OWN_MODULE);

	return (own ? clr_metadata_rows(own, CLR_ASSEMBLY_REF) : 0) + 1;
}

/*
 * Reads the image's own metadata once, then closes the file. Many open images so need no
 * descriptors.
 */
static int read_own(struct r2r_modules *m)
{
	int error = read_inside(m, R2R_OWN_MODULE, m->own);
	bool embedded = false;

	if (!error)
		error = read_inside(m, manifest_number(m), m->manifest);
	for (size_t i = 0; i < m->ncomponents; i++)
		embedded |= m->components[i].cli.bytes > 0;
	if (!error && !embedded) {
		close(m->pe.file.fd);
		m->pe.file.fd = -1;
	}
	return error;
}

/*
 * Reads an assembly that the image's own metadata refers to, or, for higher numbers, the manifest.
 */
static int read_reference(struct r2r_modules *m, uint32_t number)
{
	const struct clr_metadata *own = known_metadata(m, R2R_OWN_MODULE), *manifest;
	uint32_t at = manifest_number(m);
	const char *name;
	int error;

	if (number < at) {
		error = clr_metadata_assembly_ref(own, number, &name);
		return error ? error : read_named(m, number, name, 0);
	}
	manifest = known_metadata(m, at);
	error = manifest ? clr_metadata_assembly_ref(manifest, number - at, &name) : -ENOENT;
	return error ? error : read_named(m, number, name, number - at);
}

static int read_module(struct r2r_modules *m, uint32_t number)
{
	uint32_t component = number - R2R_MODULES_FIRST_COMPONENT;

	if (number == R2R_OWN_MODULE)
		return -ENOENT;
	if (number == CORE_LIBRARY_NUMBER)
		return read_named(m, number, R2R_MODULES_CORE_LIBRARY, 0);
	if (component < m->ncomponents && m->components[component].cli.bytes)
		return read_embedded(m, number, &m->components[component]);
	return read_reference(m, number);
}

int r2r_modules_metadata(struct r2r_modules *m, uint32_t number,
			 const struct clr_metadata **ret_metadata)
{
	const struct clr_metadata *metadata;
	int error = m->modules.len ? 0 : read_own(m);

	if (!number)
		number = R2R_OWN_MODULE;
	if (!error && !hashmap_get(&m->by_number, number))
		error = read_module(m, number);
	metadata = error ? NULL : known_metadata(m, number);
	if (error == -ENOMEM || !metadata)
		return error == -ENOMEM ? error : -ENOENT;
	*ret_metadata = metadata;
	return 0;
}

int r2r_modules_core_library(struct r2r_modules *m, const struct clr_metadata **ret_metadata)
{
	return r2r_modules_metadata(m, CORE_LIBRARY_NUMBER, ret_metadata);
}
