/* See ceiling_folder.h. The user's data, not the cache: measuring again takes a quiet machine. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/ceiling_folder.h"

bool ceiling_folder(char out[PATH_MAX])
{
    const struct {
        const char *variable, *below;
    } places[] = {{CEILING_FOLDER_VARIABLE, ""},
                  {"XDG_DATA_HOME", "/perfkit/ceilings"},
                  {"HOME", "/.local/share/perfkit/ceilings"}};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const char *value = getenv(places[i].variable);
        if (!value || !*value)
            continue;
        int length = snprintf(out, PATH_MAX, "%s%s", value, places[i].below);
        return length > 0 && length < PATH_MAX;
    }
    return false;
}

bool ceiling_folder_make(const char *folder)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s", folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0777);
        *slash = '/';
    }
    return (mkdir(path, 0777) == 0 || errno == EEXIST) && access(path, W_OK | X_OK) == 0;
}
