/* How the process starts and ends, for the shared table of processes.
 *
 * The end is caught as late as the C library allows. exit() first runs what the program registered
 * (newest first), then the destructors of the program and of its libraries. A preloaded library's
 * destructors come right after the program's own and before those of libraries that the program
 * loaded later, drivers among them: everything the program did in its own exit handlers has been
 * recorded, and the drivers are still whole. That is where collector_end is called. The exit status
 * is not known to a destructor; on_exit has it, before (when we were dlopen'ed) or after (when we
 * were preloaded: handlers of a constructor run last). */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "collectors/core/collector.h"
#include "collectors/host/host.h"
#include "libprof/spool/lifecycle.h"

struct host_real host_real;

static _Atomic bool loaded;
static bool quick_hooked;
static int quick_status;
static bool status_known;
static int status_seen;
static bool destructor_ran;

/* A function pointer out of dlsym, without the cast that ISO C leaves undefined. */
static void find_next_symbol(void *slot, const char *name)
{
    void *symbol = dlsym(RTLD_NEXT, name);
    memcpy(slot, &symbol, sizeof symbol);
}

/* An exec is not one: the next program finds what it was started with. */
static void end_process(unsigned how, int status)
{
    int saved = errno;
    collector_note_fact(host_environment_changed());
    errno = saved;
    collector_end(how, status);
}

static void saw_status(int status, void *unused)
{
    (void)unused;
    status_seen = status;
    status_known = true;
    if (destructor_ran)
        end_process(LIFECYCLE_EXIT, status);
}

static void saw_quick_exit(void)
{
    end_process(LIFECYCLE_QUICK_EXIT, quick_status);
}

static const char *own_path(void)
{
    Dl_info info;
    return dladdr(&host_real, &info) ? info.dli_fname : NULL;
}

/* execveat came with glibc 2.34. */
static int execveat_by_number(int at, const char *path, char *const *argv, char *const *envp,
                              int flags)
{
    return (int)syscall(SYS_execveat, at, path, argv, envp, flags);
}

void host_real_find(void)
{
    find_next_symbol(&host_real.exit_now, "_exit");
    find_next_symbol(&host_real.exit_quick, "quick_exit");
    find_next_symbol(&host_real.execvpe, "execvpe");
    find_next_symbol(&host_real.fexecve, "fexecve");
    find_next_symbol(&host_real.execveat, "execveat");
    find_next_symbol(&host_real.spawn, "posix_spawn");
    find_next_symbol(&host_real.spawnp, "posix_spawnp");
    find_next_symbol(&host_real.unload, "dlclose");
    find_next_symbol(&host_real.setenv, "setenv");
    find_next_symbol(&host_real.abort_now, "abort");
    find_next_symbol(&host_real.sigaction, "sigaction");
    find_next_symbol(&host_real.signal, "signal");
    find_next_symbol(&host_real.sysv_signal, "__sysv_signal");
    find_next_symbol(&host_real.sigset, "sigset");
    find_next_symbol(&host_real.execve, "execve"); /* last: says that the others are there */
    if (!host_real.execveat)
        host_real.execveat = execveat_by_number;
}

__attribute__((constructor)) static void start(int argc, char **argv, char **envp)
{
    int saved = errno;
    if (atomic_exchange(&loaded, true))
        return;
    host_real_find();
    host_elf_find_loader();
    uint32_t facts;
    if (host_environment_remember(envp, own_path(), &facts)) {
        host_environment_repair();
        on_exit(saw_status, NULL);
        quick_hooked = at_quick_exit(saw_quick_exit) == 0;
        if (host_environment_preloads()) {
            collector_hooked();
            host_signals_start();
        }
        collector_hello(argc, argv);
        collector_note_fact(facts);
    }
    errno = saved;
}

__attribute__((destructor)) static void end(void)
{
    destructor_ran = true;
    if (loaded)
        end_process(LIFECYCLE_EXIT, status_known ? status_seen : 0);
}

static _Noreturn void leave_process(int status)
{
    end_process(LIFECYCLE_FAST_EXIT, status);
    if (host_real.exit_now)
        host_real.exit_now(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

HOST_EXPORT void _exit(int status)
{
    leave_process(status);
}

HOST_EXPORT void _Exit(int status)
{
    leave_process(status);
}

/* Its handlers run inside; ours, the oldest, is the last of them. */
HOST_EXPORT void quick_exit(int status)
{
    quick_status = status;
    if (!quick_hooked)
        end_process(LIFECYCLE_QUICK_EXIT, status);
    if (host_real.exit_quick)
        host_real.exit_quick(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

/* ---- dlclose ----------------------------------------------------------------------------------
 *
 * What was learned of an object file must be forgotten before another one lies in its place. Only
 * noticed here; sources that registered for it are called. dlopen has no hook: it looks where its
 * caller lies, and through us that would be this library. */

HOST_EXPORT int dlclose(void *handle)
{
    if (!host_real.unload)
        host_real_find(); /* called by another library's constructor, before ours */
    int result = host_real.unload ? host_real.unload(handle) : 0;
    collector_unloaded();
    return result;
}
