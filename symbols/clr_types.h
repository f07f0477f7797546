/*
 * The types of a CoreCLR by their addresses (type handles), and their names as the runtime's perf map spells them.
 * dotnet/runtime docs/design/datacontracts/RuntimeTypeSystem.md.
 */
#ifndef SYMBOLS_CLR_TYPES_H
#define SYMBOLS_CLR_TYPES_H

#include "base/arena.h"
#include "symbols/clr_batch.h"
#include "symbols/clr_modules.h"

#define CLR_TYPES_MAX ((size_t)1 << 20)
#define CLR_TYPE_ARGS_MAX 1024 /* of one type */
#define CLR_TYPE_ARGS_ALL_MAX ((size_t)1 << 22)
#define CLR_TYPE_NAME_MAX ((size_t)16 << 10) /* bytes; longer ones are as good as unreadable */
#define CLR_TYPE_NAMES_MAX ((size_t)128 << 20) /* bytes of all names that were ever made */
#define CLR_TYPE_DEPTH_MAX 32 /* of types in each other */

enum clr_type_kind {
	CLR_TYPE_UNREAD, /* cannot be read, or is of a kind without a name */
	CLR_TYPE_DEFINED, /* of a module's metadata, with type arguments or without */
	CLR_TYPE_ARRAY,
	CLR_TYPE_POINTER,
	CLR_TYPE_BYREF,
	CLR_TYPE_FUNCTION, /* a pointer to a function */
};

struct clr_type {
	uint64_t handle;
	uint64_t raw[5]; /* flags, class, module, arguments: whether the address is still the same type's */
	enum clr_type_kind kind;
	uint32_t looked_at; /* the scan in which that was compared */
	uint32_t rid; /* of its TypeDef */
	uint32_t rank; /* of an array; 0: with bounds from 0, `[]` */
	uint32_t first_arg, nargs; /* in clr_types.args: type arguments, or the one element type */
	uint32_t args_room; /* there from first_arg on, for this type whatever it becomes */
	bool whole; /* its arguments were read */
	bool naming; /* its name is being made: of a type that is in itself there is none */
	char *name; /* or NULL */
	uint32_t named_in; /* what clr_modules_cache.replaced was then */
};

struct clr_types {
	const struct clr_io *io;
	const struct clr_contract *contract;
	struct clr_modules_cache *modules;
	uint32_t scan;
	VEC(struct clr_type) types;
	VEC(uint64_t) args; /* handles */
	struct hashmap by_handle;
	VEC(uint32_t) wanted; /* to be read by the next clr_types_load */
	struct arena names;
};

/* Asks for a type, at any number of handles before one clr_types_load. 0, -ENOMEM. */
int clr_types_want(struct clr_types *t, uint64_t handle);

/* Reads what was asked for and what those types consist of, a level of them at a time. 0; -ENOMEM; errors of io. */
int clr_types_load(struct clr_types *t);

/* A type that was loaded, borrowed until the next want; or NULL. */
struct clr_type *clr_types_get(const struct clr_types *t, uint64_t handle);

/* The type's name, "System.Collections.Generic.Dictionary`2[System.__Canon,System.Int32]". 0 and a text that lives as long as t; -ENOENT
 * it cannot be had; -ENOMEM; errors of io. */
int clr_types_name(struct clr_types *t, uint64_t handle, const char **ret_name);

/* The names of a type's arguments, at most CLR_TYPE_ARGS_MAX. 0, *ret_n 0 where it has none; errors of clr_types_name. */
int clr_types_arguments(struct clr_types *t, uint64_t handle, const char **names, size_t *ret_n);

void clr_types_free(struct clr_types *t);

#endif
