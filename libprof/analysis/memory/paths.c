/* The words of call paths: "main (train.c:80) > step > clCreateBuffer". */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/memory/profile.h"

#define SEPARATOR " > "
#define DEPTH 256
#define WORD 512 /* bytes of one part's name at most; longer ones are cut */

/* Writes the node's name into `out`, WORD bytes; returns its length. */
static size_t name_of(const struct prof_flame_node *node, char *out)
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
};

static bool append(struct text *text, const char *what, size_t length)
{
    if (!prof_array_reserve(&text->bytes, length))
        return false;
    memcpy(text->bytes.data + text->bytes.count, what, length);
    text->bytes.count += length;
    return true;
}

/* With the NUL. */
static bool append_path(struct text *text, const struct prof_flame *tree, uint32_t at)
{
    uint32_t path[DEPTH];
    char word[WORD];
    size_t depth = path_to(tree, at, path);
    bool ok = depth || append(text, "unknown", strlen("unknown"));
    for (size_t i = 0; ok && i < depth; i++) {
        size_t length = name_of(&tree->nodes[path[i]], word);
        ok = (!i || append(text, SEPARATOR, strlen(SEPARATOR))) && append(text, word, length);
    }
    return ok && append(text, "", 1);
}

/* The innermost frame whose line is known, else the node itself. */
static uint32_t place_of(const struct prof_flame *tree, uint32_t at)
{
    for (uint32_t node = at; node; node = tree->nodes[node].parent) {
        const struct prof_frame *frame = tree->nodes[node].frame;
        if (frame && frame->file && frame->line != PROF_UNKNOWN)
            return node;
    }
    return at;
}

static bool append_name(struct text *text, const struct prof_flame *tree, uint32_t at)
{
    char word[WORD] = "unknown";
    uint32_t place = place_of(tree, at);
    size_t length = place ? name_of(&tree->nodes[place], word) : strlen(word);
    return append(text, word, length + 1);
}

/* Texts move while they grow: first offsets, then addresses. */
bool memory_write_paths(struct prof_memory_profile *result)
{
    struct text text = {0};
    size_t *starts = calloc(2 * result->site_count + 1, sizeof *starts);
    bool ok = starts && append(&text, "", 1);
    for (size_t i = 0; ok && i < result->site_count; i++) {
        starts[2 * i] = text.bytes.count;
        ok = append_path(&text, &result->tree, result->sites[i].node);
        starts[2 * i + 1] = text.bytes.count;
        ok = ok && append_name(&text, &result->tree, result->sites[i].node);
    }
    for (size_t i = 0; ok && i < result->site_count; i++) {
        result->sites[i].path = text.bytes.data + starts[2 * i];
        result->sites[i].name = text.bytes.data + starts[2 * i + 1];
    }
    free(starts);
    result->texts = text.bytes.data;
    return ok;
}
