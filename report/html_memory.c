/* Memory over time as data. */
#include "report/html_panels.h"

void prof_html_put_memory(struct prof_json *json, const struct prof_html_page *page)
{
    const struct prof_memory_timeline *timeline = &page->memory;
    prof_json_object(json, "memory");
    prof_json_known(json, "peak_bytes", timeline->peak_bytes);
    prof_json_known(json, "peak_ns", timeline->peak_ns);
    prof_json_bool(json, "thinned", timeline->thinned);
    prof_json_array(json, "points");
    for (size_t i = 0; i < timeline->count; i++) {
        prof_json_array(json, NULL);
        prof_json_int(json, NULL, timeline->points[i].time_ns);
        prof_json_int(json, NULL, timeline->points[i].bytes);
        prof_json_int(json, NULL, timeline->points[i].peak_bytes);
        prof_json_end(json);
    }
    prof_json_end(json);
    prof_json_end(json);
}
