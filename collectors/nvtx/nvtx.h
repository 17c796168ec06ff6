/* What the files of the NVTX collector share.
 *
 * Handles that a program gets from us (domains, registered strings, payload layouts) are pointers
 * to struct nvtx_object in an arena that lives as long as the process and is inherited by fork.
 * Ids in the spool are not inherited: a forked child has a spool of its own, so every cached id
 * carries the generation it was made in and is made again when that is over. */
#ifndef PERFKIT_COLLECTORS_NVTX_NVTX_H
#define PERFKIT_COLLECTORS_NVTX_NVTX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "collectors/core/collector.h"
#include "perfkit/nvtx_abi.h"

enum nvtx_kind {
    NVTX_DOMAIN = 1, /* number = index from 1; the default domain is no object but index 0 */
    NVTX_STRING,
    NVTX_CATEGORY, /* number = category */
    NVTX_SCHEMA,   /* number = schema id; text = the layout's name */
    NVTX_RESOURCE, /* one for all: what nvtxDomainResourceCreate returns */
    NVTX_ENUM,     /* number = id of an enumeration that layouts refer to */
};

struct nvtx_object {
    uint32_t magic;
    uint32_t kind;
    const struct nvtx_object *domain; /* NULL = default */
    uint64_t number;
    uint64_t hash;
    _Atomic uint64_t cached;           /* generation << 32 | string id */
    struct nvtx_object *_Atomic older; /* categories: the one made before */
    _Atomic uint64_t listed;           /* categories: 1 once they are */
    const void *_Atomic kept;          /* schemas, enumerations: layout.c's description of them */
    uint32_t length;
    char text[]; /* NUL-terminated */
};

/* ---- text.c ---------------------------------------------------------------------------------- */

/* UTF-8 of a wide string: in the caller's buffer when it fits, else in a temporary mapping. */
struct nvtx_text {
    const char *text; /* NULL when the wide string was NULL or no memory could be had */
    size_t length;
    void *mapping;
    size_t mapping_bytes;
    char buffer[1024];
};
void nvtx_narrow(struct nvtx_text *text, const wchar_t *wide);
void nvtx_narrow_done(struct nvtx_text *text);

/* ---- objects.c ------------------------------------------------------------------------------- */

/* The object with this key, made at first sight; NULL when there is no memory. The same key gives
 * the same object, so that equal names are one domain wherever they were created. */
struct nvtx_object *nvtx_object_get(enum nvtx_kind kind, const struct nvtx_object *domain,
                                    uint64_t number, const char *text, size_t length);

/* A payload layout or an enumeration by id; NULL when it was never registered. */
struct nvtx_object *nvtx_object_find(enum nvtx_kind kind, const struct nvtx_object *domain,
                                     uint64_t id);

/* Zeroed memory for as long as the process lives; NULL when there is none. */
void *nvtx_keep(size_t bytes);

/* The object behind a handle, or NULL for NULL and for what is not a handle of ours. */
struct nvtx_object *nvtx_object_of(const void *handle, enum nvtx_kind kind);

/* The string id of the object's text in the current spool. */
uint32_t nvtx_object_id(struct nvtx_object *object);

static inline struct nvtx_object *nvtx_domain_of(const void *handle)
{
    return handle ? nvtx_object_of(handle, NVTX_DOMAIN) : NULL;
}
static inline uint32_t nvtx_domain_index(const struct nvtx_object *domain)
{
    return domain ? (uint32_t)domain->number : 0;
}
static inline uint32_t nvtx_domain_id(struct nvtx_object *domain)
{
    return domain ? nvtx_object_id(domain) : 0;
}
/* The domain with this index; NULL for 0 and for indexes that were never given. */
struct nvtx_object *nvtx_domain_at(uint32_t index);

/* `category` of `domain` has this name. */
void nvtx_name_category(struct nvtx_object *domain, uint32_t category, const char *name,
                        size_t length);
/* Define every category named so far: in the new spool, at its first event. */
void nvtx_define_categories(void);
/* A thread by its kernel id, or a CUDA object by the program's handle or ordinal. */
void nvtx_name_object(enum wire_named what, uint64_t object, const char *name, size_t length);

/* ---- depth.c: how deep each thread is in each domain ----------------------------------------- */

/* Returns the 0-based level of the range that opens, PK_NVTX_NO_PUSH_POP_TRACKING without memory.
 * *recorded: false on return when that could not be kept. *captures: it opened a window; false on
 * return when an outer one has that part already. */
int nvtx_depth_push(uint32_t domain, bool *recorded, bool *captures);

enum nvtx_pop { NVTX_POP_NONE, NVTX_POP_UNRECORDED, NVTX_POP_OURS };
/* Closes the innermost range; its level in *level, whether a window closes with it in *captures.
 * UNRECORDED: its push is not in this process's spool, because no window was open or because it
 * was the parent's, before a fork. NONE: nothing is open. */
enum nvtx_pop nvtx_depth_pop(uint32_t domain, int *level, bool *captures);

/* The ranges of PyTorch that the calling thread has open, the innermost last (pytorch.c). */
#define NVTX_OPEN 64u
struct nvtx_open {
    uint32_t count, deep; /* deep: so many more are open, which are not listed */
    struct {
        const void *key;
        uint64_t since;
    } range[NVTX_OPEN];
};
struct nvtx_open *nvtx_open_ranges(void); /* NULL without memory */

/* ---- events.c: the ranges of --capture-range=nvtx:NAME --------------------------------------- */

extern bool nvtx_capturing;    /* there is such an option; nothing else is looked at without it */
void nvtx_capture_start(void); /* reads the option */
/* Is this the range? Then its window is opened, before the range itself is recorded. `message` as
 * in event attributes, of `type` PK_NVTX_MESSAGE_*. */
bool nvtx_capture_opens(const struct nvtx_object *domain, int32_t type, const void *message);
/* Is `message` this text, or with `numbered` this text and a number? */
bool nvtx_message_is(int32_t type, const void *message, const char *text, bool numbered);

/* ---- inject.c -------------------------------------------------------------------------------- */

/* Is there a perfkit to record for? First in every handler; also greets each new spool. */
bool nvtx_begin(void);
/* The same, and a window is open: what begins now is recorded. */
bool nvtx_records(void);
/* Or the range is one that times the iterations in a pause. `message` as in event attributes. */
bool nvtx_records_range(const struct nvtx_object *domain, int32_t type, const void *message);
uint32_t nvtx_generation(void);
bool nvtx_greeted(void); /* this generation's spool has had its first event */
/* Before anything else of a module or extension; false = the user did not select NVTX. */
bool nvtx_wanted(void);

/* Say once per spool that something of the program's annotations is not kept. */
enum nvtx_note { NVTX_NOTE_PAYLOAD, NVTX_NOTE_EVENT, NVTX_NOTE_COUNTER, NVTX_NOTES };
void nvtx_note(enum nvtx_note note);

/* ---- events.c ------------------------------------------------------------------------------
 * `event` is NULL when it is not recorded: the levels are kept all the same. `captures`:
 * nvtx_capture_opens said so. */

/* What an event says, resolved to ids. */
struct nvtx_event {
    uint32_t message;
    uint32_t category;
    uint32_t color;
    bool has_color;
    uint8_t payload_type; /* enum wire_payload */
    uint64_t payload;
    bool has_work, has_sequence;
    struct perfkit_work work;
    uint64_t sequence;                           /* of PyTorch's operators */
    uint32_t inputs;                             /* string id of theirs; 0 = not known */
    const struct pk_nvtx_payload_data *payloads; /* whose fields follow the range; the caller's */
    size_t payload_count;
};
int nvtx_push(struct nvtx_object *domain, const struct nvtx_event *event, bool captures);
/* `payloads` (NULL = none): what the range is given at its end. */
int nvtx_pop(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads, size_t count);
int nvtx_pop_at(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads,
                size_t count, uint64_t time);
pk_nvtx_range_id nvtx_start(struct nvtx_object *domain, const struct nvtx_event *event,
                            bool captures);
void nvtx_end(pk_nvtx_range_id id);
void nvtx_mark(struct nvtx_object *domain, const struct nvtx_event *event);

/* ---- text.c: the texts of PyTorch's profiler ------------------------------------------------- */

extern bool nvtx_torch;      /* it was switched on from outside: its texts are taken apart */
void nvtx_torch_start(void); /* reads the option */
/* How much of the text is the operator's name; its sequence number and inputs go into *event. */
size_t nvtx_torch_name(const char *text, struct nvtx_event *event);

/* ---- handlers.c, objects.c: write the handlers into one client's tables ---------------------- */

void nvtx_fill(pk_nvtx_function_table table, unsigned count, const pk_nvtx_function *handlers,
               unsigned handler_count);
void nvtx_fill_core(pk_nvtx_function_table table, unsigned count);
void nvtx_fill_core2(pk_nvtx_function_table table, unsigned count);
void nvtx_fill_cuda(pk_nvtx_function_table table, unsigned count);
void nvtx_fill_cudart(pk_nvtx_function_table table, unsigned count);

/* ---- layout.c -------------------------------------------------------------------------------- */

#define NVTX_FIELDS 8u /* most that are kept of one payload */

struct nvtx_value {
    struct nvtx_object *name; /* of the field; NULL = the payload is this one value */
    uint8_t type;             /* enum wire_payload; NONE = a text that was NULL or found no room */
    uint64_t bits;
};
uint64_t nvtx_new_id(void);
/* Both return the id to use from now on. */
uint64_t nvtx_layout_register(struct nvtx_object *domain,
                              const struct pk_nvtx_schema_attributes *schema);
uint64_t nvtx_enum_register(struct nvtx_object *domain,
                            const struct pk_nvtx_enum_attributes *given);
/* The value of a payload whose layout is one predefined type; false when it is something else. */
bool nvtx_plain_value(const struct pk_nvtx_payload_data *payload, struct nvtx_value *value);
/* The text that an event of this layout has as its message; 0 = none. */
uint32_t nvtx_layout_message(const struct nvtx_object *schema,
                             const struct pk_nvtx_payload_data *payload);
/* Its other values, at most NVTX_FIELDS; *whole: there is nothing else in it. */
size_t nvtx_layout_values(const struct nvtx_object *schema,
                          const struct pk_nvtx_payload_data *payload, struct nvtx_value *values,
                          bool *whole);

/* ---- payload.c ------------------------------------------------------------------------------- */

/* Take out of an event's extended payloads what an event has one of: message, number, work. */
void nvtx_read_payloads(struct nvtx_object *domain, const struct pk_nvtx_payload_data *payloads,
                        size_t count, struct nvtx_event *event);
/* Send the fields of the payloads, for the innermost open range of the domain or (id not 0) a
 * started one. `domain_id` as nvtx_domain_id says. */
void nvtx_send_fields(struct nvtx_object *domain, uint32_t domain_id, uint64_t id,
                      const struct pk_nvtx_payload_data *payloads, size_t count);

#endif
