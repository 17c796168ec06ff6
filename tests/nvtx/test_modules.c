/* Injection by environment alone: an executable and two shared objects, each with its own slots,
 * all seen by one injection library (the collector over the recording core of fake.h). Arguments:
 * the injection library, the two shared objects, whether they use the vendor's headers. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perfkit/annotate.h"
#include "tests/nvtx/fake.h"

static const struct fake_record *(*at)(size_t);
static size_t (*count)(void);
static const char *(*text)(uint32_t, size_t *);

static int has(enum wire_type type, const char *message)
{
    int n = 0;
    for (size_t i = 0; i < count(); i++) {
        const struct fake_record *record = at(i);
        uint32_t id = record->head.type == WIRE_NAME ? record->name.name : record->range.message;
        n += record->head.type == type && strcmp(text(id, NULL), message) == 0;
    }
    return n;
}

static int run(const char *path)
{
    void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*module_run)(void) = module ? (int (*)(void))dlsym(module, "module_run") : NULL;
    return module_run ? module_run() : -100;
}

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

int main(int argc, char **argv)
{
    EXPECT(argc == 5);
    setenv("NVTX_INJECTION64_PATH", argv[1], 1);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    EXPECT(library);
    at = (const struct fake_record *(*)(size_t))dlsym(library, "fake_at");
    count = (size_t(*)(void))dlsym(library, "fake_count");
    text = (const char *(*)(uint32_t, size_t *))dlsym(library, "fake_text");
    EXPECT(at && count && text);

    perfkit_range_push("pushed in the program");
    perfkit_work_push("work", 1.0, 2.0, 3.0);
    perfkit_work_pop();
    perfkit_range_pop();
    EXPECT(run(argv[2]) == 0);
    EXPECT(run(argv[3]) == 0);
    EXPECT(has(WIRE_RANGE_PUSH, "pushed in the program") == 1);
    EXPECT(has(WIRE_RANGE_PUSH, "work") == 1);
    EXPECT(has(WIRE_RANGE_PUSH, "pushed in a") == 1);
    EXPECT(has(WIRE_RANGE_PUSH, "pushed in b") == 1);
    if (strcmp(argv[4], "nvtx3") == 0) {
        EXPECT(has(WIRE_RANGE_PUSH, "registered in a") == 1);
        EXPECT(has(WIRE_RANGE_PUSH, "registered in b") == 1);
        EXPECT(has(WIRE_RANGE_START, "started in a") == 1);
        EXPECT(has(WIRE_MARK, "marked in b") == 1);
        EXPECT(has(WIRE_RANGE_PUSH, "payload in a") == 1);
        EXPECT(has(WIRE_RANGE_PUSH, "payload in b") == 1);
        EXPECT(has(WIRE_NAME, "thread of a") == 1);
        EXPECT(has(WIRE_NAME, "category of b") == 1);
    }
    return 0;
}
