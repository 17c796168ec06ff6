/* The definition stream of a spool: local ids to rows; names, stacks, Python code.
 * For the ingest's files only, see ingest_private.h. */
#ifndef PERFKIT_STORE_INGEST_DEFINE_H
#define PERFKIT_STORE_INGEST_DEFINE_H

#include <sqlite3.h>

#include "libprof/store/ingest_spool.h"
#include "libprof/store/ingest_stack.h"

struct prof_ingest;

/* ingest_define.c */
enum prof_status ingest_definition(struct prof_ingest *ingest, struct ingest_spool *spool,
                                   const struct wire_head *head);
/* From a row of load_configs (ingest_state.c): known again, not written again. */
enum prof_status ingest_config_restore(struct prof_ingest *ingest, sqlite3_stmt *row);
int64_t ingest_string_row(struct prof_ingest *ingest, const char *text, size_t length);
const struct ingest_local *ingest_lookup(const struct ingest_spool *spool, uint32_t local,
                                         uint32_t kind);
int64_t ingest_global(const struct ingest_spool *spool, uint32_t local, uint32_t kind);
bool ingest_set_local(struct ingest_spool *spool, uint32_t local, uint32_t kind, int64_t global,
                      uint32_t extra);
struct ingest_thread *ingest_thread_of(struct prof_ingest *ingest, struct ingest_spool *spool,
                                       uint32_t tid);
/* The thread's row, made with `name` (or NULL) when it has none; 0 = failed. */
int64_t ingest_thread_row(struct prof_ingest *ingest, int64_t process, uint32_t tid,
                          const char *name, bool *is_new);
enum prof_status ingest_thread_rows_load(struct prof_ingest *ingest);
struct ingest_clock *ingest_clock_of(struct ingest_spool *spool, uint32_t id, bool make);
enum prof_status ingest_clocks_finish(struct prof_ingest *ingest, struct ingest_spool *spool);

/* The text of a local string id, from the store; NULL = none. Free it. For definitions that want
 * text: they are few. */
char *ingest_text_of(struct prof_ingest *ingest, const struct ingest_spool *spool, uint32_t local);

/* The same, bound. */
void ingest_bind_local_text(struct prof_ingest *ingest, const struct ingest_spool *spool,
                            sqlite3_stmt *sql, int at, uint32_t local);
/* stack.id of a spool's stack; 0 = none, or its definition was lost. */
int64_t ingest_stack_of(const struct ingest_spool *spool, uint32_t local);
/* Remember what a local id stands for, in memory and in the store. */
enum prof_status ingest_define_local(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint32_t local, uint32_t kind, int64_t global, uint32_t extra);

/* ingest_name.c */
enum prof_status ingest_name(struct prof_ingest *ingest, struct ingest_spool *spool,
                             const struct wire_name *name);
enum prof_status ingest_handle(struct prof_ingest *ingest, struct ingest_spool *spool,
                               const struct wire_handle *handle);
/* An object of the program has a row: a name that waits for it becomes its own. `object` is the
 * number of a device or context, or ingest_stream_object(). */
enum prof_status ingest_object(struct prof_ingest *ingest, struct ingest_spool *spool,
                               enum wire_named kind, uint64_t object, int64_t row);
static inline uint64_t ingest_stream_object(uint64_t context, uint64_t stream)
{
    return context << 32 | (uint32_t)stream;
}
/* The handle that the name's object had, as a record; false when the object is not known by one. */
bool ingest_handle_of(const struct ingest_unclaimed *unclaimed, struct wire_handle *handle);
enum prof_status ingest_handles_load(struct prof_ingest *ingest, struct ingest_spool *spool);
enum prof_status ingest_names_finish(struct prof_ingest *ingest, struct ingest_spool *spool);
/* The name a thread gave itself, when it is not that of its process; false = none. */
bool ingest_comm(struct prof_ingest *ingest, struct ingest_spool *spool, uint32_t tid,
                 char name[16]);
/* Look once more at threads that had no name of their own when they were first seen. */
enum prof_status ingest_threads_look(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     bool last);

/* ingest_python.c */
enum prof_status ingest_python_code(struct prof_ingest *ingest, struct ingest_spool *spool,
                                    const struct wire_python_code *code);
enum prof_status ingest_python_load(struct prof_ingest *ingest, struct ingest_spool *spool);
/* A stack's entry of kind WIRE_ENTRY_PYTHON. False = failed. */
enum prof_status ingest_python_entry(struct prof_ingest *ingest, struct ingest_spool *spool,
                                     uint64_t value, struct ingest_entry *entry);
void ingest_python_free(struct ingest_spool *spool);

/* ingest_stack.c */
enum prof_status ingest_stacks_load(struct prof_ingest *ingest);
void ingest_stacks_free(struct prof_ingest *ingest);

#endif
