/* See range_groups.h. */
#include "libprof/analysis/range_groups.h"

uint32_t prof_range_group_of(void *user, const struct prof_event_row *row)
{
    struct prof_range_groups *groups = user;
    uint32_t name = prof_texts_number(&groups->texts, groups->capture, row->name);
    uint32_t domain = prof_texts_number(&groups->texts, groups->capture, row->domain);
    if (name == PROF_NO_GROUP || domain == PROF_NO_GROUP)
        return PROF_NO_GROUP;
    enum prof_range_style style =
        row->depth == PROF_UNKNOWN ? PROF_RANGE_START_END : PROF_RANGE_PUSH_POP;
    bool fresh;
    uint64_t key = (uint64_t)name << 32 | (uint64_t)domain << 1 | (uint64_t)style;
    uint32_t number = prof_group_number(&groups->by_key, key, &fresh);
    if (fresh && number != PROF_NO_GROUP) {
        struct prof_range_group *group = prof_array_add(&groups->list);
        if (!group)
            return PROF_NO_GROUP;
        *group = (struct prof_range_group){groups->texts.list.data[name],
                                           groups->texts.list.data[domain], style};
    }
    return number;
}

void prof_range_groups_free(struct prof_range_groups *groups)
{
    prof_array_free(&groups->list);
    prof_map_free(&groups->by_key);
    prof_texts_free(&groups->texts);
}
