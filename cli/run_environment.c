/* Builds the target's environment from the caller's, changing nothing but the variables of one
 * table. What had to be overridden or left out is noted: a capture that lacks a source must say so.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/installed.h"
#include "cli/process.h"
#include "cli/run.h"
#include "libprof/base/regular.h"

static void __attribute__((format(printf, 3, 4)))
note(struct run_environment *environment, const char *item, const char *format, ...)
{
    if (environment->note_count == MOST_NOTES)
        return;
    struct run_note *n = &environment->notes[environment->note_count++];
    n->item = item;
    va_list args;
    va_start(args, format);
    vsnprintf(n->text, sizeof n->text, format, args);
    va_end(args);
}

const char *const run_domains[] = {"cuda", "nvtx", "opencl", NULL};

bool trace_names_domain(const char *trace, const char *domain)
{
    if (!trace)
        return true;
    size_t length = strlen(domain);
    for (const char *at = trace;; at++) {
        size_t word = strcspn(at, ",");
        if (word == length && strncmp(at, domain, length) == 0)
            return true;
        at += word;
        if (!*at)
            return false;
    }
}

static char **find_variable(const struct run_environment *environment, const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < environment->count; i++)
        if (strncmp(environment->variables[i], name, length) == 0 &&
            environment->variables[i][length] == '=')
            return &environment->variables[i];
    return NULL;
}

static const char *get(const struct run_environment *environment, const char *name)
{
    char **place = find_variable(environment, name);
    return place ? *place + strlen(name) + 1 : NULL;
}

static bool set_variable(struct run_environment *environment, const char *name, const char *value)
{
    char *text;
    if (asprintf(&text, "%s=%s", name, value) < 0)
        return false;
    char **place = find_variable(environment, name);
    if (place) {
        free(*place);
        *place = text;
        return true;
    }
    if (environment->count + 1 >= environment->room) {
        free(text);
        return false;
    }
    environment->variables[environment->count++] = text;
    environment->variables[environment->count] = NULL;
    return true;
}

static bool copy_environment(struct run_environment *environment)
{
    size_t count = 0;
    while (environ[count])
        count++;
    environment->room = count + 16;
    environment->variables = calloc(environment->room, sizeof environment->variables[0]);
    if (!environment->variables)
        return false;
    for (size_t i = 0; i < count; i++) {
        environment->variables[i] = strdup(environ[i]);
        if (!environment->variables[i])
            return false;
        environment->count++;
    }
    return true;
}

/* Is `path` one of the parts of a list separated by any of `separators`? */
static bool is_list_part(const char *list, const char *path, const char *separators)
{
    size_t length = strlen(path);
    while (*list) {
        size_t part = strcspn(list, separators);
        if (part == length && strncmp(list, path, length) == 0)
            return true;
        list += part;
        list += strspn(list, separators);
    }
    return false;
}

/* Add the path to a list variable, in front or at the end; once. */
static bool add_to_list(struct run_environment *environment, const char *name, const char *path,
                        const char *separators, bool in_front)
{
    const char *old = get(environment, name);
    if (!old || !*old)
        return set_variable(environment, name, path);
    if (is_list_part(old, path, separators))
        return true;
    PROF_FREED char *list = NULL;
    if (asprintf(&list, "%s:%s", in_front ? path : old, in_front ? old : path) < 0)
        return false;
    return set_variable(environment, name, list);
}

static void inject(struct run_environment *environment, const char *domain)
{
    if (environment->injected[0])
        strcat(environment->injected, "+");
    strcat(environment->injected, domain);
}

/* One path only is possible: perfkit's wins, and the capture says what it replaced. */
static bool override_variable(struct run_environment *environment, const char *item,
                              const char *name, const char *path)
{
    inject(environment, item);
    const char *old = get(environment, name);
    if (old && *old && strcmp(old, path) != 0)
        note(environment, item, "%s was set to %s; perfkit replaced it", name, old);
    return set_variable(environment, name, path);
}

/* Why the library is not preloaded, or NULL. What LD_PRELOAD adds are lifecycle hooks only. */
static const char *preload_obstacle(const struct run_injection *injection, char *buffer,
                                    size_t size)
{
    const struct elf_facts *target = injection->target;
    if (!injection->preload)
        return "switched off by --no-preload";
    if (strpbrk(injection->collector, " :$"))
        return "the collector's path holds a blank, a colon or a $, which LD_PRELOAD cannot "
               "express";
    if (target->sanitizer[0]) {
        snprintf(buffer, size, "%s needs %s, which must be loaded first", target->path,
                 target->sanitizer);
        return buffer;
    }
    if (target->foreign) {
        snprintf(buffer, size, "%s is built for another machine or C library than the collector",
                 target->path);
        return buffer;
    }
    return NULL;
}

static bool add_preload(struct run_environment *environment, const struct run_injection *injection)
{
    char buffer[PATH_MAX + 128];
    const char *obstacle = preload_obstacle(injection, buffer, sizeof buffer);
    environment->preloaded = !obstacle;
    if (!obstacle) /* last: a sanitizer's runtime insists on being first */
        return add_to_list(environment, "LD_PRELOAD", injection->collector, " :", false);
    note(environment, "preload",
         "not loaded: %s; how processes end and short-lived children are not seen", obstacle);
    return true;
}

static bool add_opencl(struct run_environment *environment, const struct run_injection *injection)
{
    if (strchr(injection->collector, ':')) {
        note(
            environment, "opencl refused",
            "not recorded: the collector's path holds a colon, which OPENCL_LAYERS cannot express: "
            "give a --spool-dir without one");
        return true;
    }
    struct opencl_loader loader;
    opencl_loader_find(&loader);
    if (loader.path[0] && !loader.layers)
        note(environment, "opencl",
             "the OpenCL loader %s knows no layers: OpenCL calls through it are not recorded%s%s",
             loader.path, loader.better[0] ? "; one that does is in " : "", loader.better);
    inject(environment, "opencl");
    return add_to_list(environment, "OPENCL_LAYERS", injection->collector, ":", false);
}

static bool add_domains(struct run_environment *environment, const struct run_injection *injection)
{
    bool ok = true;
    if (trace_names_domain(injection->trace, "nvtx"))
        ok = ok &&
             override_variable(environment, "nvtx", "NVTX_INJECTION64_PATH", injection->collector);
    if (trace_names_domain(injection->trace, "opencl")) {
        if (PERFKIT_HAVE_OPENCL)
            ok = ok && add_opencl(environment, injection);
        else if (injection->trace)
            note(environment, "opencl", "not recorded: this perfkit is built without OpenCL");
    }
    if (trace_names_domain(injection->trace, "cuda")) {
        if (PERFKIT_HAVE_CUDA)
            ok = ok && override_variable(environment, "cuda", "CUDA_INJECTION64_PATH",
                                         injection->collector);
        else if (injection->trace || access("/proc/driver/nvidia/version", F_OK) == 0)
            note(environment, "cuda",
                 "not recorded: this perfkit is built without the CUDA collector (see perfkit "
                 "doctor)");
    }
    return ok;
}

/* Python runs the sitecustomize that it finds first; ours hands over to the program's own. */
static bool add_pytorch(struct run_environment *environment, const struct run_injection *injection)
{
    char folder[PATH_MAX];
    if (!injection->pytorch)
        return true;
    if (!pytorch_folder(injection->collector, folder))
        note(environment, "pytorch",
             "not named: python/sitecustomize.py is not beside the collector: install perfkit "
             "again");
    else if (strchr(folder, ':'))
        note(environment, "pytorch",
             "not named: the path of perfkit holds a colon, which PYTHONPATH cannot express");
    else
        return add_to_list(environment, "PYTHONPATH", folder, ":", true);
    return true;
}

static void note_target(struct run_environment *environment, const struct elf_facts *target)
{
    if (target->privileged)
        note(environment, "preload",
             "%s runs with other privileges than yours, so the loader ignores the collector: "
             "record it as its own user",
             target->path);
    else if (target->elf && !target->dynamic)
        note(environment, "preload",
             "%s is linked statically: the loader brings nothing in; only what it starts is "
             "recorded",
             target->path);
}

static bool add_options(struct run_environment *environment, const struct run_injection *injection)
{
    char text[COLLECTOR_OPTIONS];
    size_t used = (size_t)snprintf(text, sizeof text, "spool-limit=%llu",
                                   (unsigned long long)injection->spool_limit);
    bool first = true;
    for (size_t i = 0; injection->trace && run_domains[i]; i++) {
        if (!trace_names_domain(injection->trace, run_domains[i]))
            continue;
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", first ? ",trace=" : "+",
                                 run_domains[i]);
        first = false;
    }
    if (environment->injected[0])
        used +=
            (size_t)snprintf(text + used, sizeof text - used, ",inject=%s", environment->injected);
    const char *cupti = getenv(CUPTI_VARIABLE);
    if (cupti && *cupti && !strchr(cupti, ',') && used + strlen(cupti) + 16 < sizeof text)
        used += (size_t)snprintf(text + used, sizeof text - used, ",cupti-path=%s", cupti);
    used += (size_t)snprintf(text + used, sizeof text - used, "%s", injection->options);
    if (used >= sizeof text) {
        errno = E2BIG;
        return false;
    }
    /* Loaded by the OpenCL loader, the collector comes too late to see the list whole. */
    const char *layers = get(environment, "OPENCL_LAYERS");
    if (!environment->preloaded && layers && !strchr(layers, ',') &&
        used + strlen(layers) + 32 < sizeof text)
        snprintf(text + used, sizeof text - used, ",opencl_layers=%s", layers);
    return set_variable(environment, "PERFKIT_OPTIONS", text);
}

bool environment_build(struct run_environment *environment, const struct run_injection *injection)
{
    *environment = (struct run_environment){0};
    if (!copy_environment(environment))
        return false;
    note_target(environment, injection->target);
    return set_variable(environment, "PERFKIT_DIR", injection->spool) &&
           add_preload(environment, injection) && add_domains(environment, injection) &&
           add_pytorch(environment, injection) && add_options(environment, injection);
}

static void forget_variables(struct run_environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        free(environment->variables[i]);
    free(environment->variables);
    environment->variables = NULL;
    environment->count = environment->room = 0;
}

void environment_free(struct run_environment *environment)
{
    forget_variables(environment);
    *environment = (struct run_environment){0};
}

void environment_watch(struct run_environment *environment, const char *collector)
{
    forget_variables(environment);
    environment->watched = environment->preloaded ? NULL : collector;
}

void environment_look(struct run_environment *environment, pid_t pid, struct prof_ingest *ingest)
{
    static const struct {
        const char *domain, *name, *item;
    } variables[] = {
        {"cuda", "CUDA_INJECTION64_PATH", "cuda refused"},
        {"nvtx", "NVTX_INJECTION64_PATH", "nvtx refused"},
        {"opencl", "OPENCL_LAYERS", "opencl refused"},
    };
    char value[4096], text[160];
    for (size_t i = 0; environment->watched && i < sizeof variables / sizeof variables[0]; i++) {
        if (environment->changed & 1u << i || !strstr(environment->injected, variables[i].domain) ||
            !process_variable(pid, variables[i].name, value, sizeof value) ||
            is_list_part(value, environment->watched, ":"))
            continue;
        environment->changed |= 1u << i;
        snprintf(text, sizeof text,
                 "not recorded in the command: %s was set to another value inside the run; leave "
                 "it as perfkit run sets it",
                 variables[i].name);
        prof_ingest_note(ingest, PROF_HEALTH_collector_refused, variables[i].item, text, NULL);
    }
}

/* ---- the executable -------------------------------------------------------------------------- */

/* Reads the target's ELF headers before it is started. A preloaded library would stop a program
 * built with AddressSanitizer (its runtime insists on being first) or for another C library, and
 * makes the loader of a 32-bit program complain on stderr; static and set-user-id programs ignore
 * it. All of that is known from a few hundred bytes, and reported in the trust block. */

#define MOST_HEADERS 64
#define MOST_DYNAMIC 512

static bool is_program(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

static bool find_command(const char *command, char out[PATH_MAX])
{
    if (strchr(command, '/')) {
        snprintf(out, PATH_MAX, "%s", command);
        return is_program(out);
    }
    const char *path = getenv("PATH");
    if (!path)
        path = "/bin:/usr/bin";
    for (;;) {
        size_t length = strcspn(path, ":");
        int used =
            snprintf(out, PATH_MAX, "%.*s%s%s", (int)length, path, length ? "/" : "./", command);
        if (used < PATH_MAX && is_program(out))
            return true;
        if (!path[length])
            return false;
        path += length + 1;
    }
}

static bool read_target_at(int fd, void *out, size_t size, uint64_t offset)
{
    return offset <= INT64_MAX && pread(fd, out, size, (off_t)offset) == (ssize_t)size;
}

/* The interpreter of a script: what follows "#!" up to a blank. */
static bool script_interpreter(int fd, char out[PATH_MAX])
{
    char line[PATH_MAX];
    ssize_t length = pread(fd, line, sizeof line - 1, 0);
    if (length < 3 || line[0] != '#' || line[1] != '!')
        return false;
    line[length] = '\0';
    char *at = line + 2 + strspn(line + 2, " \t");
    at[strcspn(at, " \t\n")] = '\0';
    snprintf(out, PATH_MAX, "%s", at);
    return *at != '\0';
}

/* Virtual address to file offset by the loaded segments. */
static bool to_offset(const ElfW(Phdr) * headers, unsigned count, uint64_t address,
                      uint64_t *offset)
{
    for (unsigned i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && address >= headers[i].p_vaddr &&
            address - headers[i].p_vaddr < headers[i].p_filesz) {
            *offset = address - headers[i].p_vaddr + headers[i].p_offset;
            return true;
        }
    return false;
}

/* A sanitizer among the DT_NEEDED entries. */
static void find_sanitizer(int fd, const ElfW(Phdr) * headers, unsigned count,
                           const ElfW(Phdr) * dynamic, struct elf_facts *facts)
{
    static const char *const names[] = {"libasan.so",  "libtsan.so",       "libmsan.so",
                                        "liblsan.so",  "libclang_rt.asan", "libclang_rt.tsan",
                                        "libhwasan.so"};
    static ElfW(Dyn) entries[MOST_DYNAMIC];
    size_t size = dynamic->p_filesz < sizeof entries ? dynamic->p_filesz : sizeof entries;
    size_t number = size / sizeof entries[0];
    uint64_t strings = 0;
    if (!read_target_at(fd, entries, number * sizeof entries[0], dynamic->p_offset))
        return;
    for (size_t i = 0; i < number; i++)
        if (entries[i].d_tag == DT_STRTAB &&
            !to_offset(headers, count, entries[i].d_un.d_ptr, &strings))
            return;
    for (size_t i = 0; i < number && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag != DT_NEEDED)
            continue;
        char name[sizeof facts->sanitizer] = "";
        if (pread(fd, name, sizeof name - 1, (off_t)(strings + entries[i].d_un.d_val)) <= 0)
            continue;
        for (size_t n = 0; n < sizeof names / sizeof names[0]; n++)
            if (strncmp(name, names[n], strlen(names[n])) == 0)
                strcpy(facts->sanitizer, name);
    }
}

/* Of this perfkit: its machine, 0 = not known, and its loader, "" = none. */
static unsigned read_own_elf(char loader[PATH_MAX])
{
    ElfW(Ehdr) file = {0};
    ElfW(Phdr) header;
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = fd >= 0 && read_target_at(fd, &file, sizeof file, 0);
    loader[0] = '\0';
    for (unsigned i = 0; known && i < file.e_phnum && i < MOST_HEADERS; i++)
        if (read_target_at(fd, &header, sizeof header, file.e_phoff + i * sizeof header) &&
            header.p_type == PT_INTERP && header.p_filesz < PATH_MAX &&
            !read_target_at(fd, loader, header.p_filesz, header.p_offset))
            loader[0] = '\0';
    if (fd >= 0)
        close(fd);
    return known ? file.e_machine : 0;
}

static void read_elf(int fd, struct elf_facts *facts)
{
    ElfW(Ehdr) file;
    static ElfW(Phdr) headers[MOST_HEADERS];
    if (!read_target_at(fd, &file, sizeof file, 0) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    facts->elf = true;
    const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    char own_loader[PATH_MAX];
    unsigned own_machine = read_own_elf(own_loader);
    if (file.e_ident[EI_CLASS] != own_class || (own_machine && file.e_machine != own_machine)) {
        facts->foreign = true;
        facts->dynamic = true;
        return;
    }
    unsigned count = file.e_phnum < MOST_HEADERS ? file.e_phnum : MOST_HEADERS;
    if (file.e_phentsize != sizeof headers[0] ||
        !read_target_at(fd, headers, count * sizeof headers[0], file.e_phoff))
        return;
    for (unsigned i = 0; i < count; i++) {
        char interpreter[PATH_MAX] = "";
        if (headers[i].p_type == PT_INTERP && headers[i].p_filesz < sizeof interpreter) {
            facts->dynamic = true;
            /* By file name: musl's differs from glibc's, and so do machines. */
            if (read_target_at(fd, interpreter, headers[i].p_filesz, headers[i].p_offset))
                facts->foreign =
                    *own_loader && strcmp(prof_file_name(own_loader), prof_file_name(interpreter));
        } else if (headers[i].p_type == PT_DYNAMIC) {
            find_sanitizer(fd, headers, count, &headers[i], facts);
        }
    }
}

static bool is_privileged(int fd)
{
    struct stat info;
    if (fstat(fd, &info) < 0)
        return false;
    if ((info.st_mode & S_ISUID) && info.st_uid != geteuid())
        return true;
    if ((info.st_mode & S_ISGID) && (info.st_mode & S_IXGRP) && info.st_gid != getegid())
        return true;
    return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

void elf_examine(const char *command, struct elf_facts *facts)
{
    *facts = (struct elf_facts){0};
    if (!find_command(command, facts->path))
        return;
    facts->found = true;
    int fd = prof_open_regular(AT_FDCWD, facts->path, O_RDONLY);
    if (fd < 0) { /* execute-only: nothing can be learnt, so nothing is held against it */
        facts->elf = facts->dynamic = true;
        return;
    }
    char interpreter[PATH_MAX];
    if (script_interpreter(fd, interpreter)) {
        close(fd);
        snprintf(facts->path, sizeof facts->path, "%s", interpreter);
        fd = prof_open_regular(AT_FDCWD, facts->path, O_RDONLY);
        if (fd < 0) {
            facts->elf = facts->dynamic = true;
            return;
        }
    }
    facts->privileged = is_privileged(fd);
    read_elf(fd, facts);
    close(fd);
}
