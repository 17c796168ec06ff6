/* The host's call stacks that the timeline's events have: each once, as a tree of places. */
#ifndef PERFKIT_REPORT_HTML_STACKS_H
#define PERFKIT_REPORT_HTML_STACKS_H

#include "libprof/base/array.h"
#include "libprof/base/json.h"
#include "libprof/base/map.h"
#include "libprof/include/prof_stack.h"

struct prof_html_stacks {
    struct prof_stacks *stacks; /* NULL = the capture has none */
    struct prof_map numbers;    /* stack.id -> number */
    PROF_ARRAY(int64_t) list;   /* stack.id of number 1, 2, ... */
};

/* Close it also after a failure. */
enum prof_status prof_html_stacks_open(struct prof_html_stacks *stacks,
                                       struct prof_capture *capture, struct prof_error *err);
void prof_html_stacks_close(struct prof_html_stacks *stacks);

/* A number for the stack, from 1 on; 0 = none. False: out of memory. */
bool prof_html_stacks_number(struct prof_html_stacks *stacks, int64_t stack, uint32_t *number);

/* "stacks": {"places": [[function, file, line, module, nearness], ...], "nodes": [parent + 1,
 * place, parent
 * + 1, place, ...], "leaves": [node of stack number 1, ...]}; parents stand before their children,
 * 0 = the outermost frame; nearness is enum prof_nearness. False: out of memory. */
bool prof_html_stacks_put(struct prof_json *json, struct prof_html_stacks *stacks);

#endif
