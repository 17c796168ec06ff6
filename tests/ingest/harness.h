/* Runs a piece of code as a target process with the collector's core linked in, and an ingest
 * beside it, as `perfkit run` does. */
#ifndef PERFKIT_TESTS_INGEST_HARNESS_H
#define PERFKIT_TESTS_INGEST_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "collectors/core/collector.h"
#include "libprof/store/ingest.h"

struct run {
    char folder[64];    /* private, removed by run_done */
    char directory[80]; /* spool directory */
    char capture[96];   /* capture file */
    pid_t target;
    int wait_status;
    const struct prof_ingest_ring *ring; /* NULL = all rows stay; set after run_prepare */
};

/* Make the folders and the environment. */
void run_prepare(struct run *run, const char *options);

/* Fork the target: it calls body(argument) and returns from it by exit(0) through collector_end. */
void run_start(struct run *run, void (*body)(void *), void *argument);

/* Ingest until the target is gone, then finish and publish. `pause_us` between steps. */
void run_ingest(struct run *run, unsigned pause_us);

/* In the target: for 100 ms, and until the reader has begun to look, and has looked, once more. */
void run_await_reader(void);

/* One integer out of the finished capture. */
int64_t run_number(const struct run *run, const char *sql);
/* One text; static buffer; "" for NULL. */
const char *run_text(const struct run *run, const char *sql);

void run_done(struct run *run);

/* Of a test with one `run`: a target that runs body(argument), ingested. */
#define CASE_AGAIN(body, argument)                                                                 \
    run_prepare(&run, NULL);                                                                       \
    run_start(&run, body, argument);                                                               \
    run_ingest(&run, 1000)
#define CASE_OF(body, argument)                                                                    \
    struct run run;                                                                                \
    CASE_AGAIN(body, argument)
#define CASE(body) CASE_OF(body, NULL)
#define NUMBER(sql) run_number(&run, sql)
#define LAUNCH(item) "SELECT value FROM capture_health WHERE subject='launch' AND item='" item "'"

/* Records of tests */
void emit_mark(uint64_t payload, uint32_t message);
void emit_call(uint64_t correlation, uint64_t start, uint64_t end, uint32_t name,
               enum wire_expects expects, enum wire_class klass);
/* The same, with a stack. */
void emit_call_from(uint64_t correlation, uint64_t start, uint64_t end, uint32_t name,
                    enum wire_expects expects, enum wire_class klass, uint32_t stack);
/* Entries innermost first. */
void define_stack(uint32_t id, const uint64_t *entries, uint32_t count, uint8_t flags);
void define_module(const char *path, const char *build_id, uint64_t address, uint64_t bytes);
/* A kernel with the call that launched it. */
void emit_launch(uint64_t correlation, uint64_t at, uint32_t stream, uint32_t config);
uint32_t define_stream(uint32_t clock);
uint32_t define_config(const char *name, uint32_t grid, uint32_t block);

#endif
