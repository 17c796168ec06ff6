/* See fake_core.h. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tests/stacks/fake_core.h"

#define TEXTS 4096u
#define TEXT_BYTES (1u << 20)

struct fake_core fake_core;

/* Not from malloc: a signal handler that adds a text may have interrupted it. */
static char text_bytes[TEXT_BYTES];
static const char *texts[TEXTS];
static unsigned text_count, text_bytes_used;
static _Atomic int locked;
static _Thread_local volatile int busy; /* a signal handler that comes now is turned away */

static bool lock(void)
{
    if (busy) {
        fake_core.turned_away++;
        return false;
    }
    busy = 1;
    while (atomic_exchange(&locked, 1))
        ;
    return true;
}

static void unlock(void)
{
    atomic_store(&locked, 0);
    busy = 0;
}

bool collector_active(void)
{
    return true;
}

uint64_t collector_now(void)
{
    return 1;
}

void collector_count(enum wire_count which, uint64_t n)
{
    __atomic_fetch_add(&fake_core.counts[which], n, __ATOMIC_RELAXED);
}

uint32_t collector_string(const char *text, size_t length)
{
    uint32_t id = 0;
    if (!lock())
        return 0;
    while (id < text_count && (strlen(texts[id]) != length || memcmp(texts[id], text, length) != 0))
        id++;
    if (id == text_count && text_count < TEXTS && length < TEXT_BYTES - text_bytes_used) {
        texts[text_count] = memcpy(text_bytes + text_bytes_used, text, length);
        text_bytes_used += (unsigned)length + 1;
        text_count++;
    }
    unlock();
    return id + 1;
}

uint32_t collector_text(const char *text)
{
    return collector_string(text, strlen(text));
}

const char *fake_core_text(uint32_t id)
{
    return id && id <= text_count ? texts[id - 1] : NULL;
}

static void define_stack(const struct wire_stack *stack)
{
    struct fake_stack *out = &fake_core.stacks[fake_core.stack_count++ % FAKE_DEFINED];
    out->id = stack->head.aux;
    out->count = stack->count;
    out->flags = stack->head.flags;
    memcpy(out->entries, stack->entries, stack->count * sizeof stack->entries[0]);
}

bool collector_define(const void *record)
{
    const struct wire_head *head = record;
    if (fake_core.refuse || !lock())
        return false;
    if (head->type == WIRE_MODULE)
        memcpy(&fake_core.modules[fake_core.module_count++ % FAKE_DEFINED], record,
               sizeof(struct wire_module));
    else if (head->type == WIRE_STACK)
        define_stack(record);
    unlock();
    return true;
}

const struct fake_stack *fake_core_stack(uint32_t id)
{
    for (unsigned i = 0; i < fake_core.stack_count && i < FAKE_DEFINED; i++) {
        if (fake_core.stacks[i].id == id)
            return &fake_core.stacks[i];
    }
    return NULL;
}

void collector_register(const struct collector_source *source)
{
    fake_core.source = source;
}

bool collector_option(const char *name, char *value, size_t size)
{
    const char *at = fake_core.options ? strstr(fake_core.options, name) : NULL;
    size_t length = strlen(name);
    if (!at || at[length] != '=')
        return false;
    size_t bytes = strcspn(at + length + 1, ",");
    if (bytes >= size)
        return false;
    memcpy(value, at + length + 1, bytes);
    value[bytes] = '\0';
    return true;
}
