/* A core that records in memory instead of in a spool: the harness of the NVTX unit tests. Same
 * contract as collectors/core/collector.h, no files, no environment. A forked child starts with a
 * new, empty "spool" at its first event, as the real core does. */
#ifndef PERFKIT_TESTS_NVTX_FAKE_H
#define PERFKIT_TESTS_NVTX_FAKE_H

#include <stddef.h>
#include <stdint.h>

#include "libprof/wire/wire.h"

#define FAKE_MAX_RECORDS 200000u

struct fake_record {
    uint32_t tid;
    union {
        struct wire_head head;
        struct wire_range range;
        struct wire_range_end end;
        struct wire_work work;
        struct wire_field field;
        struct wire_name name;
        struct wire_health health;
    };
};

void fake_reset(void);
size_t fake_count(void);
const struct fake_record *fake_at(size_t i);
/* The i-th record of one type, NULL when there are fewer. */
const struct fake_record *fake_nth(enum wire_type type, size_t i);
size_t fake_type_count(enum wire_type type);
uint64_t fake_counter(enum wire_count which);
const char *fake_text(uint32_t id, size_t *length); /* "" and length 0 for id 0 */
size_t fake_strings(void);                          /* distinct texts defined in this spool */
void fake_trace(int nvtx);                          /* what collector_traces says */
void fake_refuse(int refuse);                       /* collector_active says no */
void fake_close(int close);        /* collector_recording says no */
struct control_page;
void fake_pause(const struct control_page *page); /* what collector_pause says while closed */
void fake_options(const char *text); /* what collector_option finds; with one: closed at first */
int fake_windows(void);              /* capture ranges that are open */
int fake_births(void);                              /* spools made in this process */
void fake_exit(void);

#endif
