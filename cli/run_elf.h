/* What the file of the target's command tells about how it can be followed. */
#ifndef PERFKIT_CLI_RUN_ELF_H
#define PERFKIT_CLI_RUN_ELF_H

#include <limits.h>
#include <stdbool.h>

struct elf_facts {
    char path[PATH_MAX]; /* the file looked at: the command, or the interpreter of a script */
    bool found;          /* there is such a file */
    bool elf;            /* it is an ELF program of any kind */
    bool foreign;        /* of another word size, machine or C library than perfkit */
    bool dynamic;        /* has a program interpreter: LD_PRELOAD works */
    bool privileged;     /* set-user-id, set-group-id or file capabilities would take effect */
    char sanitizer[64];  /* the sanitizer library it needs first, "" = none */
};

/* `command` as execvp would find it; scripts are followed for one #! line. */
void elf_examine(const char *command, struct elf_facts *facts);

#endif
