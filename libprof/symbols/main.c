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
#include <sys/socket.h>
#include <unistd.h>

#include "libprof/base/array.h"
#include "libprof/base/cxx_name.h"
#include "libprof/symbols/symbols.h"

static void answer_state(struct answer *answer, enum symbols_quality quality, const char *text);
/* Send SYMBOLS_END and what is left. */
static bool answer_end(struct answer *answer);

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

/* ---- the answer ------------------------------------------------------------------------------ */

/* Writes the answer, buffered. */

#define FLUSH_BYTES (64u << 10)

static void flush_answer(struct answer *answer)
{
    for (size_t at = 0; at < answer->count && !answer->failed;) {
        ssize_t n = send(answer->fd, answer->buffer + at, answer->count - at, MSG_NOSIGNAL);
        if (n > 0)
            at += (size_t)n;
        else if (errno != EINTR)
            answer->failed = true;
    }
    answer->count = 0;
}

static void append_answer(struct answer *answer, const void *data, size_t bytes)
{
    if (!prof_array_room(&answer->buffer, &answer->capacity, answer->count + bytes, 1)) {
        answer->failed = true;
        return;
    }
    if (bytes)
        memcpy(answer->buffer + answer->count, data, bytes);
    answer->count += bytes;
}

static void append_answer_record(struct answer *answer, uint32_t type, const void *first,
                                 size_t first_bytes, const void *second, size_t second_bytes)
{
    struct symbols_record record = {type, (uint32_t)(first_bytes + second_bytes)};
    append_answer(answer, &record, sizeof record);
    append_answer(answer, first, first_bytes);
    append_answer(answer, second, second_bytes);
    if (answer->count >= FLUSH_BYTES)
        flush_answer(answer);
}

/* The number of a text, sent when it is new; 0 for NULL and "". */
static uint32_t answer_text(struct answer *answer, const char *text)
{
    size_t length = text ? strnlen(text, SYMBOLS_MOST_TEXT) : 0;
    if (!length)
        return 0;
    uint32_t *known = prof_names_get(&answer->texts, text, length);
    if (known)
        return *known;
    uint32_t number = (uint32_t)answer->texts.count + 1;
    if (!prof_names_put(&answer->texts, text, length, number)) {
        answer->failed = true;
        return 0;
    }
    append_answer_record(answer, SYMBOLS_TEXT, text, length, NULL, 0);
    return number;
}

/* Parts and copies of a function that the compiler made go by its own name. */
static void cut_clone(char *name)
{
    static const char *const marks[] = {" [clone ", ".isra.", ".constprop.",
                                        ".part.",   ".cold",  ".lto_priv."};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        char *at = strstr(name, marks[i]);
        if (at && at != name)
            *at = '\0';
    }
}

void answer_level(struct answer *answer, const char *function, const char *file, uint32_t line)
{
    if (answer->level_count == SYMBOLS_MOST_LEVELS)
        return;
    char *readable = function ? prof_demangle(function) : NULL;
    if (function && !readable)
        readable = strdup(function);
    if (readable)
        cut_clone(readable);
    struct symbols_level *level = &answer->levels[answer->level_count++];
    level->function = answer_text(answer, readable);
    level->file = answer_text(answer, file);
    level->line = line;
    free(readable);
}

void answer_frame(struct answer *answer, uint32_t index)
{
    if (answer->level_count)
        append_answer_record(answer, SYMBOLS_FRAME, &index, sizeof index, answer->levels,
                             answer->level_count * sizeof *answer->levels);
    answer->level_count = 0;
}

static void answer_state(struct answer *answer, enum symbols_quality quality, const char *text)
{
    uint32_t number = quality;
    append_answer_record(answer, SYMBOLS_STATE, &number, sizeof number, text, strlen(text));
}

static bool answer_end(struct answer *answer)
{
    append_answer_record(answer, SYMBOLS_END, NULL, 0, NULL, 0);
    flush_answer(answer);
    prof_names_free(&answer->texts);
    free(answer->buffer);
    return !answer->failed;
}
