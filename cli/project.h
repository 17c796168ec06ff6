/* Files of the project that this folder belongs to. */
#ifndef PERFKIT_CLI_PROJECT_H
#define PERFKIT_CLI_PROJECT_H

#include <stdbool.h>
#include <stddef.h>

/* The path of `name` in this folder or, where there is a project (a folder with .git above), in the
 * nearest one up to it: "../../name". False: there is none. */
bool project_find(const char *name, char *out, size_t size);

#endif
