/* The words of call paths: "main (train.c:80) > step > clCreateBuffer". */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/call_tree.h"
#include "libprof/analysis/memory/profile.h"
#include "libprof/base/utf8.h"
#include "libprof/include/prof_memory.h"

#define SEPARATOR " > "
#define DEPTH 256
#define WORD 512 /* bytes of one part's name at most; longer ones are cut */

/* Writes the node's name into `out`, WORD bytes; returns its length. */
static size_t write_node_name(const struct prof_flame_node *node, char *out)
{
    size_t length;
    if (node->frame) {
        length = prof_frame_text(node->frame, out, WORD);
    } else {
        const char *name = node->name ? node->name : "unknown";
        length = strlen(name);
        size_t kept = length < WORD ? length : WORD - 1;
        memcpy(out, name, kept);
        out[kept] = 0;
    }
    return length < WORD ? length : WORD - 1;
}

/* Nodes from the root's child down to `at`; returns how many, at most DEPTH innermost ones. */
static size_t path_to(const struct prof_flame *tree, uint32_t at, uint32_t path[DEPTH])
{
    size_t depth = 0, count;
    for (uint32_t node = at; node && depth < DEPTH; node = tree->nodes[node].parent)
        path[depth++] = node;
    count = depth;
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t other = path[i];
        path[i] = path[count - 1 - i];
        path[count - 1 - i] = other;
    }
    return count;
}

struct text {
    PROF_ARRAY(char) bytes;
    const struct prof_launch_wrappers *wrappers; /* of allocations */
};

static bool append_path_text(struct text *text, const char *what, size_t length)
{
    return prof_array_append(&text->bytes, what, length);
}

static bool append_words(struct text *text, const char *words)
{
    return append_path_text(text, words, strlen(words));
}

static bool append_node(struct text *text, const struct prof_flame *tree, uint32_t node,
                        const char *before)
{
    char word[WORD];
    size_t length = write_node_name(&tree->nodes[node], word);
    return append_words(text, before) && append_path_text(text, word, length);
}

/* With the NUL. */
static bool append_path(struct text *text, const struct prof_flame *tree, uint32_t at)
{
    uint32_t path[DEPTH];
    size_t depth = path_to(tree, at, path);
    bool ok = depth || append_words(text, "unknown");
    for (size_t i = 0; ok && i < depth; i++)
        ok = append_node(text, tree, path[i], i ? SEPARATOR : "");
    return ok && append_path_text(text, "", 1);
}

/* Of the frames that are nearest to the person who reads and have a line the one that distinguishes
 * callers, else the node itself. */
static uint32_t shown_path_node(const struct text *text, const struct prof_flame *tree, uint32_t at)
{
    uint32_t nodes[DEPTH], numbers[DEPTH];
    size_t count = 0;
    enum prof_nearness nearest = PROF_NEAR_OWN_NAME;
    for (uint32_t node = at; node && count < DEPTH; node = tree->nodes[node].parent) {
        const struct prof_frame *frame = tree->nodes[node].frame;
        enum prof_nearness near = frame ? prof_frame_nearness(frame) : PROF_NEAR_RUNTIME;
        if (near < nearest) {
            nearest = near;
            count = 0;
        }
        if (near == nearest && near < PROF_NEAR_OWN_NAME) {
            nodes[count] = node;
            numbers[count++] = frame->number;
        }
    }
    return count ? nodes[prof_launch_wrappers_skip(text->wrappers, numbers, count)] : at;
}

#define CALLERS 3
#define BRIEF_RANGES 2 /* innermost ones: modules of PyTorch nest by the dozen */
#define BRIEF_CELLS 40 /* of a function's name */

/* Does the frame stand for the place `first`? One that is as near; without lines (NULL) every frame
 * but those of runtimes. */
static bool is_shown_frame(const struct prof_frame *frame, const struct prof_frame *first)
{
    enum prof_nearness near = prof_frame_nearness(frame);
    return first ? near == prof_frame_nearness(first) : near != PROF_NEAR_RUNTIME;
}

static bool append_frame(struct text *text, const struct prof_frame *place, const char *before)
{
    struct prof_frame frame = *place;
    char word[WORD], *name = prof_report_fit(place->function, BRIEF_CELLS);
    if (!name)
        return false;
    frame.function = name;
    size_t length = prof_frame_text(&frame, word, sizeof word);
    free(name);
    return append_words(text, before) &&
           append_path_text(text, word, length < sizeof word ? length : sizeof word - 1);
}

/* The code of a whole Python file calls everything in it. */
static bool is_whole_file(const struct prof_frame *frame)
{
    return frame->kind == PROF_FRAME_PYTHON && !strcmp(frame->function, "<module>");
}

static bool append_ranges(struct text *text, const struct prof_flame *tree, const uint32_t *path,
                          size_t depth)
{
    size_t count = 0, at = 0;
    bool ok = true;
    for (size_t i = 0; i < depth; i++)
        count += tree->nodes[path[i]].kind == PROF_FLAME_RANGE;
    for (size_t i = 0; ok && i < depth; i++) {
        if (tree->nodes[path[i]].kind != PROF_FLAME_RANGE || count - at++ > BRIEF_RANGES)
            continue;
        bool first = count <= BRIEF_RANGES ? at == 1 : count - at == BRIEF_RANGES - 1;
        ok = append_node(text, tree, path[i],
                         !first                 ? SEPARATOR
                         : count > BRIEF_RANGES ? " in ..." SEPARATOR
                                                : " in ");
    }
    return ok;
}

/* The place and its callers that are as near; the frame that called the API where that is another;
 * the ranges. */
static bool append_brief(struct text *text, const struct prof_flame *tree, uint32_t at)
{
    uint32_t path[DEPTH], place = shown_path_node(text, tree, at);
    size_t depth = path_to(tree, at, path), frames = 0;
    const struct prof_frame *first = place ? tree->nodes[place].frame : NULL;
    uint32_t inner = 0;
    bool ok = true, reached = !first;
    for (size_t i = depth; ok && i-- > 0;) {
        const struct prof_frame *frame = tree->nodes[path[i]].frame;
        if (frame && !inner && is_shown_frame(frame, NULL))
            inner = path[i];
        reached |= path[i] == place;
        if (frame && reached && frames < CALLERS && is_shown_frame(frame, first) &&
            !(frames && is_whole_file(frame)))
            ok = append_frame(text, frame, frames++ ? " < " : "");
    }
    if (!frames)
        return append_path(text, tree, at);
    if (ok && first && inner && inner != place)
        ok = append_frame(text, tree->nodes[inner].frame, " via ");
    return ok && append_ranges(text, tree, path, depth) && append_path_text(text, "", 1);
}

static bool append_node_name(struct text *text, const struct prof_flame *tree, uint32_t at)
{
    char word[WORD] = "unknown";
    uint32_t place = shown_path_node(text, tree, at);
    size_t length = place ? write_node_name(&tree->nodes[place], word) : strlen(word);
    return append_path_text(text, word, length + 1);
}

/* Texts move while they grow: first offsets, then addresses. Of each site its path and its name,
 * then of each failure its path. */
static bool append_all(struct text *text, const struct prof_memory_profile *result,
                       const uint32_t *nodes, size_t *starts)
{
    bool ok = append_path_text(text, "", 1);
    for (size_t i = 0; ok && i < result->site_count; i++) {
        *starts++ = text->bytes.count;
        ok = append_path(text, &result->tree, result->sites[i].node);
        *starts++ = text->bytes.count;
        ok = ok && append_node_name(text, &result->tree, result->sites[i].node);
        *starts++ = text->bytes.count;
        ok = ok && append_brief(text, &result->tree, result->sites[i].node);
    }
    for (size_t i = 0; ok && i < result->failure_count; i++) {
        *starts++ = text->bytes.count;
        ok = append_path(text, &result->tree, nodes[i]);
        *starts++ = text->bytes.count;
        ok = ok && append_brief(text, &result->tree, nodes[i]);
    }
    return ok;
}

bool memory_write_paths(struct prof_memory_profile *result, const uint32_t *nodes,
                        const struct prof_launch_wrappers *wrappers)
{
    struct text text = {.wrappers = wrappers};
    PROF_FREED size_t *starts =
        calloc(3 * result->site_count + 2 * result->failure_count + 1, sizeof *starts);
    const size_t *at = starts;
    bool ok = starts && append_all(&text, result, nodes, starts);
    for (size_t i = 0; ok && i < result->site_count; i++) {
        result->sites[i].path = text.bytes.data + *at++;
        result->sites[i].name = text.bytes.data + *at++;
        result->sites[i].brief = text.bytes.data + *at++;
    }
    for (size_t i = 0; ok && i < result->failure_count; i++) {
        result->failures[i].path = text.bytes.data + *at++;
        result->failures[i].brief = text.bytes.data + *at++;
    }
    result->texts = text.bytes.data;
    return ok;
}

/* ---- flame graphs ---------------------------------------------------------------------------- */

/* Flame graphs by every weight; those of allocations are made here, of the memory profile: call
 * paths, then the kind of memory. What a path holds of several kinds stands side by side: their
 * peaks are at different moments. */

/* The path's nodes come first and weigh nothing themselves; each site is a leaf behind them. */
static bool hang_sites(const struct prof_memory_profile *profile, enum prof_flame_weight weight,
                       struct prof_flame *result)
{
    size_t paths = profile->tree.count;
    result->nodes = calloc(paths + profile->site_count + 1, sizeof *result->nodes);
    if (!result->nodes)
        return false;
    for (size_t i = 0; i < paths; i++) {
        result->nodes[i] = profile->tree.nodes[i];
        result->nodes[i].self = result->nodes[i].total = 0;
        result->nodes[i].bytes = result->nodes[i].count = 0;
    }
    result->count = paths;
    for (size_t i = 0; i < profile->site_count; i++) {
        const struct prof_memory_site *site = &profile->sites[i];
        bool held = weight == PROF_FLAME_HELD;
        result->nodes[result->count++] = (struct prof_flame_node){
            .parent = site->node,
            .kind = PROF_FLAME_MEMORY,
            .name = site->kind_text,
            .self = held ? site->use.held_bytes : site->use.bytes,
            .count = held ? site->use.held_count : site->use.count,
            .bytes = site->use.bytes,
        };
    }
    return true;
}

static enum prof_status memory_flame(struct prof_capture *capture, const struct prof_filter *filter,
                                     enum prof_flame_weight weight, struct prof_flame *result,
                                     struct prof_error *err)
{
    struct prof_memory_profile profile;
    *result = (struct prof_flame){0};
    enum prof_status status = prof_memory_profile(capture, filter, &profile, err);
    if (!status && !profile.why_none && !hang_sites(&profile, weight, result))
        status = prof_out_of_memory(err);
    if (!status)
        prof_flame_sum(result);
    prof_memory_profile_free(&profile);
    return status;
}

enum prof_status prof_flame(struct prof_capture *capture, const struct prof_filter *filter,
                            enum prof_flame_weight weight, struct prof_flame *result,
                            struct prof_error *err)
{
    if (weight == PROF_FLAME_HELD || weight == PROF_FLAME_ALLOCATED)
        return memory_flame(capture, filter, weight, result, err);
    if (weight == PROF_FLAME_CPU || weight == PROF_FLAME_BLOCKED)
        return prof_cpu_flame(capture, filter, weight, result, err);
    return prof_flame_of_work(capture, filter, weight, true, result, err);
}
