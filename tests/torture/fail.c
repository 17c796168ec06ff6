/* A library that tests preload: it makes one chosen call fail, in perfkit or in the collector
 * inside the recorded program, and nothing else. torture.py counts the calls in a first run and
 * then starts the same command again for each of them.
 *
 * TORTURE_TABLE names a file that all processes of a run map: what is to fail (struct table's first
 * fields), and one slot for each place in the code that makes such calls. A place is the kind of
 * call and the stack above it: the caller, and the innermost functions of perfkit itself, since all
 * of perfkit's arrays grow in one function. Counted are the calls of
 *   - perfkit and its helper programs (perfkit_symbolizer, perfkit_sampler), from main on, whoever
 * makes them on their behalf: SQLite, zlib, libc;
 *   - the recorded program, but those of the collector's code alone. What the program and its
 * drivers call is none of ours and always succeeds. A stream of stdio fails where it would write:
 * its descriptor is /dev/full meanwhile. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <sqlite3.h>

#define SLOTS 65536
#define FRAMES 8
#define STACK 48

/* torture.py reads and writes these two by the same layout. */
struct slot {
    _Atomic uint64_t key; /* 0 = free */
    _Atomic uint32_t count;
    uint32_t role, kind, frames;
    char what[24];
    uint64_t at[FRAMES]; /* module << 48 | offset; the caller first */
};
struct table {
    uint64_t key;     /* which place fails; 0 = none: only count */
    uint32_t first;   /* from which of its calls on, from 1 */
    uint32_t lasting; /* 1 = everything of its kind and role fails from then on, 0 = once */
    uint32_t error;   /* the errno, or SQLite's code; 0 = what is usual */
    uint32_t depth;   /* functions of perfkit that tell places apart */
    _Atomic uint32_t fired;
    _Atomic uint32_t full; /* slots that found no room */
    uint64_t caller;       /* the innermost function of the place that fails ... */
    uint32_t kind;         /* ... and its kind */
    uint32_t unused[5];
    struct slot slots[SLOTS];
};
_Static_assert(sizeof(struct slot) == 8 + 16 + 24 + 8 * FRAMES, "torture.py knows it");
_Static_assert(offsetof(struct table, slots) == 64, "torture.py knows it");

enum kind { MALLOC, MMAP, OPEN, WRITE, FALLOCATE, CLONE, SYNC, NAME, READ, STAT, SQL };
enum role { NONE, PERFKIT, COLLECTOR, HELPER };
enum module { M_OTHER, M_PERFKIT, M_COLLECTOR, M_SQLITE, M_LIBC, M_HELPER };

static const int usual_error[] = {
    [MALLOC] = ENOMEM,    [MMAP] = ENOMEM,  [OPEN] = EMFILE,      [WRITE] = ENOSPC,
    [FALLOCATE] = ENOSPC, [CLONE] = EAGAIN, [SYNC] = EIO,         [NAME] = EIO,
    [READ] = EIO,         [STAT] = EACCES,  [SQL] = SQLITE_IOERR,
};

static struct table *table;
static enum role role;
static uintptr_t collector_from, collector_to, exe_from, exe_to, libc_from, libc_to, loader_from,
    loader_to, sqlite_from, sqlite_to, self_from, self_to, libgcc_from, libgcc_to;
static _Thread_local bool inside __attribute__((tls_model("initial-exec")));

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real)                                                                                     \
    real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* ---- where a call comes from ----------------------------------------------------------------- */

static int note_module(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    (void)data;
    uintptr_t from = UINTPTR_MAX, to = 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD) {
            uintptr_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            uintptr_t end = start + info->dlpi_phdr[i].p_memsz;
            from = start < from ? start : from;
            to = end > to ? end : to;
        }
    const char *name = info->dlpi_name ? info->dlpi_name : "";
    const char *slash = strrchr(name, '/');
    const char *base = slash ? slash + 1 : name;
#define IS(prefix, which)                                                                          \
    if (strncmp(base, prefix, strlen(prefix)) == 0)                                                \
    which##_from = from, which##_to = to
    if (!*name && !exe_from)
        exe_from = from, exe_to = to;
    IS("libperfkit_collector.so", collector);
    IS("libc.so", libc);
    IS("ld-linux", loader);
    IS("libsqlite3", sqlite);
    IS("libgcc_s", libgcc);
    IS("libtorture_fail", self);
    return 0;
}

#define IN(at, which) ((uintptr_t)(at) >= which##_from && (uintptr_t)(at) < which##_to)

static void be_ready(void)
{
    const char *path = getenv("TORTURE_TABLE");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *at = mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED)
        return;
    void *warm[4];
    backtrace(warm, 4); /* loads libgcc_s now */
    dl_iterate_phdr(note_module, NULL);
    char exe[4096] = "";
    ssize_t length = readlink("/proc/self/exe", exe, sizeof exe - 1);
    const char *slash = length > 0 ? strrchr(exe, '/') : NULL;
    const char *name = slash ? slash + 1 : "";
    role = strcmp(name, "perfkit") == 0        ? PERFKIT
           : strncmp(name, "perfkit_", 8) == 0 ? HELPER
           : collector_from                    ? COLLECTOR
                                               : NONE;
    table = at;
}

static uint64_t place_of(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    if (IN(at, exe) && role != COLLECTOR)
        return (uint64_t)(role == PERFKIT ? M_PERFKIT : M_HELPER) << 48 | (at - exe_from);
    if (IN(at, collector))
        return (uint64_t)M_COLLECTOR << 48 | (at - collector_from);
    if (IN(at, sqlite))
        return (uint64_t)M_SQLITE << 48 | (at - sqlite_from);
    if (IN(at, libc))
        return (uint64_t)M_LIBC << 48 | (at - libc_from);
    return 0;
}

static bool is_ours(const void *address)
{
    return role == COLLECTOR ? IN(address, collector) : IN(address, exe);
}

static struct slot *slot_of(uint64_t key)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &table->slots[(key + i) % SLOTS];
        uint64_t there = atomic_load(&slot->key);
        if (there == 0 && atomic_compare_exchange_strong(&slot->key, &there, key))
            return slot;
        if (there == key)
            return slot;
    }
    atomic_fetch_add(&table->full, 1);
    return NULL;
}

static bool fails_here(enum kind kind, const char *what, const void *caller, int *error)
{
    if (IN(caller, loader) || IN(caller, libgcc) || IN(caller, self))
        return false;
    if (role == COLLECTOR && !IN(caller, collector) && !IN(caller, libc))
        return false;
    /* Unwinding is what takes time: once the point is known, only calls that may be it. */
    static _Atomic uint32_t lasting_kind; /* + 1 */
    bool lasts = atomic_load(&lasting_kind) == (uint32_t)kind + 1;
    if (table->key && !lasts &&
        (kind != table->kind || place_of(caller) != table->caller ||
         (atomic_load(&table->fired) && !table->lasting)))
        return false;
    void *stack[STACK];
    int depth = backtrace(stack, STACK), from = 0;
    while (from < depth && stack[from] != caller)
        from++;
    uint64_t at[FRAMES] = {place_of(caller)}, key = (uint64_t)kind * 31 + role;
    uint32_t used = 1, ours = is_ours(caller);
    for (int i = from + 1; i < depth && ours < table->depth && used < FRAMES; i++) {
        if (IN(stack[i], loader)) /* dlopen by the collector: the constructors are not ours */
            break;
        if (role == COLLECTOR && !IN(stack[i], collector) && !IN(stack[i], libc))
            break;
        if (is_ours(stack[i])) {
            at[used++] = place_of(stack[i]);
            ours++;
        }
    }
    if (ours == 0 && role == COLLECTOR)
        return false;
    for (const char *c = what; *c; c++)
        key = key * 1099511628211u + (uint8_t)*c;
    for (uint32_t i = 0; i < used; i++)
        key = (key ^ at[i]) * 1099511628211u, key ^= key >> 29;
    key |= 1;
    struct slot *slot = slot_of(key);
    if (!slot)
        return false;
    uint32_t count = atomic_fetch_add(&slot->count, 1) + 1;
    if (count == 1) {
        slot->role = role;
        slot->kind = kind;
        slot->frames = used;
        strncpy(slot->what, what, sizeof slot->what - 1);
        memcpy(slot->at, at, sizeof at);
    }
    bool now = key == table->key && count == table->first;
    if (now && table->lasting)
        atomic_store(&lasting_kind, kind + 1);
    if (!now && !lasts)
        return false;
    atomic_fetch_add(&table->fired, 1);
    *error = table->error ? (int)table->error : usual_error[kind];
    return true;
}

static bool fails(enum kind kind, const char *what, const void *caller, int *error)
{
    if (!table || role == NONE || inside)
        return false;
    int saved = errno;
    inside = true;
    bool yes = fails_here(kind, what, caller, error);
    inside = false;
    errno = saved;
    return yes;
}

/* In a function that stands for another: leave with `result` and errno, when this call is to fail.
 */
#define FAIL(kind, what, result)                                                                   \
    do {                                                                                           \
        int error_;                                                                                \
        if (fails(kind, what, __builtin_return_address(0), &error_)) {                             \
            errno = error_;                                                                        \
            return result;                                                                         \
        }                                                                                          \
    } while (0)
#define FAIL_CODE(kind, what)                                                                      \
    do {                                                                                           \
        int error_;                                                                                \
        if (fails(kind, what, __builtin_return_address(0), &error_))                               \
            return error_;                                                                         \
    } while (0)

/* A call that is handed on as it is. */
#define PASS(kind, result_type, failed, name, parameters, arguments)                               \
    result_type name parameters                                                                    \
    {                                                                                              \
        REAL(name);                                                                                \
        FAIL(kind, #name, failed);                                                                 \
        return real arguments;                                                                     \
    }
/* The same, of a call that returns its error. */
#define PASS_CODE(kind, name, parameters, arguments)                                               \
    int name parameters                                                                            \
    {                                                                                              \
        REAL(name);                                                                                \
        FAIL_CODE(kind, #name);                                                                    \
        return real arguments;                                                                     \
    }

static int (*main_of_program)(int, char **, char **);

static int counted_main(int argc, char **argv, char **envp)
{
    be_ready();
    return main_of_program(argc, argv, envp);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    REAL(__libc_start_main);
    main_of_program = main;
    return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* The collector's constructors run before main. */
__attribute__((constructor)) static void early(void)
{
    be_ready();
    if (role != COLLECTOR) /* perfkit counts from main on */
        table = NULL;
}

/* ---- memory ---------------------------------------------------------------------------------- */

void *malloc(size_t size)
{
    FAIL(MALLOC, "malloc", NULL);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    FAIL(MALLOC, "calloc", NULL);
    return __libc_calloc(count, size);
}

void *realloc(void *old, size_t size)
{
    if (size > 0 || !old)
        FAIL(MALLOC, "realloc", NULL);
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    FAIL(MALLOC, "aligned_alloc", NULL);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    FAIL_CODE(MALLOC, "posix_memalign");
    void *memory = __libc_memalign(alignment, size);
    if (!memory)
        return ENOMEM;
    *result = memory;
    return 0;
}

PASS(MMAP, void *, MAP_FAILED, mmap,
     (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset))
PASS(MMAP, void *, MAP_FAILED, mmap64,
     (void *at, size_t size, int protection, int flags, int fd, off_t offset),
     (at, size, protection, flags, fd, offset))

void *mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
    REAL(mremap);
    va_list arguments;
    va_start(arguments, flags);
    void *at = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    FAIL(MMAP, "mremap", MAP_FAILED);
    return real(old, old_size, size, flags, at);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static mode_t mode_of(int flags, va_list arguments)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;
}

#define OPEN_AS(name, what, parameters, arguments)                                                 \
    int name parameters                                                                            \
    {                                                                                              \
        REAL(name);                                                                                \
        va_list list;                                                                              \
        va_start(list, flags);                                                                     \
        mode_t mode = mode_of(flags, list);                                                        \
        va_end(list);                                                                              \
        FAIL(OPEN, flags &O_CREAT ? what " to create" : what, -1);                                 \
        return real arguments;                                                                     \
    }
OPEN_AS(open, "open", (const char *path, int flags, ...), (path, flags, mode))
OPEN_AS(open64, "open", (const char *path, int flags, ...), (path, flags, mode))
OPEN_AS(openat, "openat", (int at, const char *path, int flags, ...), (at, path, flags, mode))
OPEN_AS(openat64, "openat", (int at, const char *path, int flags, ...), (at, path, flags, mode))

PASS(OPEN, FILE *, NULL, fopen, (const char *path, const char *mode), (path, mode))
PASS(OPEN, FILE *, NULL, fopen64, (const char *path, const char *mode), (path, mode))
PASS(OPEN, FILE *, NULL, fdopen, (int fd, const char *mode), (fd, mode))
PASS(OPEN, FILE *, NULL, freopen, (const char *path, const char *mode, FILE *file),
     (path, mode, file))
PASS(OPEN, FILE *, NULL, tmpfile, (void), ())
PASS(MALLOC, FILE *, NULL, open_memstream, (char **text, size_t *size), (text, size))
PASS(OPEN, DIR *, NULL, opendir, (const char *path), (path))
PASS(OPEN, int, -1, mkostemp, (char *path, int flags), (path, flags))
PASS(OPEN, int, -1, pipe2, (int fd[2], int flags), (fd, flags))
PASS(OPEN, int, -1, eventfd, (unsigned count, int flags), (count, flags))
PASS(OPEN, int, -1, socketpair, (int domain, int type, int protocol, int fd[2]),
     (domain, type, protocol, fd))
PASS(OPEN, int, -1, dup2, (int fd, int wanted), (fd, wanted))
PASS(OPEN, int, -1, dup3, (int fd, int wanted, int flags), (fd, wanted, flags))
PASS(OPEN, int, -1, mkdir, (const char *path, mode_t mode), (path, mode))
PASS(OPEN, char *, NULL, mkdtemp, (char *path), (path))

ssize_t write(int fd, const void *data, size_t size)
{
    REAL(write);
    if (fd != STDERR_FILENO) /* the message is what is looked at */
        FAIL(WRITE, "write", -1);
    return real(fd, data, size);
}
PASS(WRITE, ssize_t, -1, pwrite, (int fd, const void *data, size_t size, off_t at),
     (fd, data, size, at))
PASS(WRITE, ssize_t, -1, pwrite64, (int fd, const void *data, size_t size, off_t at),
     (fd, data, size, at))
PASS(WRITE, ssize_t, -1, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))
PASS(WRITE, ssize_t, -1, send, (int fd, const void *data, size_t size, int flags),
     (fd, data, size, flags))

PASS(FALLOCATE, int, -1, fallocate, (int fd, int mode, off_t from, off_t size),
     (fd, mode, from, size))
PASS_CODE(FALLOCATE, posix_fallocate, (int fd, off_t from, off_t size), (fd, from, size))
PASS(FALLOCATE, int, -1, ftruncate, (int fd, off_t size), (fd, size))
PASS(FALLOCATE, int, -1, ftruncate64, (int fd, off_t size), (fd, size))

PASS(SYNC, int, -1, fsync, (int fd), (fd))
PASS(SYNC, int, -1, fdatasync, (int fd), (fd))

PASS(NAME, int, -1, rename, (const char *from, const char *to), (from, to))
PASS(NAME, int, -1, renameat2,
     (int from_fd, const char *from, int to_fd, const char *to, unsigned flags),
     (from_fd, from, to_fd, to, flags))
PASS(NAME, int, -1, link, (const char *from, const char *to), (from, to))
PASS(NAME, int, -1, linkat, (int from_fd, const char *from, int to_fd, const char *to, int flags),
     (from_fd, from, to_fd, to, flags))
PASS(NAME, int, -1, unlink, (const char *path), (path))
PASS(NAME, int, -1, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
PASS(NAME, int, -1, rmdir, (const char *path), (path))

PASS(READ, ssize_t, -1, read, (int fd, void *data, size_t size), (fd, data, size))
PASS(READ, ssize_t, -1, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))
PASS(READ, ssize_t, -1, pread64, (int fd, void *data, size_t size, off_t at), (fd, data, size, at))

PASS(STAT, int, -1, stat, (const char *path, struct stat *info), (path, info))
PASS(STAT, int, -1, lstat, (const char *path, struct stat *info), (path, info))
PASS(STAT, int, -1, fstat, (int fd, struct stat *info), (fd, info))
PASS(STAT, int, -1, fstatat, (int fd, const char *path, struct stat *info, int flags),
     (fd, path, info, flags))
PASS(STAT, ssize_t, -1, readlink, (const char *path, char *to, size_t size), (path, to, size))
PASS(STAT, char *, NULL, realpath, (const char *path, char *to), (path, to))

/* ---- processes and threads ------------------------------------------------------------------- */

PASS(CLONE, pid_t, -1, fork, (void), ())
PASS(CLONE, FILE *, NULL, popen, (const char *line, const char *mode), (line, mode))
PASS_CODE(CLONE, pthread_create,
          (pthread_t * thread, const pthread_attr_t *attributes, void *(*start)(void *),
           void *data),
          (thread, attributes, start, data))
#define SPAWN(name)                                                                                \
    PASS_CODE(CLONE, name,                                                                         \
              (pid_t * pid, const char *path, const posix_spawn_file_actions_t *actions,           \
               const posix_spawnattr_t *attributes, char *const *argv, char *const *envp),         \
              (pid, path, actions, attributes, argv, envp))
SPAWN(posix_spawn)
SPAWN(posix_spawnp)
PASS_CODE(MALLOC, pthread_key_create, (pthread_key_t * key, void (*end)(void *)), (key, end))
PASS(MALLOC, int, -1, setenv, (const char *name, const char *value, int replace),
     (name, value, replace))

/* ---- stdio: where a stream's buffer goes to the system --------------------------------------- */

static int full_now(FILE *file, int *kept)
{
    int fd = fileno(file);
    *kept = -1;
    if (fd < 0)
        return -1;
    inside = true;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC), flags = fcntl(fd, F_GETFD);
    *kept = fcntl(fd, F_DUPFD_CLOEXEC, 100);
    if (full >= 0 && *kept >= 0)
        dup3(full, fd, flags & FD_CLOEXEC ? O_CLOEXEC : 0);
    if (full >= 0)
        close(full);
    inside = false;
    return fd;
}

static void as_before(int fd, int kept)
{
    int saved = errno;
    inside = true;
    if (kept >= 0) {
        dup3(kept, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
        close(kept);
    }
    inside = false;
    errno = saved;
}

static bool overflows(FILE *file, size_t more)
{
    return file && (__fpending(file) + more > __fbufsize(file) ||
                    (__flbf(file) && more > 0 && file != stderr));
}

static bool has_descriptor(FILE *file)
{
    int saved = errno;
    bool yes = fileno(file) >= 0; /* not: a stream in memory */
    errno = saved;
    return yes;
}

/* A call that writes to `file`, where it reaches the system. */
#define STREAM(type, name, parameters, arguments, file, reaches)                                   \
    type name parameters                                                                           \
    {                                                                                              \
        REAL(name);                                                                                \
        int error, kept;                                                                           \
        if (!(reaches) || !has_descriptor(file) ||                                                 \
            !fails(WRITE, #name, __builtin_return_address(0), &error))                             \
            return real arguments;                                                                 \
        int fd = full_now(file, &kept);                                                            \
        type result = real arguments;                                                              \
        as_before(fd, kept);                                                                       \
        return result;                                                                             \
    }
STREAM(size_t, fwrite, (const void *data, size_t size, size_t count, FILE *file),
       (data, size, count, file), file, overflows(file, size *count))
STREAM(int, fputs, (const char *text, FILE *file), (text, file), file,
       overflows(file, strlen(text)))
STREAM(int, fputc, (int c, FILE *file), (c, file), file, overflows(file, 1))
STREAM(int, putc, (int c, FILE *file), (c, file), file, overflows(file, 1))
STREAM(int, puts, (const char *text), (text), stdout, overflows(stdout, strlen(text) + 1))
STREAM(int, putchar, (int c), (c), stdout, overflows(stdout, 1))
STREAM(int, fflush, (FILE * file), (file), file, file &&__fpending(file) > 0)

static int print(FILE *file, const char *format, va_list arguments, const void *caller)
{
    REAL(vfprintf);
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again), error, kept;
    va_end(again);
    if (!overflows(file, length > 0 ? (size_t)length : 0) || !has_descriptor(file) ||
        !fails(WRITE, "fprintf", caller, &error))
        return real(file, format, arguments);
    int fd = full_now(file, &kept);
    int result = real(file, format, arguments);
    as_before(fd, kept);
    return result;
}

int vfprintf(FILE *file, const char *format, va_list arguments)
{
    return print(file, format, arguments, __builtin_return_address(0));
}

int fprintf(FILE *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = print(file, format, arguments, __builtin_return_address(0));
    va_end(arguments);
    return result;
}

int printf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int result = print(stdout, format, arguments, __builtin_return_address(0));
    va_end(arguments);
    return result;
}

int fclose(FILE *file)
{
    REAL(fclose);
    if (!file || !has_descriptor(file) || __fpending(file) == 0)
        return real(file);
    int error, kept;
    if (!fails(WRITE, "fclose", __builtin_return_address(0), &error))
        return real(file);
    full_now(file, &kept);
    int result = real(file), saved = errno;
    close(kept);
    errno = saved;
    return result;
}

/* ---- SQLite: what perfkit itself asks of it -------------------------------------------------- */

static _Thread_local sqlite3 *failed_db;
static _Thread_local sqlite3_stmt *failed_statement;
static _Thread_local int failed_code;

static int fail_sql(sqlite3 *db, sqlite3_stmt *statement, int code)
{
    failed_db = db;
    failed_statement = statement;
    failed_code = code;
    return code;
}

/* As SQLite: what it says of an error holds until its next call, and again when the statement that
 * failed is reset or finalized. */
#define SQL_CALL(name, db, statement)                                                              \
    do {                                                                                           \
        int code_;                                                                                 \
        if (IN(__builtin_return_address(0), exe) &&                                                \
            fails(SQL, name, __builtin_return_address(0), &code_))                                 \
            return fail_sql(db, statement, code_);                                                 \
        if (IN(__builtin_return_address(0), exe))                                                  \
            failed_db = NULL;                                                                      \
    } while (0)

int sqlite3_step(sqlite3_stmt *statement)
{
    REAL(sqlite3_step);
    sqlite3 *(*db_of)(sqlite3_stmt *) =
        (sqlite3 * (*)(sqlite3_stmt *)) dlsym(RTLD_NEXT, "sqlite3_db_handle");
    SQL_CALL("sqlite3_step", db_of(statement), statement);
    if (failed_statement == statement)
        failed_statement = NULL;
    return real(statement);
}

#define SQL_PASS(name, what, start, parameters, arguments)                                         \
    int name parameters                                                                            \
    {                                                                                              \
        REAL(name);                                                                                \
        start;                                                                                     \
        SQL_CALL(what, db, NULL);                                                                  \
        return real arguments;                                                                     \
    }
SQL_PASS(sqlite3_prepare_v2, "sqlite3_prepare", *statement = NULL,
         (sqlite3 * db, const char *sql, int size, sqlite3_stmt **statement, const char **tail),
         (db, sql, size, statement, tail))
SQL_PASS(sqlite3_prepare_v3, "sqlite3_prepare", *statement = NULL,
         (sqlite3 * db, const char *sql, int size, unsigned flags, sqlite3_stmt **statement,
          const char **tail),
         (db, sql, size, flags, statement, tail))
SQL_PASS(sqlite3_exec, "sqlite3_exec", ,
         (sqlite3 * db, const char *sql, int (*row)(void *, int, char **, char **), void *data,
          char **message),
         (db, sql, row, data, message))
SQL_PASS(sqlite3_wal_checkpoint_v2, "checkpoint", ,
         (sqlite3 * db, const char *name, int mode, int *frames, int *done),
         (db, name, mode, frames, done))

static int end_statement(sqlite3_stmt *statement, int (*real)(sqlite3_stmt *))
{
    bool failed = statement && failed_statement == statement;
    sqlite3 *(*db_of)(sqlite3_stmt *) =
        (sqlite3 * (*)(sqlite3_stmt *)) dlsym(RTLD_NEXT, "sqlite3_db_handle");
    sqlite3 *db = failed ? db_of(statement) : NULL;
    int code = real(statement);
    return failed ? fail_sql(db, NULL, failed_code) : code;
}

#define SQL_END(name)                                                                              \
    int name(sqlite3_stmt *statement)                                                              \
    {                                                                                              \
        REAL(name);                                                                                \
        return end_statement(statement, real);                                                     \
    }
SQL_END(sqlite3_reset)
SQL_END(sqlite3_finalize)

#define SQL_ERROR(type, name, failure)                                                             \
    type name(sqlite3 *db)                                                                         \
    {                                                                                              \
        REAL(name);                                                                                \
        return db && db == failed_db ? failure : real(db);                                         \
    }
SQL_ERROR(int, sqlite3_errcode, failed_code & 0xff)
SQL_ERROR(int, sqlite3_extended_errcode, failed_code)
SQL_ERROR(int, sqlite3_system_errno, EIO)
SQL_ERROR(const char *, sqlite3_errmsg,
          ((const char *(*)(int))dlsym(RTLD_NEXT, "sqlite3_errstr"))(failed_code))
