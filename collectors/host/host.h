/* What the files of the host part share. Everything here may run in a signal handler, in a forked
 * child of a threaded program and in a vfork child, which borrows its parent's memory: no locks,
 * no heap, no state changed but counters. */
#ifndef PERFKIT_COLLECTORS_HOST_HOST_H
#define PERFKIT_COLLECTORS_HOST_HOST_H

#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define HOST_EXPORT __attribute__((visibility("default")))

/* The functions behind ours, found when the library is loaded, because dlsym takes locks; looked
 * for again only when another library's constructor ran before ours and calls us. */
typedef void host_handler(int number); /* of a signal */

struct host_real {
    void (*abort_now)(void);
    int (*sigaction)(int number, const struct sigaction *action, struct sigaction *before);
    host_handler *(*signal)(int number, host_handler *handler);
    host_handler *(*sysv_signal)(int number, host_handler *handler);
    host_handler *(*sigset)(int number, host_handler *handler);
    void (*exit_now)(int status);
    void (*exit_quick)(int status);
    int (*unload)(void *handle); /* dlclose */
    int (*setenv)(const char *name, const char *value, int overwrite);
    int (*execve)(const char *path, char *const *argv, char *const *envp);
    int (*execvpe)(const char *file, char *const *argv, char *const *envp);
    int (*fexecve)(int fd, char *const *argv, char *const *envp);
    int (*execveat)(int at, const char *path, char *const *argv, char *const *envp, int flags);
    int (*spawn)(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const *argv, char *const *envp);
    int (*spawnp)(pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
                  const posix_spawnattr_t *attributes, char *const *argv, char *const *envp);
};
extern struct host_real host_real;
void host_real_find(void);

/* ---- environment.c: perfkit's variables for the programs that this one starts ---------------- */

/* Remember the variables as perfkit set them, `own_path` being how the loader knows our library.
 * *facts = LIFECYCLE_OTHER_* of those that have another value here. False when this process is not
 * under perfkit. */
bool host_environment_remember(char *const *envp, const char *own_path, uint32_t *facts);

/* Put back in this process what a wrapper took out. Once, after host_environment_remember. */
void host_environment_repair(void);

/* LIFECYCLE_OTHER_* of the variables that the program changed in its own environment before the
 * collector could attach by them. When the process ends. */
uint32_t host_environment_changed(void);

/* Are children given our library through LD_PRELOAD? */
bool host_environment_preloads(void);

/* What to do to an environment before it is handed on. */
struct host_plan {
    size_t bytes;      /* room that host_plan_apply needs, 0 = hand the environment on as it is */
    size_t entries;    /* of the given environment */
    size_t preload_at; /* index of LD_PRELOAD in it, or entries */
    size_t layers_at;  /* of OPENCL_LAYERS */
    size_t layers;     /* bytes of the list with our part added, 0 = leave it */
    unsigned missing;  /* variables to add, a bit each */
    bool ours;         /* the program belongs to this perfkit, not to one inside */
    int preload;       /* 1 = add our part, -1 = take it out, 0 = leave */
};
/* `preload`: may the program be given our library? */
void host_plan_make(struct host_plan *plan, char *const *envp, bool preload);
/* Writes the new environment into room[plan->bytes], aligned like a pointer; returns it. */
char *const *host_plan_apply(const struct host_plan *plan, char *const *envp, void *room);

/* ---- signals.c: deaths ----------------------------------------------------------------------- */

void host_signals_start(void);

/* ---- elf.c ----------------------------------------------------------------------------------- */

/* Once, when the library is loaded: by which loader the programs are that can be given it. */
void host_elf_find_loader(void);

/* Can the program be given our library? No when it is for another machine or word size (the
 * dynamic linker would complain on stderr), has another loader (musl's ends the program), or needs
 * a sanitizer's runtime, which refuses to run when another library comes before it. */
bool host_elf_takes_preload(const char *path);
bool host_elf_takes_preload_fd(int fd);
bool host_elf_takes_preload_file(const char *file); /* looked for along PATH */

#endif
