/* `perfkit --generate FOLDER`: writes the man pages and the shell completions, run by the build. It
 * is part of the command itself because the tables are, and so the pages cannot fall behind. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "cli/generate.h"

static FILE *open_in(const char *folder, const char *below, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, below);
    if (mkdir(path, 0777) < 0 && errno != EEXIST)
        goto failed;
    snprintf(path, sizeof path, "%s/%s/%s", folder, below, name);
    FILE *out = fopen(path, "we");
    if (out)
        return out;
failed:
    cli_say("--generate", "cannot write %s: %m", path);
    return NULL;
}

static bool write_man(const char *folder, const struct cli_command *command)
{
    char name[64];
    snprintf(name, sizeof name, "perfkit%s%s.1", command ? "-" : "", command ? command->name : "");
    FILE *out = open_in(folder, "man1", name);
    if (!out)
        return false;
    generate_man(out, command);
    return fclose(out) == 0;
}

int cli_generate(const char *folder)
{
    static const struct {
        const char *below, *name;
        void (*write)(FILE *out);
    } shells[] = {
        {"bash", "perfkit", generate_bash},
        {"zsh", "_perfkit", generate_zsh},
        {"fish", "perfkit.fish", generate_fish},
    };
    if (mkdir(folder, 0777) < 0 && errno != EEXIST) {
        cli_say("--generate", "cannot make %s: %m", folder);
        return CLI_FAILED;
    }
    bool ok = write_man(folder, NULL);
    for (const struct cli_command *const *c = cli_commands(); *c && ok; c++)
        ok = write_man(folder, *c);
    for (size_t i = 0; i < sizeof shells / sizeof shells[0] && ok; i++) {
        FILE *out = open_in(folder, shells[i].below, shells[i].name);
        if (!out)
            return CLI_FAILED;
        shells[i].write(out);
        ok = fclose(out) == 0;
    }
    return ok ? CLI_OK : CLI_FAILED;
}
