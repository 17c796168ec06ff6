/* The object files that stacks lead through, found without a lock of the loader's, and sent to
 * perfkit (WIRE_MODULE) with the first stack through them. */
#ifndef PERFKIT_COLLECTORS_STACKS_MODULES_H
#define PERFKIT_COLLECTORS_STACKS_MODULES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "collectors/stacks/cfi.h"

#define MODULES 4094u
#define MODULE_BEYOND 0xfffu /* the number of all those for which there is no slot */

struct stacks_module {
    uint64_t start, end;      /* addresses */
    struct cfi_tables tables; /* header 0: it has none */
    const void *loaded_as;    /* the loader's name for it (struct link_map), NULL = not known */
    uint64_t name;            /* hash of the loader's name */
    uint32_t path, build_id;  /* string ids */
    _Atomic uint32_t state;   /* enum stacks_module_state */
    bool driver; /* of the driver or of perfkit: the stack of the program starts with its caller */
};
enum stacks_module_state { MODULE_UNUSED, MODULE_CHANGING, MODULE_LOADED, MODULE_GONE };

/* Zeroed memory that fork wipes; part of struct stacks_state. */
struct stacks_modules {
    _Atomic uint32_t count;      /* slots that were ever taken */
    _Atomic uint32_t generation; /* of what lies where: grows when something went away */
    struct stacks_module slots[MODULES];
};

/* The number (1 ...) of the module at `pc`, 0 = none or not known yet, MODULE_BEYOND = there is one
 * and no slot for it. Any thread, signal handlers too; defines it at first sight. */
uint32_t stacks_module_at(struct stacks_modules *modules, uint64_t pc);

/* Does module `number` still lie at `pc`, as far as the loader can say? For data learned of it
 * where no component reports that it was unloaded. */
bool stacks_module_is_at(const struct stacks_modules *modules, uint32_t number, uint64_t pc);

/* Is dlclose ours, so that what the program unloads is known before anything else can lie there?
 * The C library's own unloading passes it by. Set by stacks_modules_start. */
extern bool stacks_unloads_seen;

/* What went away since: called after dlclose, and by the helper thread now and then. On a C library
 * without _dl_find_object (before glibc 2.35) new ones are found here too. */
void stacks_modules_look(struct stacks_modules *modules);

/* Once, before anything else; not on the launch path. */
void stacks_modules_start(void);

#endif
