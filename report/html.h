/* The parts of the HTML report: the files of its page, embedded at build time, and its data. */
#ifndef PERFKIT_REPORT_HTML_H
#define PERFKIT_REPORT_HTML_H

#include <stddef.h>

#include "libprof/base/json.h"
#include "report/data.h"
#include "report/html_pack.h"

struct prof_html_file {
    const char
        *name; /* "page.html", "style.css", "base.js" ... in the order they are put together */
    const unsigned char *bytes;
    size_t length;
};

/* Ended by one without a name. */
extern const struct prof_html_file prof_html_files[];

/* Events of the timeline in the page; more are merged. A page of so many has 10 to 20 MB. */
#define PROF_HTML_EVENTS 2000000

/* The timeline's lines (memory, counters): a member of its head, their points behind the events. */
enum prof_status prof_html_put_lines(struct prof_json *json, struct prof_html_pack *pack,
                                     const struct prof_report_data *data, struct prof_error *err);

/* The timeline: what the page says of it at once as a member of the open object of `json`, the events
 * into `pack`. */
enum prof_status prof_html_put_timeline(struct prof_json *json, struct prof_html_pack *pack,
                                        const struct prof_report_data *data,
                                        const struct prof_report_options *options,
                                        struct prof_error *err);

#endif
