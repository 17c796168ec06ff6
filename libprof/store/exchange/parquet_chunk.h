/* The values of one column in one row group, until they are written: how they are encoded. */
#ifndef PERFKIT_STORE_EXCHANGE_PARQUET_CHUNK_H
#define PERFKIT_STORE_EXCHANGE_PARQUET_CHUNK_H

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "libprof/store/exchange/parquet.h"

typedef PROF_ARRAY(unsigned char) parquet_bytes;

/* A run in a buffer. */
struct parquet_span {
    size_t offset, length;
};

/* Least and greatest of the values; for text where they stand in the buffer it is kept in. */
struct parquet_bounds {
    bool any, unordered; /* unordered: a NaN, so that neither can be told */
    int64_t least_int, most_int;
    double least_double, most_double;
    struct parquet_span least, most;
};

struct parquet_chunk {
    parquet_bytes defined; /* a byte a row: 1 = it has a value; required columns too */
    size_t values;
    parquet_bytes plain;          /* PLAIN; not of keyed columns */
    parquet_bytes dictionary;     /* PLAIN, each different value once */
    PROF_ARRAY(uint32_t) indices; /* into the dictionary */
    uint32_t entries;
    struct prof_map known; /* of a value's bits, or its key, to its index */
    bool no_dictionary;    /* too many different values so far in the file */
    int64_t key;           /* the next value's, where key_is_set */
    bool key_is_set;
    struct parquet_bounds bounds;
    bool failed; /* out of memory */
};

void chunk_null(struct parquet_chunk *chunk);
void chunk_int(struct parquet_chunk *chunk, int64_t value);
void chunk_double(struct parquet_chunk *chunk, double value);
void chunk_text(struct parquet_chunk *chunk, const char *text, size_t length);
bool chunk_by_key(struct parquet_chunk *chunk, int64_t key);

/* Memory that the values take. */
size_t chunk_bytes(const struct parquet_chunk *chunk);

/* Is the dictionary what to write? */
bool chunk_has_dictionary(const struct parquet_chunk *chunk);

/* The row group is full: gives up a dictionary that would not save anything. */
void chunk_finish(struct parquet_chunk *chunk, bool keyed);

/* Appends a data page's body: definition levels unless `required`, then the values. False: out of
 * memory. */
bool chunk_page(struct parquet_chunk *chunk, bool required, parquet_bytes *out);

/* Least and greatest value as statistics hold them (PLAIN, text without its length); false where
 * there are none, or they are too long to be of use. The pointers are into the chunk. */
bool chunk_bounds(const struct parquet_chunk *chunk, enum parquet_type type, const void **least,
                  size_t *least_length, const void **most, size_t *most_length);

void chunk_clear(struct parquet_chunk *chunk); /* for the next row group */
void chunk_free(struct parquet_chunk *chunk);

#endif
