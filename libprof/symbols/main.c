/* perfkit_symbolizer: gives the addresses of one file their names, for perfkit (protocol.h). A
 * program of its own, because object files come from anywhere and parsers of them crash, hang and
 * eat memory: here that ends in a limit, and perfkit says that the names of one file are missing.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "libprof/symbols/symbols.h"
#if PERFKIT_HAVE_LIBDW
#endif

#define MOST_MEMORY (4ull << 30) /* without what is only mapped */
#define MOST_CPU_S 120u

struct job {
    struct symbols_request request;
    char *path, *build_id, *folders;
    uint64_t *addresses;
};

static void limit_resource(int what, rlim_t value)
{
    struct rlimit now;
    if (getrlimit(what, &now) == 0 && (now.rlim_max == RLIM_INFINITY || now.rlim_max > value))
        setrlimit(what, &(struct rlimit){value, value});
}

static void set_limits(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    limit_resource(RLIMIT_CORE, 0);
    limit_resource(RLIMIT_CPU, MOST_CPU_S);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limit_resource(RLIMIT_DATA, MOST_MEMORY); /* the shadow of a sanitizer is larger */
#endif
}

static bool read_whole(int fd, void *out, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = read(fd, (char *)out + at, bytes - at);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* `bytes` of text and a NUL. */
static char *read_request_text(int fd, uint32_t bytes)
{
    char *text = bytes > (1u << 20) ? NULL : malloc((size_t)bytes + 2);
    if (!text || !read_whole(fd, text, bytes)) {
        free(text);
        return NULL;
    }
    text[bytes] = text[bytes + 1] = '\0';
    return text;
}

static bool read_symbols_job(int fd, struct job *job)
{
    *job = (struct job){0};
    if (!read_whole(fd, &job->request, sizeof job->request) || job->request.magic != SYMBOLS_MAGIC)
        return false;
    job->path = read_request_text(fd, job->request.path_bytes);
    job->build_id = job->path ? read_request_text(fd, job->request.build_id_bytes) : NULL;
    job->folders = job->build_id ? read_request_text(fd, job->request.folder_bytes) : NULL;
    job->addresses = malloc(((size_t)job->request.count + 1) * sizeof *job->addresses);
    return job->folders && job->addresses &&
           read_whole(fd, job->addresses, job->request.count * sizeof *job->addresses);
}

static void free_job(struct job *job)
{
    free(job->path);
    free(job->build_id);
    free(job->folders);
    free(job->addresses);
}

/* ---- object files ---------------------------------------------------------------------------- */

/* What names are taken from. */
struct object {
    struct elf_image image, debug;
    bool has_image, has_debug;
    char debug_path[2 * SYMBOLS_MOST_PATH + 300];
    struct elf_functions functions;
#if PERFKIT_HAVE_LIBDW
    struct dwarf_names *dwarf;
    struct mini_debug *mini; /* of which functions are, or NULL */
#endif
};

static const char *open_vdso(struct elf_image *image)
{
    const unsigned char *start = (const unsigned char *)getauxval(AT_SYSINFO_EHDR);
    Elf64_Ehdr header;
    if (!start)
        return "this machine has none";
    memcpy(&header, start, sizeof header);
    /* The section headers stand at its end. */
    return elf_image_of(start, header.e_shoff + (size_t)header.e_shnum * sizeof(Elf64_Shdr), image);
}

/* Is the file at the path still the one that the program had? */
static const char *check_build(const struct job *job, const struct elf_image *image)
{
    if (job->build_id[0] && strcmp(job->build_id, image->build_id) != 0)
        return "it is of another build than the program had";
    if (!job->build_id[0] && job->request.not_after_s &&
        image->changed_s > job->request.not_after_s)
        return "it was changed after the program had it, and has no build id";
    return NULL;
}

/* The object itself when it is the right one, and its debug file; NULL or why there is neither. */
static const char *open_object(const struct job *job, struct object *object)
{
    bool vdso = job->request.source == SYMBOLS_VDSO;
    const char *why = vdso ? open_vdso(&object->image) : elf_image_open(job->path, &object->image);
    object->has_image = !why;
    if (!why && (why = check_build(job, &object->image))) {
        elf_image_close(&object->image);
        object->has_image = false;
    }
    if (vdso)
        return why;
    const struct debug_search search = {
        .path = job->path,
        .build_id = job->build_id[0] || !object->has_image ? job->build_id : object->image.build_id,
        .folders = job->folders,
        .image = object->has_image ? &object->image : NULL};
    object->has_debug =
        debug_file_find(&search, &object->debug, object->debug_path, sizeof object->debug_path);
    return object->has_image || object->has_debug ? NULL : why;
}

/* A file that is stripped of its names may have them once more, compressed. */
static void read_mini_debug(const struct job *job, struct object *object)
{
#if PERFKIT_HAVE_LIBDW
    struct elf_functions functions;
    if (object->functions.only_exported && job->request.source != SYMBOLS_VDSO &&
        (object->mini = mini_debug_open(job->path, &object->image, &functions))) {
        elf_functions_free(&object->functions);
        object->functions = functions;
    }
#else
    (void)job, (void)object;
#endif
}

static bool read_functions(const struct job *job, struct object *object)
{
    if (object->has_debug && !elf_functions_read(&object->debug, &object->functions))
        return false;
    if (object->functions.count && !object->functions.only_exported)
        return true;
    elf_functions_free(&object->functions);
    if (object->has_image && !elf_functions_read(&object->image, &object->functions))
        return false;
    if (object->has_image)
        read_mini_debug(job, object);
    return true;
}

#if PERFKIT_HAVE_LIBDW
/* Which of the two files has debug information; NULL = neither. */
static const char *open_dwarf(const struct job *job, struct object *object)
{
    if (job->request.flags & SYMBOLS_NO_DWARF || job->request.source == SYMBOLS_VDSO)
        return NULL;
    if (object->has_image && (object->dwarf = dwarf_names_open(job->path)))
        return job->path;
    if (object->has_debug && (object->dwarf = dwarf_names_open(object->debug_path)))
        return object->debug_path;
    return NULL;
}
#endif

/* True when the address has a name, and `lines` when it is from debug information. */
static bool name_address(struct object *object, uint64_t address, struct answer *answer,
                         bool *lines)
{
    const struct elf_function *function = elf_functions_at(&object->functions, address);
#if PERFKIT_HAVE_LIBDW
    if (object->dwarf &&
        dwarf_names_at(object->dwarf, address, function ? function->name : NULL, answer)) {
        *lines = true;
        return true;
    }
#endif
    (void)lines;
    if (function)
        answer_level(answer, function->name, NULL, 0);
    return function != NULL;
}

static const char *name_addresses(const struct job *job, struct object *object,
                                  struct answer *answer)
{
    char note[sizeof object->debug_path + 32] = "";
    bool lines = false;
    uint32_t named = 0;
    if (!read_functions(job, object))
        return "there is no memory for its names";
#if PERFKIT_HAVE_LIBDW
    const char *dwarf = open_dwarf(job, object);
    if (dwarf && dwarf != job->path)
        snprintf(note, sizeof note, "%s", dwarf);
#endif
    const struct elf_image *image = object->has_image ? &object->image : &object->debug;
    for (uint32_t i = 0; i < job->request.count; i++) {
        uint64_t address;
        if (elf_image_address(image, job->request.segment, job->addresses[i], &address) &&
            name_address(object, address, answer, &lines)) {
            answer_frame(answer, i);
            named++;
        }
    }
    if (!note[0] && object->has_debug && !lines)
        snprintf(note, sizeof note, "%s", object->debug_path);
    if (!named)
        return "it names no function at these places";
    answer_state(answer,
                 lines                             ? SYMBOLS_LINES
                 : object->functions.only_exported ? SYMBOLS_EXPORTED
                                                   : SYMBOLS_NAMES,
                 note);
    return NULL;
}

static const char *do_object(const struct job *job, struct answer *answer)
{
    static struct object object;
    const char *why = open_object(job, &object);
    return why ? why : name_addresses(job, &object, answer);
}

static const char *do_jit(const struct job *job, struct answer *answer)
{
    const struct symbols_request *request = &job->request;
    bool map = request->source == SYMBOLS_PERF_MAP;
    const char *why = map ? jit_names_perf_map(job->path, request->not_before_s, job->addresses,
                                               request->count, answer)
                          : jit_names_jitdump(job->path, job->addresses, request->count, answer);
    if (!why)
        answer_state(answer, map ? SYMBOLS_NAMES : SYMBOLS_LINES, job->path);
    return why;
}

int main(int argc, char **argv)
{
    struct job job;
    static struct answer answer = {.fd = STDIN_FILENO};
    if (argc > 1 && strcmp(argv[1], "--reads") == 0) { /* for perfkit doctor */
        puts(PERFKIT_HAVE_LIBDW ? "lines" : "names");
        return 0;
    }
    set_limits();
    if (!read_symbols_job(STDIN_FILENO, &job)) {
        free_job(&job);
        return 2;
    }
    bool jit = job.request.source == SYMBOLS_PERF_MAP || job.request.source == SYMBOLS_JITDUMP;
    const char *why = jit ? do_jit(&job, &answer) : do_object(&job, &answer);
    if (why)
        answer_state(&answer, SYMBOLS_NOTHING, why);
    bool ok = answer_end(&answer);
    free_job(&job);
    return ok ? 0 : 1;
}
