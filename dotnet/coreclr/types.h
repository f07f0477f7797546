/*
 * Types of a CoreCLR by their addresses (type handles), and their names in the spelling of the
 * runtime's perf map. Formats: dotnet/runtime, docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef DOTNET_CORECLR_TYPES_H
#define DOTNET_CORECLR_TYPES_H

#include "base/arena.h"
#include "dotnet/coreclr/batch.h"
#include "dotnet/coreclr/modules.h"

#define CLR_TYPES_MAX ((size_t)1 << 20)
#define CLR_TYPE_ARGS_MAX 1024 /* of one type */
#define CLR_TYPE_ARGS_ALL_MAX ((size_t)1 << 22)
#define CLR_TYPE_NAME_MAX ((size_t)16 << 10)   /* bytes; longer names count as unreadable */
#define CLR_TYPE_NAMES_MAX ((size_t)128 << 20) /* bytes of all names ever made */
#define CLR_TYPE_DEPTH_MAX 32                  /* depth of nested types */

enum clr_type_kind {
	CLR_TYPE_UNREAD,  /* unreadable, or a kind without a name */
	CLR_TYPE_DEFINED, /* defined in metadata, with or without type arguments */
	CLR_TYPE_ARRAY,
	CLR_TYPE_POINTER,
	CLR_TYPE_BYREF,
	CLR_TYPE_FUNCTION, /* function pointer */
};

struct clr_type {
	uint64_t handle;
	/*
	 * Flags, class, module, arguments. They show whether the address still holds the same type.
	 */
	uint64_t raw[5];
	enum clr_type_kind kind;
	uint32_t checked_in;       /* scan that last compared raw */
	uint32_t rid;              /* row of its TypeDef */
	uint32_t rank;             /* of an array; 0: one dimension from 0, `[]` */
	uint32_t first_arg, nargs; /* in clr_types.args: type arguments, or the element type */
	uint32_t args_room;        /* capacity at first_arg, kept even if the type changes */
	bool whole;                /* its arguments were read */
	/* Its name is being made. A type that contains itself has no name. */
	bool naming;
	char *name;        /* or NULL */
	uint32_t named_in; /* value of clr_modules_cache.replaced at that time */
};

struct clr_types {
	const struct clr_io *io;
	const struct clr_contract *contract;
	struct clr_modules_cache *modules;
	uint32_t scan;
	VEC(struct clr_type) types;
	VEC(uint64_t) args; /* handles */
	struct hashmap by_handle;
	VEC(uint32_t) wanted; /* for the next clr_types_load */
	struct arena names;
};

/* Requests a type. Any number of requests may precede one clr_types_load. 0, -ENOMEM. */
int clr_types_request(struct clr_types *t, uint64_t handle);

/*
 * Reads the requested types and those they consist of, one level at a time. 0; -ENOMEM; errors of
 * io.
 */
int clr_types_load(struct clr_types *t);

/* A loaded type, borrowed until the next request; or NULL. */
struct clr_type *clr_types_get(const struct clr_types *t, uint64_t handle);

/*
 * The name of a type, as "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]". It
 * lives as long as t. 0; -ENOENT: unavailable; -ENOMEM; errors of io.
 */
int clr_types_name(struct clr_types *t, uint64_t handle, const char **ret_name);

/*
 * The names of a type's arguments, at most CLR_TYPE_ARGS_MAX. *ret_n 0: none. 0; errors of
 * clr_types_name.
 */
int clr_types_arguments(struct clr_types *t, uint64_t handle, const char **names, size_t *ret_n);

void clr_types_free(struct clr_types *t);

#endif
