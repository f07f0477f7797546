/* Inside of the perf.data reader: what its files share. Nobody else includes this. */
#ifndef RECORDING_PERFDATA_IMPL_H
#define RECORDING_PERFDATA_IMPL_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/reader.h"
#include "base/vec.h"
#include "recording/perfdata.h"
#include "recording/perfdata_format.h"

#include <zstd.h>

/* Limits on what a file can make the reader hold. */
#define PERFDATA_CHUNK_BYTES ((size_t)1 << 20) /* read at once */
#define PERFDATA_HELD_BYTES_MAX                                                                   \
	((size_t)64 << 20) /* chunks in memory; above, records are read again or handed out early \
			    */
#define PERFDATA_QUEUE_MAX \
	((size_t)1         \
	 << 20) /* records that wait for their turn; above, the older half goes out early */
#define PERFDATA_META_BYTES_MAX ((size_t)256 << 20) /* names, ids, build ids */
#define PERFDATA_EVENTS_MAX 16384
#define PERFDATA_IDS_MAX ((size_t)8 << 20)              /* of all events */
#define PERFDATA_FEATURE_BYTES_MAX ((uint64_t)64 << 20) /* of one feature section */
#define PERFDATA_BLOCK_BYTES_MAX ((uint64_t)256 << 20)  /* what one compressed record may hold */
#define PERFDATA_COUNTS_MAX \
	((size_t)1 << 20) /* counters of PERF_SAMPLE_READ whose last value is remembered */

/* A piece of the record stream. Records point into it, so it lives until the last of them was
 * handed out. */
struct perfdata_chunk {
	unsigned char *
		bytes; /* NULL: given up to save memory; the records are read again from the file */
	struct perfdata_chunk *next; /* in the list of unused ones */
	uint64_t file_off; /* of bytes[0]; only of chunks with bytes as they are in the file */
	size_t len, cap;
	uint32_t refs; /* records in the queue, plus one for whoever fills or reads it */
	bool again;    /* its records can be read again from the file */
};

struct perfdata_pool {
	struct perfdata_chunk *unused;
	size_t chunk_bytes; /* size of each chunk */
	size_t held_bytes;  /* of all chunks that have bytes, used or not */
};

/* A record where it lies. */
struct perfdata_raw {
	const unsigned char *bytes;   /* aligned to 8 for records of the kernel's types */
	struct perfdata_chunk *chunk; /* that holds bytes */
	uint64_t file_off;
	uint32_t type, size;
	uint16_t misc;
	bool inner; /* out of a compressed record */
};

/* Decompression of one COMPRESSED record at a time; the stream goes on from record to record. */
struct perfdata_unzip {
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;             /* points into the input's chunk */
	struct perfdata_chunk *chunk; /* output */
	size_t pos;                   /* next record in it */
	uint64_t block_off;           /* file offset of the COMPRESSED record */
	uint64_t block_bytes;         /* produced from it so far */
	bool more;                    /* the block may have more output */
	bool broken;                  /* nothing can be decompressed any more */
};

struct perfdata_input {
	int fd;
	bool seekable;
	uint64_t read_off; /* what is read next */
	uint64_t end_off;  /* end of the data section; UINT64_MAX: end of the file */
	uint64_t stop_off; /* where reading will end: end_off, or the size of a shorter file;
			      seekable only */
	struct perfdata_chunk *chunk; /* being parsed */
	size_t pos;                   /* next record in it */
	struct perfdata_chunk *side;  /* copies of records that lie unaligned */
	uint64_t group_end; /* up to here COMPRESSED2 records are packed, see perfdata_input.c */
	bool eof;
	struct perfdata_unzip unzip;
};

/* Where an event's records have what queueing needs; computed once. Offsets in bytes; 0: not there.
 */
struct perfdata_layout {
	uint16_t time_off;      /* in samples, from the record's start */
	uint16_t trailer_bytes; /* of sample_id at the end of other records */
	uint16_t trailer_time;  /* from the end of other records back to the time */
};

struct perfdata_entry {
	uint64_t time_ns;
	struct perfdata_chunk *chunk;
	uint64_t file_off;
	uint32_t offset; /* in the chunk */
	uint32_t size;
};

/* Records that wait for the end of a round, in order of the file, with the places where time steps
 * back. */
struct perfdata_queue {
	VEC(struct perfdata_entry) entries;
	VEC(struct perfdata_entry) spare; /* the other half of merging */
	VEC(uint32_t) runs;               /* where a run of ascending times begins */
	size_t at, due;                   /* entries[at..due) are sorted and handed out now */
	uint64_t
		next_flush_ns; /* newest time of the round before: what a FINISHED_ROUND lets out */
	uint64_t newest_ns;
	uint64_t handed_ns; /* newest time handed out */
};

/* The members of a group that a sample of PERF_SAMPLE_READ counts for, each handed out as one
 * record. */
struct perfdata_group {
	const uint64_t *values; /* nvalues x {value[, times][, id][, lost]} */
	uint64_t nvalues, at;
	size_t stride;  /* words of one */
	size_t id_word; /* where its id is, with has_id */
	bool has_id;
};

#define PERFDATA_ID_CACHE 64

struct perfdata {
	struct perfdata_input in;
	struct perfdata_pool pool;
	struct perfdata_queue queue;
	struct arena arena;
	VEC(struct perfdata_event) events;
	VEC(struct perfdata_layout) layouts; /* of the same index */
	struct hashmap ids;                  /* event id -> index of event */
	struct {
		uint64_t id;
		uint32_t event, used;
	} id_cache[PERFDATA_ID_CACHE];
	uint32_t stranger; /* 1 + the event of samples with an id that no event has; 0: they are damaged */
	size_t nids;
	uint16_t id_off;  /* in samples, from the start; 0: none */
	uint16_t id_back; /* in other records, from the end; 0: none */
	bool ordered;     /* all events have sample_id_all and times, so rounds mean something */
	VEC(struct perfdata_build_id_entry) build_ids;
	struct perfdata_info info;
	struct perfdata_stats stats;

	struct perfdata_record record; /* of which group members are still due */
	struct perfdata_group group;
	struct hashmap count_of; /* counter id and thread -> index into counts */
	VEC(uint64_t) counts;
	struct perfdata_chunk *held; /* holds the record handed out last */
	unsigned char *again;        /* a record read again from the file */
	bool at_end;                 /* of the input */
	int end_code;                /* why, with end_error; 0: regular */
	struct parse_error end_error;
};

/* perfdata_chunk.c */
int perfdata_chunk_get(struct perfdata_pool *pool, struct perfdata_chunk **ret_chunk);
void perfdata_chunk_put(struct perfdata_pool *pool, struct perfdata_chunk *c);
/* Puts a chunk that was filled; when too much is held, and the file has its bytes, only the right
 * to read them again stays. */
void perfdata_chunk_put_filled(struct perfdata_pool *pool, struct perfdata_chunk *c);
void perfdata_pool_free(struct perfdata_pool *pool);

/* perfdata_input.c: 1: *ret_raw is filled; 0: end; -errno, with d->end_error. The record's chunk
 * has no reference of its own; it stays until the next call. */
int perfdata_input_next(struct perfdata *d, struct perfdata_raw *ret_raw);
/* Skips n bytes behind the record that came last. */
int perfdata_input_skip(struct perfdata *d, uint64_t n);
/* Makes `need` bytes at in->pos available. 1, 0 at the end, -errno. */
int perfdata_input_fill(struct perfdata *d, size_t need);
void perfdata_input_free(struct perfdata *d);

/* perfdata_unzip.c */
void perfdata_unzip_begin(struct perfdata *d, const void *data, size_t len, uint64_t file_off);
int perfdata_unzip_next(struct perfdata *d, struct perfdata_raw *ret_raw);
void perfdata_unzip_free(struct perfdata *d);

/* perfdata_queue.c */
int perfdata_queue_add(struct perfdata *d, const struct perfdata_raw *raw, uint64_t time_ns);
/* A round is finished: what its rule lets out becomes due. */
int perfdata_queue_round(struct perfdata_queue *q);
/* Everything becomes due, or (too much is held) the older half. */
int perfdata_queue_flush(struct perfdata_queue *q, bool half);
/* Takes away what was handed out. */
void perfdata_queue_compact(struct perfdata_queue *q);
bool perfdata_queue_full(const struct perfdata *d);
void perfdata_queue_free(struct perfdata *d);

/* perfdata_parse.c: 0, or -EBADMSG when the content does not fit the size. */
int perfdata_parse(struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		   struct perfdata_record *ret_record);
/* Goes to the group's next member that counted something. True: d->record is it. */
bool perfdata_group_next(struct perfdata *d);
/* The event of a record, by its id; -1: the id is not known or not there. */
int64_t perfdata_event_of(struct perfdata *d, const struct perfdata_raw *raw);
/* The record's time; 0: none. False: the record is too short. */
bool perfdata_time_of(const struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		      uint64_t *ret_time_ns);

/* perfdata_header.c */
int perfdata_read_header(struct perfdata *d, struct parse_error *err);
/* A perf_event_attr of any size at r, at most max_bytes long; also moves r behind it. 0 or
 * -EBADMSG. */
int perfdata_read_attr(struct reader *r, size_t max_bytes, struct perf_event_attr *ret_attr);
/* Adds an event; ids are owned by the arena. 0, -E2BIG, -ENOMEM. */
int perfdata_add_event(struct perfdata *d, const struct perf_event_attr *attr, const uint64_t *ids,
		       size_t nids);
/* To be called when events were added. */
void perfdata_events_changed(struct perfdata *d);

/* perfdata_feature.c: takes in one feature's content. 0; -EBADMSG damaged; -ENOENT not known;
 * -ENOMEM. */
int perfdata_feature(struct perfdata *d, uint64_t feature, const void *data, size_t len);
/* One entry of build ids; len is the whole entry. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int perfdata_add_build_id(struct perfdata *d, const void *data, size_t len);
/* A copy that lives as long as d, NULL when memory or the limit is out. */
char *perfdata_text(struct perfdata *d, const char *s, size_t len);
void *perfdata_meta_alloc(struct perfdata *d, size_t size);

/* perfdata_name.c: perf's name of an event that has none in the file, NUL-terminated into buf. */
void perfdata_default_name(const struct perf_event_attr *attr, char *buf, size_t cap);

#endif
