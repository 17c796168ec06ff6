/* Names of files and their parts. */
#ifndef PERFKIT_BASE_PATH_H
#define PERFKIT_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Does `name` end with `ending`, and have more in front of it? */
static inline bool prof_ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), tail = strlen(ending);
    return length > tail && !strcmp(name + length - tail, ending);
}

/* What is behind the last '/'; the whole where there is none. */
static inline const char *prof_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

#endif
