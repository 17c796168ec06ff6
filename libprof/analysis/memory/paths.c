/* The words of call paths: "train > step > clCreateBuffer". */
#include <stdlib.h>
#include <string.h>

#include "libprof/analysis/memory/profile.h"

#define SEPARATOR " > "
#define DEPTH 256

static const char *name_of(const struct prof_flame_node *node)
{
    return node->name ? node->name : "unknown";
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

/* Writes at `out` unless that is NULL; returns the bytes with the NUL. */
static size_t write_path(const struct prof_flame *tree, uint32_t at, char *out)
{
    uint32_t path[DEPTH];
    static const char none[] = "unknown";
    size_t depth = path_to(tree, at, path), used = 0;
    if (!depth) {
        if (out)
            memcpy(out, none, sizeof none);
        return sizeof none;
    }
    for (size_t i = 0; i < depth; i++) {
        const char *parts[] = {i ? SEPARATOR : "", name_of(&tree->nodes[path[i]])};
        for (int k = 0; k < 2; k++) {
            size_t length = strlen(parts[k]);
            if (out)
                memcpy(out + used, parts[k], length);
            used += length;
        }
    }
    if (out)
        out[used] = 0;
    return used + 1;
}

bool memory_write_paths(struct prof_memory_profile *result)
{
    size_t bytes = 1;
    for (size_t i = 0; i < result->site_count; i++)
        bytes += write_path(&result->tree, result->sites[i].node, NULL);
    result->texts = malloc(bytes);
    if (!result->texts)
        return false;
    char *at = result->texts;
    for (size_t i = 0; i < result->site_count; i++) {
        struct prof_memory_site *site = &result->sites[i];
        size_t length = write_path(&result->tree, site->node, at);
        site->path = at;
        site->name = site->node ? name_of(&result->tree.nodes[site->node]) : "unknown";
        at += length;
    }
    return true;
}
