/* The NVTX collector, driven through the protocol itself: a client here hands its slot tables to
 * InitializeInjectionNvtx2 and calls through them, as the vendor's headers do. Against the
 * recording core of fake.h; no GPU, no CUDA, no spool. */
#include <check.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "perfkit/nvtx_abi.h"
#include "tests/nvtx/fake.h"

int InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table);
int InitializeInjectionNvtxExtension(struct pk_nvtx_ext_module_info *info);

/* ---- two clients ------------------------------------------------------------------------------
 */

struct client {
    pk_nvtx_function slot[PK_NVTX_MODULE_COUNT][16];
    pk_nvtx_function *table[PK_NVTX_MODULE_COUNT][17];
    intptr_t payload[PK_NVTX_PAYLOAD_SLOT_COUNT];
    intptr_t counters[PK_NVTX_PAYLOAD_SLOT_COUNT];
};
static struct client first, second, *attaching;
static uint32_t injection_version;

static int get_table(uint32_t module, pk_nvtx_function_table *table, unsigned *count)
{
    static const unsigned counts[] = {0,
                                      PK_NVTX_CORE_COUNT,
                                      PK_NVTX_CUDA_COUNT,
                                      PK_NVTX_OPENCL_COUNT,
                                      PK_NVTX_CUDART_COUNT,
                                      PK_NVTX_CORE2_COUNT,
                                      PK_NVTX_SYNC_COUNT};
    if (module == 0 || module >= PK_NVTX_MODULE_COUNT)
        return 0;
    *table = attaching->table[module];
    *count = counts[module];
    return 1;
}

static void set_version(uint32_t version)
{
    injection_version = version;
}

static const void *get_export(uint32_t id)
{
    static const struct pk_nvtx_export_callbacks callbacks = {sizeof callbacks, get_table};
    static const struct pk_nvtx_export_version_info version = {sizeof version, PK_NVTX_VERSION, 0,
                                                               set_version};
    return id == PK_NVTX_EXPORT_CALLBACKS      ? (const void *)&callbacks
           : id == PK_NVTX_EXPORT_VERSION_INFO ? (const void *)&version
                                               : NULL;
}

static int attach(struct client *client)
{
    memset(client, 0, sizeof *client);
    for (unsigned m = 1; m < PK_NVTX_MODULE_COUNT; m++)
        for (unsigned i = 1; i < 16; i++)
            client->table[m][i] = &client->slot[m][i];
    attaching = client;
    return InitializeInjectionNvtx2(get_export);
}

static int attach_extension(uint16_t module, intptr_t *slots, size_t count)
{
    struct pk_nvtx_ext_segment segment = {0, count, slots};
    struct pk_nvtx_ext_module_info info = {
        .nvtx_version = PK_NVTX_VERSION,
        .struct_size = sizeof info,
        .module_id = module,
        .segment_count = 1,
        .segments = &segment,
    };
    return InitializeInjectionNvtxExtension(&info);
}

#define CORE(client, id, type) ((type)(client).slot[PK_NVTX_MODULE_CORE][id])
#define CORE2(client, id, type) ((type)(client).slot[PK_NVTX_MODULE_CORE2][id])
#define PAYLOAD(id, type) ((type)first.payload[id])
#define push_a CORE(first, PK_NVTX_CORE_RANGE_PUSH_A, pk_nvtx_range_push_a_fn)
#define push_w CORE(first, PK_NVTX_CORE_RANGE_PUSH_W, pk_nvtx_range_push_w_fn)
#define push_ex CORE(first, PK_NVTX_CORE_RANGE_PUSH_EX, pk_nvtx_range_push_ex_fn)
#define pop CORE(first, PK_NVTX_CORE_RANGE_POP, pk_nvtx_range_pop_fn)
#define start_a CORE(first, PK_NVTX_CORE_RANGE_START_A, pk_nvtx_range_start_a_fn)
#define range_end CORE(first, PK_NVTX_CORE_RANGE_END, pk_nvtx_range_end_fn)
#define mark_a CORE(first, PK_NVTX_CORE_MARK_A, pk_nvtx_mark_a_fn)
#define mark_w CORE(first, PK_NVTX_CORE_MARK_W, pk_nvtx_mark_w_fn)
#define mark_ex CORE(first, PK_NVTX_CORE_MARK_EX, pk_nvtx_mark_ex_fn)
#define name_category CORE(first, PK_NVTX_CORE_NAME_CATEGORY_A, pk_nvtx_name_category_a_fn)
#define name_thread CORE(first, PK_NVTX_CORE_NAME_OS_THREAD_A, pk_nvtx_name_os_thread_a_fn)
#define domain_create CORE2(first, PK_NVTX_CORE2_DOMAIN_CREATE_A, pk_nvtx_domain_create_a_fn)
#define domain_create_w CORE2(first, PK_NVTX_CORE2_DOMAIN_CREATE_W, pk_nvtx_domain_create_w_fn)
#define domain_push                                                                                \
    CORE2(first, PK_NVTX_CORE2_DOMAIN_RANGE_PUSH_EX, pk_nvtx_domain_range_push_ex_fn)
#define domain_pop CORE2(first, PK_NVTX_CORE2_DOMAIN_RANGE_POP, pk_nvtx_domain_range_pop_fn)
#define domain_start                                                                               \
    CORE2(first, PK_NVTX_CORE2_DOMAIN_RANGE_START_EX, pk_nvtx_domain_range_start_ex_fn)
#define domain_name_category                                                                       \
    CORE2(first, PK_NVTX_CORE2_DOMAIN_NAME_CATEGORY_A, pk_nvtx_domain_name_category_a_fn)
#define register_a                                                                                 \
    CORE2(first, PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_A, pk_nvtx_domain_register_string_a_fn)
#define register_w                                                                                 \
    CORE2(first, PK_NVTX_CORE2_DOMAIN_REGISTER_STRING_W, pk_nvtx_domain_register_string_w_fn)

static void setup(void)
{
    fake_trace(1);
    fake_refuse(0);
    fake_close(0);
    fake_reset();
    ck_assert_int_eq(attach(&first), 1);
    ck_assert_int_eq(
        attach_extension(PK_NVTX_EXT_PAYLOAD, first.payload, PK_NVTX_PAYLOAD_SLOT_COUNT), 1);
}

static const char *name_of(const struct fake_record *record)
{
    return record ? fake_text(record->range.message, NULL) : "(no record)";
}

static struct pk_nvtx_event_attributes attributes(const char *message)
{
    return (struct pk_nvtx_event_attributes){
        .version = PK_NVTX_VERSION,
        .size = sizeof(struct pk_nvtx_event_attributes),
        .message_type = message ? PK_NVTX_MESSAGE_ASCII : PK_NVTX_MESSAGE_UNKNOWN,
        .message.ascii = message,
    };
}

/* ---- attaching --------------------------------------------------------------------------------
 */

START_TEST(attaches_to_each_module)
{
    ck_assert_int_eq(attach(&second), 1);
    ck_assert_uint_eq(injection_version, PK_NVTX_VERSION);
    for (unsigned id = 1; id < PK_NVTX_CORE_COUNT; id++) {
        ck_assert_ptr_nonnull((void *)first.slot[PK_NVTX_MODULE_CORE][id]);
        ck_assert_ptr_nonnull((void *)second.slot[PK_NVTX_MODULE_CORE][id]);
    }
    for (unsigned id = 1; id < PK_NVTX_CORE2_INITIALIZE; id++)
        ck_assert_ptr_nonnull((void *)second.slot[PK_NVTX_MODULE_CORE2][id]);
    push_a("one");
    ck_assert_int_eq(CORE(second, PK_NVTX_CORE_RANGE_PUSH_A, pk_nvtx_range_push_a_fn)("two"), 1);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 2);
}
END_TEST

START_TEST(attaches_to_nothing_when_nvtx_is_not_traced)
{
    fake_trace(0);
    ck_assert_int_eq(attach(&first), 0);
    ck_assert_ptr_null((void *)first.slot[PK_NVTX_MODULE_CORE][PK_NVTX_CORE_RANGE_PUSH_A]);
    ck_assert_int_eq(
        attach_extension(PK_NVTX_EXT_PAYLOAD, first.payload, PK_NVTX_PAYLOAD_SLOT_COUNT), 0);
}
END_TEST

START_TEST(attaching_and_naming_make_no_spool)
{
    struct pk_nvtx_domain *domain = domain_create("lib");
    register_a(domain, "text");
    name_category(1, "early");
    ck_assert_int_eq(fake_births(), 0);
    mark_a("first event");
    ck_assert_int_eq(fake_births(), 1);
    /* what was named before is defined now */
    const struct fake_record *name = fake_nth(WIRE_NAME, 0);
    ck_assert_ptr_nonnull(name);
    ck_assert_uint_eq(name->head.aux, WIRE_NAMED_CATEGORY);
    ck_assert_str_eq(fake_text(name->name.name, NULL), "early");
    ck_assert_ptr_nonnull(fake_nth(WIRE_HEALTH, 0));
    ck_assert_uint_eq(fake_nth(WIRE_HEALTH, 0)->head.flags, WIRE_HEALTH_RUNNING);
}
END_TEST

START_TEST(works_unrecorded)
{
    fake_refuse(1);
    ck_assert_int_eq(push_a("a"), 0);
    ck_assert_int_eq(push_a("b"), 1);
    ck_assert_int_eq(pop(), 1);
    ck_assert_uint_ne(start_a("s"), 0);
    mark_a("m");
    ck_assert_uint_eq(fake_count(), 0);
}
END_TEST

/* ---- ranges -----------------------------------------------------------------------------------
 */

START_TEST(levels_are_returned)
{
    struct pk_nvtx_domain *domain = domain_create("other");
    struct pk_nvtx_event_attributes event = attributes("x");
    ck_assert_int_eq(push_a("0"), 0);
    ck_assert_int_eq(push_a("1"), 1);
    ck_assert_int_eq(domain_push(domain, &event), 0);
    ck_assert_int_eq(domain_push(domain, &event), 1);
    ck_assert_int_eq(pop(), 1);
    ck_assert_int_eq(domain_pop(domain), 1);
    ck_assert_int_eq(domain_pop(domain), 0);
    ck_assert_int_lt(domain_pop(domain), 0);
    ck_assert_int_eq(pop(), 0);
    ck_assert_int_eq(pop(), PK_NVTX_NO_PUSH_POP_TRACKING);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 4);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 4); /* pops without a push: no record */
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED), 4);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_POPPED), 4);
    ck_assert_str_eq(fake_text(fake_nth(WIRE_RANGE_PUSH, 2)->head.aux, NULL), "other");
    ck_assert_uint_eq(fake_nth(WIRE_RANGE_PUSH, 0)->head.aux, 0);
    ck_assert_uint_gt(fake_nth(WIRE_RANGE_POP, 0)->end.time,
                      fake_nth(WIRE_RANGE_PUSH, 0)->range.time);
}
END_TEST

START_TEST(many_domains)
{
    struct pk_nvtx_event_attributes event = attributes("x");
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "domain %d", i);
        ck_assert_int_eq(domain_push(domain_create(name), &event), 0);
        ck_assert_int_eq(domain_push(domain_create(name), &event), 1); /* the same domain again */
    }
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "domain %d", i);
        ck_assert_int_eq(domain_pop(domain_create(name)), 1);
    }
    ck_assert_uint_eq(fake_strings(), 301);
}
END_TEST

START_TEST(attributes_arrive)
{
    struct pk_nvtx_event_attributes event = attributes("coloured");
    event.category = 7;
    event.color_type = PK_NVTX_COLOR_ARGB;
    event.color = 0xff8800aau;
    event.payload_type = PK_NVTX_PAYLOAD_INT32;
    event.payload.i32 = -5;
    push_ex(&event);
    event.payload_type = PK_NVTX_PAYLOAD_DOUBLE;
    event.payload.f64 = 2.5;
    push_ex(&event);
    event.payload_type = PK_NVTX_PAYLOAD_FLOAT;
    event.payload.u64 = UINT64_MAX; /* the other half is garbage */
    event.payload.f32 = 1.5f;
    event.color_type = PK_NVTX_COLOR_UNKNOWN;
    mark_ex(&event);
    event.payload_type = PK_NVTX_PAYLOAD_UINT64;
    event.payload.u64 = UINT64_MAX;
    mark_ex(&event);
    event.payload_type = 99; /* from the future */
    mark_ex(&event);
    const struct wire_range *range = &fake_nth(WIRE_RANGE_PUSH, 0)->range;
    ck_assert_uint_eq(range->category, 7);
    ck_assert_uint_eq(range->has_color, 1);
    ck_assert_uint_eq(range->color, 0xff8800aau);
    ck_assert_uint_eq(range->head.flags, WIRE_PAYLOAD_I32);
    ck_assert_int_eq((int64_t)range->payload, -5);
    double f64;
    range = &fake_nth(WIRE_RANGE_PUSH, 1)->range;
    memcpy(&f64, &range->payload, sizeof f64);
    ck_assert_double_eq(f64, 2.5);
    float f32;
    range = &fake_nth(WIRE_MARK, 0)->range;
    memcpy(&f32, &range->payload, sizeof f32);
    ck_assert_double_eq((double)f32, 1.5);
    ck_assert_uint_lt(range->payload, (uint64_t)1 << 32);
    ck_assert_uint_eq(range->has_color, 0);
    ck_assert_uint_eq(fake_nth(WIRE_MARK, 1)->range.payload, UINT64_MAX);
    ck_assert_uint_eq(fake_nth(WIRE_MARK, 2)->head.flags, WIRE_PAYLOAD_NONE);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_MARKED), 3);
}
END_TEST

START_TEST(messages_may_be_absent)
{
    struct pk_nvtx_event_attributes event = attributes(NULL);
    push_a(NULL);
    push_w(NULL);
    push_ex(NULL);
    push_ex(&event);
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    push_ex(&event);
    event.message.registered = (struct pk_nvtx_string *)(void *)&event; /* no handle of ours */
    push_ex(&event);
    mark_a("");
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 6);
    for (size_t i = 0; i < 6; i++)
        ck_assert_uint_eq(fake_nth(WIRE_RANGE_PUSH, i)->range.message, 0);
    ck_assert_uint_ne(fake_nth(WIRE_MARK, 0)->range.message, 0); /* empty is a text */
    ck_assert_ptr_null(domain_create(NULL));
    ck_assert_ptr_null(register_a(NULL, NULL));
}
END_TEST

START_TEST(small_attributes_are_not_read_past_their_size)
{
    /* A page end right after `size` bytes would be the real test; ASan sees the heap block. */
    struct pk_nvtx_event_attributes whole = attributes("cut");
    whole.category = 3;
    unsigned char *block = malloc(24);
    whole.size = 24;
    memcpy(block, &whole, 24);
    push_ex((const struct pk_nvtx_event_attributes *)(const void *)block);
    free(block);
    ck_assert_uint_eq(fake_nth(WIRE_RANGE_PUSH, 0)->range.category, 3);
    ck_assert_uint_eq(fake_nth(WIRE_RANGE_PUSH, 0)->range.message, 0);
    struct pk_nvtx_event_attributes unset = attributes("size forgotten");
    unset.size = 0;
    push_ex(&unset);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 1)), "size forgotten");
}
END_TEST

/* ---- texts ------------------------------------------------------------------------------------
 */

START_TEST(one_buffer_a_thousand_names)
{
    char buffer[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(buffer, sizeof buffer, "iteration %d", i);
        push_a(buffer);
        pop();
    }
    ck_assert_uint_eq(fake_strings(), 1000);
    for (size_t i = 0; i < 1000; i++) {
        snprintf(buffer, sizeof buffer, "iteration %zu", i);
        ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, i)), buffer);
    }
}
END_TEST

START_TEST(long_names_whole)
{
    static char narrow[10001];
    static wchar_t wide[10001];
    for (int i = 0; i < 10000; i++) {
        narrow[i] = (char)('a' + i % 26);
        wide[i] = i % 2 ? L'\u00e4' : L'\u20ac'; /* 2 and 3 bytes */
    }
    push_a(narrow);
    push_w(wide);
    size_t length;
    const char *text = fake_text(fake_nth(WIRE_RANGE_PUSH, 0)->range.message, &length);
    ck_assert_uint_eq(length, 10000);
    ck_assert_str_eq(text, narrow);
    text = fake_text(fake_nth(WIRE_RANGE_PUSH, 1)->range.message, &length);
    ck_assert_uint_eq(length, 25000);
    ck_assert_mem_eq(text, "\u20ac\u00e4\u20ac\u00e4", 10);
}
END_TEST

START_TEST(wide_texts_become_utf8)
{
    static const wchar_t broken[] = {L'a', (wchar_t)0xd800, (wchar_t)0x110000, L'b', 0};
    static const wchar_t exact[] = L"\u00e9\u4e2d\U0001f600";
    push_w(exact);
    push_w(broken);
    mark_w(L"mark");
    struct pk_nvtx_event_attributes event = attributes(NULL);
    event.message_type = PK_NVTX_MESSAGE_UNICODE;
    event.message.unicode = exact;
    domain_push(domain_create_w(L"d\u00f6main"), &event);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 0)), "\u00e9\u4e2d\U0001f600");
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 1)), "a\ufffd\ufffdb");
    ck_assert_str_eq(name_of(fake_nth(WIRE_MARK, 0)), "mark");
    ck_assert_str_eq(fake_text(fake_nth(WIRE_RANGE_PUSH, 2)->head.aux, NULL), "d\u00f6main");
    ck_assert_ptr_eq(domain_create_w(L"d\u00f6main"), domain_create("d\u00f6main"));
}
END_TEST

START_TEST(registered_strings)
{
    struct pk_nvtx_domain *domain = domain_create("d");
    char text[] = "registered";
    struct pk_nvtx_string *handle = register_a(domain, text);
    struct pk_nvtx_string *wide = register_w(domain, L"wide");
    memset(text, 'x', sizeof text - 1); /* copied at registration */
    ck_assert_ptr_eq(register_a(domain, "registered"), handle);
    struct pk_nvtx_event_attributes event = attributes(NULL);
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = handle;
    domain_push(domain, &event);
    domain_push(domain, &event);
    event.message.registered = wide;
    domain_push(domain, &event);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 0)), "registered");
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 1)), "registered");
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 2)), "wide");
    /* 100,000 different ones: more than the table that finds them again */
    char many[32];
    for (int i = 0; i < 100000; i++) {
        snprintf(many, sizeof many, "string %d", i);
        handle = register_a(domain, many);
        ck_assert_ptr_nonnull(handle);
    }
    event.message.registered = handle;
    domain_push(domain, &event);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 3)), "string 99999");
}
END_TEST

START_TEST(categories_and_threads_are_named)
{
    struct pk_nvtx_domain *domain = domain_create("d");
    mark_a("up");
    name_category(1, "one");
    name_category(1, "one");
    domain_name_category(domain, 1, "one of d");
    name_category(1, "other");
    name_category(1, "one");
    name_category(2, NULL);
    name_thread(1234, "worker");
    struct pk_nvtx_string *text = register_a(domain, "by handle");
    struct pk_nvtx_resource_attributes thread = {
        .version = PK_NVTX_VERSION,
        .size = sizeof thread,
        .identifier_type = PK_NVTX_RESOURCE_THREAD_NATIVE,
        .identifier.value = 99,
        .message_type = PK_NVTX_MESSAGE_REGISTERED,
        .message.registered = text,
    };
    ck_assert_ptr_nonnull(CORE2(first, PK_NVTX_CORE2_DOMAIN_RESOURCE_CREATE,
                                pk_nvtx_domain_resource_create_fn)(domain, &thread));
    static const struct {
        uint32_t kind;
        uint64_t object;
        const char *name, *domain;
    } expect[] = {
        {WIRE_NAMED_CATEGORY, 1, "one", ""},     {WIRE_NAMED_CATEGORY, 1, "one of d", "d"},
        {WIRE_NAMED_CATEGORY, 1, "other", ""},   {WIRE_NAMED_CATEGORY, 1, "one", ""},
        {WIRE_NAMED_THREAD, 1234, "worker", ""}, {WIRE_NAMED_THREAD, 99, "by handle", ""},
    };
    ck_assert_uint_eq(fake_type_count(WIRE_NAME), sizeof expect / sizeof *expect);
    for (size_t i = 0; i < sizeof expect / sizeof *expect; i++) {
        const struct wire_name *name = &fake_nth(WIRE_NAME, i)->name;
        ck_assert_uint_eq(name->head.aux, expect[i].kind);
        ck_assert_uint_eq(name->object, expect[i].object);
        ck_assert_str_eq(fake_text(name->name, NULL), expect[i].name);
        ck_assert_str_eq(fake_text(name->domain, NULL), expect[i].domain);
    }
}
END_TEST

/* ---- start and end ----------------------------------------------------------------------------
 */

static void *end_it(void *id)
{
    range_end(*(const uint64_t *)id);
    return NULL;
}

START_TEST(start_here_end_there)
{
    struct pk_nvtx_domain *domain = domain_create("d");
    struct pk_nvtx_event_attributes event = attributes("process range");
    uint64_t id = domain_start(domain, &event), other = start_a("other");
    ck_assert_uint_ne(id, 0);
    ck_assert_uint_ne(id, other);
    pthread_t thread;
    pthread_create(&thread, NULL, end_it, &id);
    pthread_join(thread, NULL);
    range_end(other);
    range_end(0);
    range_end(~(uint64_t)0); /* never started */
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_END), 2);
    const struct fake_record *start = fake_nth(WIRE_RANGE_START, 0),
                             *ended = fake_nth(WIRE_RANGE_END, 0);
    ck_assert_uint_eq(start->range.id, id);
    ck_assert_uint_eq(ended->end.id, id);
    ck_assert_uint_ne(start->tid, ended->tid);
    ck_assert_uint_eq(start->head.aux, ended->head.aux); /* nvtxRangeEnd names no domain */
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_STARTED), 2);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_ENDED), 2);
}
END_TEST

/* ---- threads ----------------------------------------------------------------------------------
 */

#define THREADS 8
#define PER_THREAD 2000

static void *hammer(void *argument)
{
    int number = *(const int *)argument;
    char text[32];
    struct pk_nvtx_domain *domain = domain_create("shared");
    for (int i = 0; i < PER_THREAD; i++) {
        struct pk_nvtx_event_attributes event = attributes(NULL);
        event.message_type = PK_NVTX_MESSAGE_REGISTERED;
        snprintf(text, sizeof text, "registered %d", i % 50);
        event.message.registered = register_a(domain, text);
        event.category = (uint32_t)number;
        if (domain_push(domain, &event) != 0)
            return "push level";
        snprintf(text, sizeof text, "text %d", i % 50);
        if (push_a(text) != 0 || pop() != 0 || domain_pop(domain) != 0)
            return "level";
        domain_name_category(domain, (uint32_t)number, text);
        range_end(start_a(text));
    }
    return NULL;
}

START_TEST(eight_threads)
{
    pthread_t threads[THREADS];
    int numbers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        pthread_create(&threads[i], NULL, hammer, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_msg(!wrong, "%s", (const char *)wrong);
    }
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 2 * THREADS * PER_THREAD);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 2 * THREADS * PER_THREAD);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_END), THREADS * PER_THREAD);
    ck_assert_uint_eq(fake_strings(), 101);
}
END_TEST

static void *push_one(void *wrong)
{
    if (push_a("short") != 0)
        *(int *)wrong = 1;
    return NULL; /* ends with an open range */
}

START_TEST(short_threads_start_at_level_zero)
{
    int wrong = 0;
    for (int i = 0; i < 3000; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, push_one, &wrong);
        pthread_join(thread, NULL);
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 3000);
}
END_TEST

/* ---- fork -------------------------------------------------------------------------------------
 */

static int in_child(struct pk_nvtx_domain *domain, struct pk_nvtx_string *text, uint64_t parents)
{
    struct pk_nvtx_event_attributes event = attributes(NULL);
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = text;
    if (domain_push(domain, &event) != 1) /* the program's nesting goes on */
        return 1;
    const struct fake_record *push = fake_nth(WIRE_RANGE_PUSH, 0);
    if (!push || strcmp(name_of(push), "registered") != 0 ||
        strcmp(fake_text(push->head.aux, NULL), "d") != 0)
        return 2;
    const struct fake_record *name = fake_nth(WIRE_NAME, 0);
    if (!name || strcmp(fake_text(name->name.name, NULL), "newest") != 0 ||
        fake_type_count(WIRE_NAME) != 1)
        return 3;
    if (fake_type_count(WIRE_HEALTH) != 1)
        return 4;
    if (domain_pop(domain) != 1 || domain_pop(domain) != 0 || domain_pop(domain) >= 0)
        return 5;
    if (fake_type_count(WIRE_RANGE_POP) != 1) /* the outer push stands in the parent's spool */
        return 6;
    range_end(parents);
    if (fake_type_count(WIRE_RANGE_END) != 0)
        return 7;
    uint64_t own = start_a("own");
    range_end(own);
    return own != parents && fake_type_count(WIRE_RANGE_END) == 1 ? 0 : 8;
}

START_TEST(forked_child_defines_again)
{
    struct pk_nvtx_domain *domain = domain_create("d");
    struct pk_nvtx_string *text = register_a(domain, "registered");
    struct pk_nvtx_event_attributes event = attributes("in the parent");
    domain_push(domain, &event);
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = text;
    domain_push(domain, &event);
    domain_pop(domain);
    domain_name_category(domain, 4, "older");
    domain_name_category(domain, 4, "newest");
    uint64_t id = start_a("parent's");
    pid_t pid = fork();
    if (pid == 0)
        _exit(in_child(domain, text, id));
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    ck_assert_int_eq(domain_pop(domain), 0);
    range_end(id);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 2);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_END), 1);
}
END_TEST

/* ---- payloads ---------------------------------------------------------------------------------
 */

typedef int (*push_payload_fn)(struct pk_nvtx_domain *, const struct pk_nvtx_payload_data *,
                               size_t);
typedef void (*mark_payload_fn)(struct pk_nvtx_domain *, const struct pk_nvtx_payload_data *,
                                size_t);
typedef uint64_t (*schema_fn)(struct pk_nvtx_domain *, const struct pk_nvtx_schema_attributes *);

START_TEST(declared_work_follows_its_push)
{
    struct pk_nvtx_domain *domain = domain_create(PERFKIT_NVTX_DOMAIN), *other = domain_create("o");
    struct perfkit_work work = {2e9, 1e6, NAN};
    struct pk_nvtx_payload_data payload = {PERFKIT_WORK_SCHEMA, sizeof work, &work};
    struct pk_nvtx_event_attributes event = attributes("gemm");
    event.payload_type = PK_NVTX_PAYLOAD_EXT;
    event.reserved0 = 1;
    event.payload.u64 = (uint64_t)(uintptr_t)&payload;
    domain_push(domain, &event);
    payload.size_bytes = 8; /* too small to be one */
    domain_push(domain, &event);
    payload.size_bytes = SIZE_MAX;
    domain_push(other, &event); /* ids of layouts are per domain: this one is not perfkit's */
    ck_assert_uint_eq(fake_type_count(WIRE_WORK), 1);
    for (size_t i = 0; i < fake_count(); i++) {
        if (fake_at(i)->head.type == WIRE_WORK)
            ck_assert_uint_eq(fake_at(i - 1)->head.type, WIRE_RANGE_PUSH);
    }
    const struct wire_work *record = &fake_nth(WIRE_WORK, 0)->work;
    ck_assert_double_eq(record->flop, 2e9);
    ck_assert_double_eq(record->bytes_read, 1e6);
    ck_assert(isnan(record->bytes_written));
    /* the others are said once, and counted at the end */
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 2);
    fake_exit();
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 3);
    ck_assert_uint_eq(fake_nth(WIRE_HEALTH, 2)->health.value, 2);
}
END_TEST

struct bcast {
    int32_t root;
    const char *text;
    uint64_t bytes;
};

START_TEST(payload_events_find_their_message)
{
    struct pk_nvtx_domain *domain = domain_create("nccl");
    static const struct pk_nvtx_schema_entry by_pointer[] = {
        {.type = 15, .name = "root"},
        {.type = 75, .name = "text", .flags = 1 << 10}, /* offset left to natural alignment */
        {.type = 18, .name = "bytes"},
    };
    struct pk_nvtx_schema_attributes schema = {
        .field_mask = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5,
        .name = "bcast",
        .type = 1,
        .entries = by_pointer,
        .entry_count = 3,
    };
    schema_fn register_schema = PAYLOAD(PK_NVTX_PAYLOAD_SCHEMA_REGISTER, schema_fn);
    uint64_t id = register_schema(domain, &schema);
    ck_assert_uint_ge(id, PK_NVTX_SCHEMA_ID_DYNAMIC_START);
    struct bcast bcast = {3, "ncclBroadcast", 1024};
    struct pk_nvtx_payload_data payload = {id, sizeof bcast, &bcast};
    push_payload_fn push = PAYLOAD(PK_NVTX_PAYLOAD_RANGE_PUSH, push_payload_fn);
    push_payload_fn pop_payload = PAYLOAD(PK_NVTX_PAYLOAD_RANGE_POP, push_payload_fn);
    ck_assert_int_eq(push(domain, &payload, 1), 0);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 0)), "ncclBroadcast");
    payload.size_bytes = 8; /* the field is not in there */
    ck_assert_int_eq(push(domain, &payload, 1), 1);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 1)), "bcast"); /* the layout's name */
    ck_assert_int_eq(pop_payload(domain, NULL, 0), 1);

    static const struct pk_nvtx_schema_entry embedded[] = {
        {.type = 75, .flags = 1 << 10, .array_or_union_detail = 8}};
    schema.entries = embedded;
    schema.entry_count = 1;
    schema.name = NULL;
    schema.schema_id = PK_NVTX_SCHEMA_ID_STATIC_START + 1;
    schema.field_mask |= 1 << 8;
    ck_assert_uint_eq(register_schema(domain, &schema), schema.schema_id);
    payload = (struct pk_nvtx_payload_data){schema.schema_id, 8, "12345678 and more"};
    mark_payload_fn mark = PAYLOAD(PK_NVTX_PAYLOAD_MARK, mark_payload_fn);
    mark(domain, &payload, 1);
    ck_assert_str_eq(name_of(fake_nth(WIRE_MARK, 0)), "12345678");
    mark(NULL, &payload, 1); /* that layout is another domain's */
    ck_assert_uint_eq(fake_nth(WIRE_MARK, 1)->range.message, 0);
    /* predefined layouts: one number, one text */
    double number = 0.5;
    struct pk_nvtx_payload_data two[] = {{20, sizeof number, &number}, {75, 5, "named"}};
    mark(domain, two, 2);
    ck_assert_str_eq(name_of(fake_nth(WIRE_MARK, 2)), "named");
    ck_assert_uint_eq(fake_nth(WIRE_MARK, 2)->head.flags, WIRE_PAYLOAD_F64);
    mark(domain, NULL, 3);
    ck_assert_uint_eq(fake_type_count(WIRE_MARK), 4);
}
END_TEST

START_TEST(counters_are_accepted)
{
    ck_assert_int_eq(
        attach_extension(PK_NVTX_EXT_COUNTERS, first.counters, PK_NVTX_PAYLOAD_SLOT_COUNT), 1);
    uint64_t attributes_of_counter[7] = {sizeof attributes_of_counter, 18, 0, 0, 0, 0, 0};
    uint64_t (*register_counter)(struct pk_nvtx_domain *, const void *) = (uint64_t(*)(
        struct pk_nvtx_domain *, const void *))first.counters[PK_NVTX_COUNTERS_REGISTER];
    ck_assert_uint_ge(register_counter(NULL, attributes_of_counter),
                      PK_NVTX_SCHEMA_ID_DYNAMIC_START);
    attributes_of_counter[6] = PK_NVTX_SCHEMA_ID_STATIC_START + 9;
    ck_assert_uint_eq(register_counter(NULL, attributes_of_counter),
                      PK_NVTX_SCHEMA_ID_STATIC_START + 9);
    ck_assert_int_eq(fake_births(), 0);
    mark_a("event");
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 2); /* running, counters not kept */
    ck_assert_int_eq(attach_extension(PK_NVTX_EXT_MEMORY, first.counters, 8), 0);
}
END_TEST

/* ---- windows ------------------------------------------------------------------------------------ */

/* What begins while no window is open is neither recorded nor counted, and its end neither; the
 * levels are what the program expects. */
START_TEST(windows_in_the_middle_of_ranges)
{
    ck_assert_int_eq(push_a("in 0"), 0);
    fake_close(1);
    ck_assert_int_eq(push_a("out 1"), 1);
    uint64_t unseen = start_a("out");
    mark_a("out");
    ck_assert_uint_ne(unseen, 0);
    fake_close(0);
    ck_assert_int_eq(push_a("in 2"), 2);
    uint64_t seen = start_a("in");
    range_end(unseen);
    ck_assert_int_eq(pop(), 2);
    ck_assert_int_eq(pop(), 1); /* out 1 */
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 1);
    fake_close(1);
    range_end(seen); /* begun inside */
    ck_assert_int_eq(pop(), 0); /* in 0 */
    ck_assert_int_lt(pop(), 0);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 2);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 2);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_START), 1);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_END), 1);
    ck_assert_uint_eq(fake_type_count(WIRE_MARK), 0);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED), 2);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_POPPED), 2);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_STARTED), 1);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_ENDED), 1);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_MARKED), 0);
}
END_TEST

/* Pushes and pops balance whatever the windows do, at any depth. */
START_TEST(windows_at_random)
{
    unsigned random = 1, depth = 0;
    for (unsigned i = 0; i < 200000; i++) {
        random = random * 1103515245u + 12345u;
        unsigned dice = random >> 16 & 15;
        if (dice == 0)
            fake_close(random >> 20 & 1);
        else if (dice < 8 && depth < 300)
            ck_assert_int_eq(push_a("r"), (int)depth++);
        else if (depth > 0)
            ck_assert_int_eq(pop(), (int)--depth);
        if (fake_count() > FAKE_MAX_RECORDS - 10)
            break;
    }
    fake_close(1);
    while (depth > 0)
        ck_assert_int_eq(pop(), (int)--depth);
    ck_assert_uint_gt(fake_counter(WIRE_COUNT_RANGE_PUSHED), 1000);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), fake_counter(WIRE_COUNT_RANGE_PUSHED));
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED),
                      fake_counter(WIRE_COUNT_RANGE_POPPED));
}
END_TEST

static void capture_setup(void)
{
    fake_options("trace=nvtx,capture=nvtx,capture-name=st%2Cep%25,capture-domain=");
    setup();
}

static void capture_domain_setup(void)
{
    fake_options("capture=nvtx,capture-name=step,capture-domain=mine");
    setup();
}

static void *end_elsewhere(void *id)
{
    range_end(*(const uint64_t *)id);
    return NULL;
}

START_TEST(capture_ranges)
{
    push_a("around");
    ck_assert_int_eq(fake_windows(), 0);
    push_a("st,ep%");
    ck_assert_int_eq(fake_windows(), 1);
    push_a("st,ep%"); /* within itself: one window */
    ck_assert_int_eq(fake_windows(), 1);
    pop();
    ck_assert_int_eq(fake_windows(), 1);
    pop();
    ck_assert_int_eq(fake_windows(), 0);
    push_w(L"st,ep%");
    ck_assert_int_eq(fake_windows(), 1);
    pop();
    push_a("st,ep");
    push_a("st,ep%%");
    ck_assert_int_eq(fake_windows(), 0);
    pop();
    pop();
    struct pk_nvtx_event_attributes event = attributes("st,ep%");
    push_ex(&event);
    ck_assert_int_eq(fake_windows(), 1);
    pop();
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = register_a(NULL, "st,ep%");
    push_ex(&event);
    ck_assert_int_eq(fake_windows(), 1);
    pop();
    event.message.registered = (struct pk_nvtx_string *)&event; /* no handle of ours */
    push_ex(&event);
    ck_assert_int_eq(fake_windows(), 0);
    pop();
    event = attributes("st,ep%");
    domain_push(domain_create("other"), &event);
    ck_assert_int_eq(fake_windows(), 0);
    domain_pop(domain_create("other"));
    push_ex(NULL);
    pop();
    pop(); /* around */
    ck_assert_int_lt(pop(), 0);
    ck_assert_int_eq(fake_windows(), 0);
    /* The ranges themselves were recorded, nothing else. */
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 5);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 5);
    for (unsigned i = 0; i < 5; i++)
        ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, i)), "st,ep%");
}
END_TEST

START_TEST(capture_ranges_by_start_and_end)
{
    uint64_t first_id = start_a("st,ep%"), second_id = start_a("st,ep%"), other = start_a("other");
    ck_assert_int_eq(fake_windows(), 2);
    range_end(other);
    ck_assert_int_eq(fake_windows(), 2);
    pthread_t thread;
    pthread_create(&thread, NULL, end_elsewhere, &first_id);
    pthread_join(thread, NULL);
    ck_assert_int_eq(fake_windows(), 1);
    range_end(first_id); /* once more closes nothing */
    ck_assert_int_eq(fake_windows(), 1);
    range_end(second_id);
    ck_assert_int_eq(fake_windows(), 0);
    /* More at a time than there is room for: those beyond open nothing for long. */
    uint64_t ids[100];
    for (unsigned i = 0; i < 100; i++)
        ids[i] = start_a("st,ep%");
    ck_assert_int_eq(fake_windows(), 64);
    for (unsigned i = 0; i < 100; i++)
        range_end(ids[i]);
    ck_assert_int_eq(fake_windows(), 0);
}
END_TEST

START_TEST(capture_range_in_a_domain)
{
    push_a("step");
    ck_assert_int_eq(fake_windows(), 0);
    struct pk_nvtx_domain *mine = domain_create_w(L"mine");
    struct pk_nvtx_event_attributes event = attributes("step");
    domain_push(mine, &event);
    ck_assert_int_eq(fake_windows(), 1);
    uint64_t id = domain_start(mine, &event);
    ck_assert_int_eq(fake_windows(), 2);
    domain_pop(mine);
    range_end(id);
    ck_assert_int_eq(fake_windows(), 0);
}
END_TEST

/* ---- names of CUDA's objects --------------------------------------------------------------------- */

static void assert_named(unsigned n, enum wire_named what, uint64_t object, const char *name)
{
    const struct fake_record *record = fake_nth(WIRE_NAME, n);
    ck_assert_ptr_nonnull(record);
    ck_assert_uint_eq(record->head.aux, what);
    ck_assert_uint_eq(record->name.object, object);
    ck_assert_str_eq(fake_text(record->name.name, NULL), name);
}

START_TEST(cuda_objects_are_named)
{
#define CUDA(id, type) ((type)first.slot[PK_NVTX_MODULE_CUDA][id])
#define CUDART(id, type) ((type)first.slot[PK_NVTX_MODULE_CUDART][id])
    void *handle = (void *)(uintptr_t)0x7f00dead0000;
    CUDA(PK_NVTX_CUDA_NAME_DEVICE_A, pk_nvtx_name_device_a_fn)(1, "device");
    CUDA(PK_NVTX_CUDA_NAME_CONTEXT_W, pk_nvtx_name_handle_w_fn)(handle, L"context");
    CUDA(PK_NVTX_CUDA_NAME_STREAM_A, pk_nvtx_name_handle_a_fn)(handle, "stream");
    CUDA(PK_NVTX_CUDA_NAME_EVENT_W, pk_nvtx_name_handle_w_fn)(handle, L"event");
    CUDART(PK_NVTX_CUDART_NAME_DEVICE_W, pk_nvtx_name_device_w_fn)(2, L"other device");
    CUDART(PK_NVTX_CUDART_NAME_STREAM_W, pk_nvtx_name_handle_w_fn)(NULL, L"default stream");
    CUDART(PK_NVTX_CUDART_NAME_EVENT_A, pk_nvtx_name_handle_a_fn)(handle, "other event");
    CUDART(PK_NVTX_CUDART_NAME_STREAM_A, pk_nvtx_name_handle_a_fn)(handle, NULL); /* no name */
    /* The same as resources of a domain. */
    struct pk_nvtx_resource_attributes resource = {
        .version = PK_NVTX_VERSION,
        .size = sizeof resource,
        .identifier_type = PK_NVTX_RESOURCE_CUDART_STREAM,
        .identifier = {.value = 77},
        .message_type = PK_NVTX_MESSAGE_ASCII,
        .message = {.ascii = "resource"},
    };
    pk_nvtx_domain_resource_create_fn create =
        CORE2(first, PK_NVTX_CORE2_DOMAIN_RESOURCE_CREATE, pk_nvtx_domain_resource_create_fn);
    create(NULL, &resource);
    resource.identifier_type = PK_NVTX_RESOURCE_HANDLE; /* of nothing that we know */
    create(NULL, &resource);
    ck_assert_uint_eq(fake_type_count(WIRE_NAME), 8);
    assert_named(7, WIRE_NAMED_CUDA_STREAM, 77, "resource");
    assert_named(0, WIRE_NAMED_CUDA_DEVICE, 1, "device");
    assert_named(1, WIRE_NAMED_CUDA_CONTEXT, (uintptr_t)handle, "context");
    assert_named(2, WIRE_NAMED_CUDA_STREAM, (uintptr_t)handle, "stream");
    assert_named(3, WIRE_NAMED_CUDA_EVENT, (uintptr_t)handle, "event");
    assert_named(4, WIRE_NAMED_CUDA_DEVICE, 2, "other device");
    assert_named(5, WIRE_NAMED_CUDA_STREAM, 0, "default stream");
    assert_named(6, WIRE_NAMED_CUDA_EVENT, (uintptr_t)handle, "other event");
    ck_assert_int_eq(fake_windows(), 0);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        attaches_to_each_module,
        attaches_to_nothing_when_nvtx_is_not_traced,
        attaching_and_naming_make_no_spool,
        works_unrecorded,
        levels_are_returned,
        many_domains,
        attributes_arrive,
        messages_may_be_absent,
        small_attributes_are_not_read_past_their_size,
        one_buffer_a_thousand_names,
        long_names_whole,
        wide_texts_become_utf8,
        registered_strings,
        categories_and_threads_are_named,
        start_here_end_there,
        eight_threads,
        short_threads_start_at_level_zero,
        forked_child_defines_again,
        declared_work_follows_its_push,
        payload_events_find_their_message,
        counters_are_accepted,
        windows_in_the_middle_of_ranges,
        windows_at_random,
        cuda_objects_are_named,
    };
    const struct {
        const TTest *test;
        void (*setup)(void);
    } captures[] = {
        {capture_ranges, capture_setup},
        {capture_ranges_by_start_and_end, capture_setup},
        {capture_range_in_a_domain, capture_domain_setup},
    };
    Suite *suite = suite_create("nvtx");
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
        TCase *each = tcase_create(tests[i]->name);
        tcase_add_checked_fixture(each, setup, NULL);
        tcase_set_timeout(each, 60);
        tcase_add_test(each, tests[i]);
        suite_add_tcase(suite, each);
    }
    for (size_t i = 0; i < sizeof captures / sizeof *captures; i++) {
        TCase *each = tcase_create(captures[i].test->name);
        tcase_add_checked_fixture(each, captures[i].setup, NULL);
        tcase_add_test(each, captures[i].test);
        suite_add_tcase(suite, each);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
