/* A look at the program that is about to be executed: does our library do it harm? A handful of
 * small reads, about 5 us; scripts and what cannot be read count as harmless. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "collectors/host/host.h"

#define MAX_HEADERS 32u
#define MAX_DYNAMIC 96u
#define MAX_NEEDED 64u
#define MAX_PATH 4096u

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#else
#error "add the ELF machine of this architecture"
#endif

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static bool is_sanitizer(const char *library)
{
    static const char *const prefixes[] = {"libasan.", "libhwasan.", "libtsan.", "libclang_rt.asan",
                                           "libclang_rt.hwasan"};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (strncmp(library, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

static bool needs_sanitizer(int fd, const Elf64_Phdr *headers, unsigned count)
{
    Elf64_Dyn dynamic[MAX_DYNAMIC];
    size_t entries = 0;
    uint64_t strings = 0, strings_offset = 0;

    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type != PT_DYNAMIC)
            continue;
        ssize_t n =
            pread(fd, dynamic,
                  headers[i].p_filesz < sizeof dynamic ? headers[i].p_filesz : sizeof dynamic,
                  (off_t)headers[i].p_offset);
        entries = n > 0 ? (size_t)n / sizeof *dynamic : 0;
    }
    for (size_t i = 0; i < entries; i++) {
        if (dynamic[i].d_tag == DT_STRTAB)
            strings = dynamic[i].d_un.d_ptr;
    }
    for (unsigned i = 0; i < count; i++) {
        if (headers[i].p_type == PT_LOAD && strings >= headers[i].p_vaddr &&
            strings - headers[i].p_vaddr < headers[i].p_filesz)
            strings_offset = strings - headers[i].p_vaddr + headers[i].p_offset;
    }
    unsigned needed = 0;
    for (size_t i = 0; strings_offset && i < entries && needed < MAX_NEEDED; i++) {
        char name[32];
        if (dynamic[i].d_tag == DT_NULL)
            break;
        if (dynamic[i].d_tag != DT_NEEDED)
            continue;
        needed++;
        ssize_t n =
            pread(fd, name, sizeof name - 1, (off_t)(strings_offset + dynamic[i].d_un.d_val));
        if (n <= 0)
            continue;
        name[n] = '\0';
        if (is_sanitizer(name))
            return true;
    }
    return false;
}

bool host_elf_takes_preload_fd(int fd)
{
    Elf64_Ehdr header;
    Elf64_Phdr headers[MAX_HEADERS];
    int saved = errno;
    bool takes = true;

    if (read_at(fd, &header, sizeof header, 0) && memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
        takes = header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == OUR_MACHINE;
        unsigned count = header.e_phnum < MAX_HEADERS ? header.e_phnum : MAX_HEADERS;
        if (takes && header.e_phentsize == sizeof *headers &&
            read_at(fd, headers, count * sizeof *headers, header.e_phoff))
            takes = !needs_sanitizer(fd, headers, count);
    }
    errno = saved;
    return takes;
}

/* -1 = no such file here, else the answer. */
static int look(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return -1;
    bool takes = host_elf_takes_preload_fd(fd);
    close(fd);
    return takes;
}

bool host_elf_takes_preload(const char *path)
{
    int saved = errno;
    bool takes = !path || look(path) != 0;
    errno = saved;
    return takes;
}

bool host_elf_takes_preload_file(const char *file)
{
    if (!file || !*file || strchr(file, '/'))
        return host_elf_takes_preload(file);
    int saved = errno, takes = -1;
    const char *at = getenv("PATH");
    size_t bytes = strlen(file) + 1;
    char path[MAX_PATH];
    if (!at)
        at = "/bin:/usr/bin"; /* as the C library does */
    while (takes < 0) {
        const char *end = strchrnul(at, ':');
        size_t folder = (size_t)(end - at);
        if (folder + 1 + bytes <= sizeof path) {
            memcpy(path, at, folder);
            path[folder] = '/';
            /* an empty element is the working directory */
            memcpy(path + folder + (folder > 0), file, bytes);
            takes = look(path);
        }
        if (!*end)
            break;
        at = end + 1;
    }
    errno = saved;
    return takes != 0;
}
