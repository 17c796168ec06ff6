/* Reads the target's ELF headers before it is started. A preloaded library would stop a program
 * built with AddressSanitizer (its runtime insists on being first) or for another C library, and
 * makes the loader of a 32-bit program complain on stderr; static and set-user-id programs ignore
 * it. All of that is known from a few hundred bytes, and told in the trust block. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli/run_elf.h"
#include "libprof/base/regular.h"

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

/* The loader of this perfkit, by file name: musl's differs from glibc's, and so do machines. */
static bool same_loader(const char *interpreter)
{
    static const char *ours;
    char other[PATH_MAX];
    static char own[PATH_MAX];
    if (!ours) {
        ours = "";
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        ElfW(Ehdr) file;
        ElfW(Phdr) header;
        if (fd >= 0 && read_target_at(fd, &file, sizeof file, 0))
            for (unsigned i = 0; i < file.e_phnum && i < MOST_HEADERS; i++)
                if (read_target_at(fd, &header, sizeof header, file.e_phoff + i * sizeof header) &&
                    header.p_type == PT_INTERP && header.p_filesz < sizeof own &&
                    read_target_at(fd, own, header.p_filesz, header.p_offset))
                    ours = own;
        if (fd >= 0)
            close(fd);
    }
    snprintf(other, sizeof other, "%s", interpreter);
    const char *a = strrchr(ours, '/'), *b = strrchr(other, '/');
    return !*ours || strcmp(a ? a : ours, b ? b : other) == 0;
}

static void read_elf(int fd, struct elf_facts *facts)
{
    ElfW(Ehdr) file;
    static ElfW(Phdr) headers[MOST_HEADERS];
    if (!read_target_at(fd, &file, sizeof file, 0) || memcmp(file.e_ident, ELFMAG, SELFMAG) != 0)
        return;
    facts->elf = true;
    const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
    ElfW(Ehdr) self = {0};
    int self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool known = self_fd >= 0 && read_target_at(self_fd, &self, sizeof self, 0);
    if (self_fd >= 0)
        close(self_fd);
    if (file.e_ident[EI_CLASS] != own_class || (known && file.e_machine != self.e_machine)) {
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
            if (read_target_at(fd, interpreter, headers[i].p_filesz, headers[i].p_offset))
                facts->foreign = !same_loader(interpreter);
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
