/* Captures and the files of other tools: written for them, and read from them. */
#ifndef PERFKIT_STORE_EXCHANGE_H
#define PERFKIT_STORE_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "libprof/base/error.h"

/* Called every now and then with the rows written (export) or events read (import) so far. False
 * stops: the call then returns PROF_INVALID and leaves nothing behind. */
typedef bool prof_exchange_progress(void *user, uint64_t done);

struct prof_exchange_options {
    bool overwrite; /* replace an existing file; never a capture that is being recorded */
    prof_exchange_progress *progress; /* NULL = none */
    void *user;
};

/* What became of the rows. Notes are sentences for people, owned by the result. */
struct prof_exchange_result {
    uint64_t rows; /* events written */
    char **notes;  /* what the other shape, or the source, could not hold */
    int note_count;
};

/* Write the capture at `path` as an SQLite file with the tables and columns of an Nsight Systems
 * export, schema 3.25. The file appears under its name only when it is whole. Kinds that have no
 * table there, and rows without the times that its columns demand, are left out and reported in the
 * notes. Sources of the schema: NVIDIA's reference of the SQLite export, and files of versions
 * 2025.3 to 2026.2. Errors: those of prof_store_open; PROF_EXISTS; PROF_IO, PROF_FULL while
 * writing. */
enum prof_status prof_export_nsys(const char *path, const char *output,
                                  const struct prof_exchange_options *options,
                                  struct prof_exchange_result *result, struct prof_error *err);

/* Write each table of the capture at `path` as a Parquet file of its name into the folder `output`
 * (docs/guide/parquet.md). Where the capture has the number of a string stands its text, events
 * carry their kernel's name, process, rank and device; text that is not UTF-8 is escaped and
 * reported in the notes. Tables without rows are files without rows. The folder appears under its
 * name only when it is whole; with `overwrite` it replaces one that holds nothing but Parquet
 * files. Memory is bounded whatever the size of the capture. Errors as above. */
enum prof_status prof_export_parquet(const char *path, const char *output,
                                     const struct prof_exchange_options *options,
                                     struct prof_exchange_result *result, struct prof_error *err);

/* Make a capture at `output` from the file at `path`: an SQLite export of Nsight Systems
 * (schema 3.20 to 3.28), or a Chrome trace (of torch.profiler, or any other), as JSON or gzipped
 * JSON; recognised by the file's first bytes. The capture appears under its name only when it
 * is whole. Memory is bounded whatever the size of the file; room for a copy is needed in the
 * folder of `output` meanwhile. Errors: PROF_NOTFOUND, PROF_FORMAT not a file of these;
 * PROF_VERSION an unknown schema; PROF_CORRUPT damaged or cut short, with the byte or the table;
 * PROF_EXISTS; PROF_FULL; PROF_UNSUPPORTED built without the JSON parser. */
enum prof_status prof_import(const char *path, const char *output,
                             const struct prof_exchange_options *options,
                             struct prof_exchange_result *result, struct prof_error *err);

void prof_exchange_result_free(struct prof_exchange_result *result);

#endif
