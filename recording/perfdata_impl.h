/*
 * Shared by the parts of perfdata, in the order in which data passes them:
 *   perfdata_input.c, perfdata_unzip.c      records of the file, or of a pipe
 *   perfdata_chunk.c                        the memory that holds them
 *   perfdata_header.c, _feature.c, _name.c  events, host, build ids
 *   perfdata_queue.c                        the order of records by time
 *   perfdata_parse.c                        the fields of a record
 *   perfdata.c                              calls the others, counts samples and losses
 *   perfdata_merge.c                        the files of `perf record --threads`, as one file
 */
#ifndef RECORDING_PERFDATA_IMPL_H
#define RECORDING_PERFDATA_IMPL_H

#include "base/arena.h"
#include "base/hashmap.h"
#include "base/reader.h"
#include "base/vec.h"
#include "recording/perfdata.h"
#include "recording/perfdata_format.h"

#include <zstd.h>

/* Limits on the memory that a file can make the reader use. */
#define PERFDATA_CHUNK_BYTES ((size_t)2 << 20) /* bytes read at once: a huge page */
/* Bytes of the smallest chunk: it must hold a record, the rest of another one and new records. */
#define PERFDATA_CHUNK_LEAST ((size_t)4 * (PERFDATA_RECORD_BYTES_MAX + 1))
/* Without perfdata_limit_memory: held_max, queue_max and the largest window of compression. */
#define PERFDATA_HELD_BYTES_MAX ((size_t)64 << 20)
#define PERFDATA_QUEUE_MAX ((size_t)1 << 20)
#define PERFDATA_WINDOW_LOG_LEAST 23 /* 8 MiB: perf's, up to level 19 of its 22 */
#define PERFDATA_WINDOW_LOG_MOST 27  /* zstd refuses more (ZSTD_WINDOWLOG_LIMIT_DEFAULT) */
/* Names, ids, build ids, bytes of features: at most an eighth of the memory that is left. */
#define PERFDATA_META_BYTES_MAX ((size_t)256 << 20)
#define PERFDATA_META_BYTES_LEAST ((size_t)1 << 20) /* more, also if no memory is left */
#define PERFDATA_ID_BYTES 32                        /* memory for an id in the table of ids */
#define PERFDATA_EVENTS_MAX 16384
#define PERFDATA_IDS_MAX ((size_t)8 << 20)              /* ids of all events */
#define PERFDATA_FEATURE_BYTES_MAX ((uint64_t)64 << 20) /* bytes of a feature section */
#define PERFDATA_BLOCK_BYTES_MAX ((uint64_t)256 << 20)  /* uncompressed bytes of one record */
/* Uncompressed bytes for each compressed one, beyond the first PERFDATA_BLOCK_BYTES_MAX. perf: 10
 */
#define PERFDATA_UNZIP_RATIO_MAX 256
/* Counters of PERF_SAMPLE_READ whose last value is stored. */
#define PERFDATA_COUNTS_MAX ((size_t)1 << 20)

/* A piece of the record stream. It lives until the last record in it was returned. */
struct perfdata_chunk {
	/* NULL: freed to save memory; its records are read again from the file */
	unsigned char *bytes;
	struct perfdata_chunk *next; /* in the list of unused chunks */
	uint64_t file_off;           /* of bytes[0]; only if bytes equal those in the file */
	size_t len, cap;
	uint32_t refs;   /* queued records, plus one while it is filled or parsed */
	bool can_reread; /* its records can be read again from the file */
};

struct perfdata_pool {
	struct perfdata_chunk *unused;
	size_t chunk_bytes; /* size of each chunk */
	size_t held_bytes;  /* bytes of all chunks that have bytes, used or not */
	size_t held_max;    /* above, records are read again or returned early */
};

/* A record in its chunk, not parsed. */
struct perfdata_raw {
	const unsigned char *bytes;   /* aligned to 8 if the type is the kernel's */
	struct perfdata_chunk *chunk; /* the chunk that contains bytes */
	uint64_t file_off;
	uint32_t type, size;
	uint16_t misc;
	bool inner; /* from a compressed record */
};

/* Decompression of COMPRESSED records. One zstd stream spans all of them. */
struct perfdata_unzip {
	ZSTD_DStream *stream;
	int window_log;               /* limit on the stream's window, as a power of 2; 0: zstd's */
	ZSTD_inBuffer in;             /* points into the input's chunk */
	struct perfdata_chunk *chunk; /* output */
	size_t pos;                   /* next record in chunk */
	uint64_t block_off;           /* file offset of the COMPRESSED record */
	uint64_t block_bytes;         /* its uncompressed bytes so far */
	uint64_t packed, unpacked;    /* bytes of all blocks so far */
	bool more;                    /* the block may have more output */
	bool broken;                  /* decompression failed for good */
	bool too_large;               /* a window was larger than the limit */
};

struct perfdata_input {
	int fd;
	bool seekable;
	uint64_t read_off; /* offset of the next read */
	uint64_t end_off;  /* end of the data section; UINT64_MAX: end of the file */
	/*
	 * Offset at which reading will end: end_off, or the size of a shorter file. Only if
	 * seekable.
	 */
	uint64_t stop_off;
	struct perfdata_chunk *chunk; /* the chunk that is being parsed */
	size_t pos;                   /* next record in it */
	struct perfdata_chunk *side;  /* aligned copies of unaligned records */
	uint64_t group_end; /* up to here COMPRESSED2 records lack padding; see perfdata_input.c */
	bool eof;
	struct perfdata_unzip unzip;
};

/* Offsets in bytes of the fields of an event's records that queueing needs; 0: no such field. */
struct perfdata_layout {
	uint16_t time_off;      /* the time in samples, from the record's start */
	uint16_t trailer_bytes; /* size of sample_id at the end of other records */
	uint16_t trailer_time;  /* the time in other records, back from their end */
};

struct perfdata_entry {
	uint64_t time_ns;
	struct perfdata_chunk *chunk;
	uint64_t file_off;
	uint32_t offset; /* offset in the chunk */
	uint32_t size;
};

/*
 * Records that wait for the end of a round, in the order of the file, with the places at which time
 * steps back.
 */
struct perfdata_queue {
	VEC(struct perfdata_entry) entries;
	VEC(struct perfdata_entry) merge_buffer; /* second array for merging */
	VEC(uint32_t) runs;                      /* start of each run of ascending times */
	size_t max;     /* records; above, the older half is returned early */
	size_t at, due; /* entries[at..due) are sorted and can be returned */
	/* Newest time of the previous round: the next FINISHED_ROUND releases records up to it. */
	uint64_t next_flush_ns;
	uint64_t newest_ns;
	uint64_t handed_ns; /* newest time that was returned */
};

/*
 * The members of an event group in a PERF_SAMPLE_READ sample. Each member that moved becomes one
 * record.
 */
struct perfdata_group {
	const uint64_t *values; /* nvalues x {value[, times][, id][, lost]} */
	uint64_t nvalues, at;
	size_t stride;  /* words of one member */
	size_t id_word; /* word of the id, with has_id */
	bool has_id;
};

#define PERFDATA_ID_CACHE 64

struct perfdata {
	struct perfdata_input in;
	struct perfdata_pool pool;
	struct perfdata_queue queue;
	struct arena arena;
	uint64_t meta_left; /* bytes that names, ids, build ids and features may still take */
	VEC(struct perfdata_event) events;
	VEC(struct perfdata_layout) layouts; /* same indices as events */
	struct hashmap ids;                  /* maps event id to index of event */
	struct {
		uint64_t id;
		uint32_t event, used;
	} id_cache[PERFDATA_ID_CACHE];
	/* 1 + the event of samples with an id that no event has; 0: such samples are damaged */
	uint32_t unknown_id_event;
	size_t nids;
	uint16_t id_off;     /* the id in samples, from the start; 0: none */
	uint16_t id_back;    /* the id in other records, from the end; 0: none */
	bool ordered;        /* all events have sample_id_all and times, so rounds can be used */
	bool asks_build_ids; /* an event requests build ids in records of maps */
	size_t nevents_seen; /* events that both of these know */
	VEC(struct perfdata_build_id_entry) build_ids;
	struct perfdata_info info;
	struct perfdata_stats stats;

	struct perfdata_record record; /* the sample whose group members are being returned */
	struct perfdata_group group;
	struct hashmap count_of; /* maps counter id and thread to an index in counts */
	VEC(uint64_t) counts;
	struct perfdata_chunk *held;  /* holds the last returned record */
	unsigned char *reread_buffer; /* a record that was read again from the file */
	bool at_end;                  /* the input ended */
	int end_code;                 /* the reason, with end_error; 0: regular end */
	struct parse_error end_error;
};

/* perfdata_chunk.c */
int perfdata_chunk_get(struct perfdata_pool *pool, struct perfdata_chunk **ret_chunk);
void perfdata_chunk_put(struct perfdata_pool *pool, struct perfdata_chunk *c);
/*
 * Releases a filled chunk. If too much is held and the file still has its bytes, frees the bytes,
 * to be read again later.
 */
void perfdata_chunk_put_filled(struct perfdata_pool *pool, struct perfdata_chunk *c);
void perfdata_pool_free(struct perfdata_pool *pool);

/*
 * perfdata_input.c. 1: *ret_raw is filled; 0: end; -errno, with d->end_error. The record's chunk
 * stays until the next call, without a reference of its own.
 */
int perfdata_input_next(struct perfdata *d, struct perfdata_raw *ret_raw);
/* Skips n bytes after the last record. */
int perfdata_input_skip(struct perfdata *d, uint64_t n);
/* Makes `need` bytes at in->pos available. 1; 0: end; -errno. */
int perfdata_input_fill(struct perfdata *d, size_t need);
void perfdata_input_free(struct perfdata *d);

/* perfdata.c. Skips the payload of an AUXTRACE or HEADER_TRACING_DATA record. 0 or -errno. */
int perfdata_skip_payload(struct perfdata *d, const struct perfdata_raw *raw);

/* perfdata_unzip.c */
void perfdata_unzip_begin(struct perfdata *d, const void *data, size_t len, uint64_t file_off);
int perfdata_unzip_next(struct perfdata *d, struct perfdata_raw *ret_raw);
void perfdata_unzip_free(struct perfdata *d);

/* perfdata_queue.c */
int perfdata_queue_add(struct perfdata *d, const struct perfdata_raw *raw, uint64_t time_ns);
/* Handles a FINISHED_ROUND: the records that it releases become due. */
int perfdata_queue_round(struct perfdata_queue *q);
/* Makes all records due, or only the older half (if too many are held). */
int perfdata_queue_flush(struct perfdata_queue *q, bool half);
/* Removes the returned records. */
void perfdata_queue_compact(struct perfdata_queue *q);
bool perfdata_queue_full(const struct perfdata *d);
void perfdata_queue_free(struct perfdata *d);

/* perfdata_parse.c. 0; -EBADMSG: the content does not fit the size. */
int perfdata_parse(struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		   struct perfdata_record *ret_record);
/* Moves to the next group member that counted something. True: it is in d->record. */
bool perfdata_group_next(struct perfdata *d);
/* Returns the event of a record by its id; -1: the id is unknown or missing. */
int64_t perfdata_event_of(struct perfdata *d, const struct perfdata_raw *raw);
/* Returns the record's time; 0: none. False: the record is too short. */
bool perfdata_time_of(const struct perfdata *d, const struct perfdata_raw *raw, uint32_t event,
		      uint64_t *ret_time_ns);

/* perfdata_header.c */
int perfdata_read_header(struct perfdata *d, struct parse_error *err);
/* Reads a perf_event_attr of any size up to max_bytes, and moves r past it. 0 or -EBADMSG. */
int perfdata_read_attr(struct reader *r, size_t max_bytes, struct perf_event_attr *ret_attr);
/* Adds an event; the arena owns ids. 0, -E2BIG, -ENOMEM. */
int perfdata_add_event(struct perfdata *d, const struct perf_event_attr *attr, const uint64_t *ids,
		       size_t nids);
/* Call this after adding events. */
void perfdata_events_changed(struct perfdata *d);

/*
 * perfdata_feature.c. Reads one feature's content. 0; -EBADMSG: damaged; -ENOENT: unknown; -ENOMEM.
 */
int perfdata_feature(struct perfdata *d, uint64_t feature, const void *data, size_t len);
/* Adds an entry of build ids; len is the whole entry. 0, -EBADMSG, -E2BIG, -ENOMEM. */
int perfdata_add_build_id(struct perfdata *d, const void *data, size_t len);
/* Whether the content of a feature is used. */
bool perfdata_feature_is_read(uint64_t feature);
/* Takes bytes of meta_left. False: too few are left. */
bool perfdata_meta_take(struct perfdata *d, uint64_t bytes);
/* Returns a copy that is valid as long as d; NULL: out of memory, or the limit is reached. */
char *perfdata_text(struct perfdata *d, const char *s, size_t len);
void *perfdata_meta_alloc(struct perfdata *d, size_t size);

/* perfdata_name.c. Writes perf's name for an event without a name in the file, NUL-terminated. */
void perfdata_default_name(const struct perf_event_attr *attr, char *buf, size_t cap);

#endif
