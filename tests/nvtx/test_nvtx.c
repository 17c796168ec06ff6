/* Attaching, ranges, texts, threads and fork, through the protocol itself (client.h). */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <wchar.h>

#include "collectors/nvtx/nvtx.h"
#include "tests/nvtx/client.h"

/* ---- attaching ------------------------------------------------------------------------------- */

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

/* ---- ranges ---------------------------------------------------------------------------------- */

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

/* ---- texts ----------------------------------------------------------------------------------- */

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

/* ---- start and end --------------------------------------------------------------------------- */

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

/* ---- threads --------------------------------------------------------------------------------- */

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

/* ---- fork ------------------------------------------------------------------------------------ */

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

/* Of --pytorch=shapes: the sizes are taken off, and sent once for all that are alike. */
START_TEST(inputs_of_operators)
{
    static char many[5000];
    static const struct {
        const char *text, *name, *inputs; /* NULL = none */
    } cases[] = {
        {"aten::mm, seq = 5, op_id = 7, sizes = [[64, 32], [32, 8]], input_op_ids = [(6,0), (0,0)]",
         "aten::mm", "{\"sizes\":[[64, 32], [32, 8]]}"},
        {"aten::mm, op_id = 9, sizes = [[-1], [99999999999999999999999]]", "aten::mm",
         "{\"sizes\":[[-1], [99999999999999999999999]]}"},
        {"aten::t, op_id = 9, sizes = [[2, 3]]", "aten::t", "{\"sizes\":[[2, 3]]}"},
        {"aten::t, sizes = [[[[[[", "aten::t, sizes = [[[[[[", NULL},
        {"mine, sizes = [x]", "mine, sizes = [x]", NULL},
        {"mine [1]", "mine [1]", NULL},
        {", sizes = []", ", sizes = []", NULL},
        {"]", "]", NULL},
        {many, "aten::_foreach_add_", "null"},
    };
    size_t fields = 0;
    int used = snprintf(many, sizeof many, "aten::_foreach_add_, op_id = 3, sizes = [[0]");
    while (used < (int)sizeof many - 20)
        used += snprintf(many + used, sizeof many - (size_t)used, ", [768, 768]");
    snprintf(many + used, sizeof many - (size_t)used, "]");
    nvtx_torch = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        push_a(cases[i].text);
        ck_assert_str_eq(fake_text(fake_nth(WIRE_RANGE_PUSH, i)->range.message, NULL),
                         cases[i].name);
        while (fields < fake_type_count(WIRE_FIELD) &&
               fake_nth(WIRE_FIELD, fields)->field.head.flags != WIRE_PAYLOAD_INPUTS)
            fields++;
        ck_assert_uint_eq(fake_type_count(WIRE_FIELD), fields + (cases[i].inputs != NULL));
        if (cases[i].inputs)
            ck_assert_str_eq(
                fake_text((uint32_t)fake_nth(WIRE_FIELD, fields++)->field.value, NULL),
                cases[i].inputs);
        pop();
    }
    nvtx_torch = false;
}
END_TEST

/* Under --pytorch: the operator's name is the text, the sequence number a field; what only looks
 * like it stays whole. */
START_TEST(operators_of_pytorch)
{
    static const struct {
        const char *text, *name;
        int64_t sequence; /* -1 = none */
    } cases[] = {
        {"aten::addmm, seq = 17, op_id = 93", "aten::addmm", 17},
        {"aten::addmm, seq = 18, op_id = 94", "aten::addmm", 18},
        {"aten::t, op_id = 95", "aten::t", -1},
        {"AddmmBackward0, seq = 17", "AddmmBackward0", 17},
        {"Model.layer1.0", "Model.layer1.0", -1},
        {"mine, seq = x, op_id = ", "mine, seq = x, op_id = ", -1},
        {", seq = 5", ", seq = 5", -1},
        {"n, seq = 99999999999999999999", "n, seq = 99999999999999999999", -1},
        {"", "", -1},
        {"7", "7", -1},
    };
    size_t fields = 0, before = fake_strings();
    nvtx_torch = true;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        push_a(cases[i].text);
        ck_assert_str_eq(fake_text(fake_nth(WIRE_RANGE_PUSH, i)->range.message, NULL),
                         cases[i].name);
        if (cases[i].sequence >= 0) {
            const struct wire_field *field = &fake_nth(WIRE_FIELD, fields++)->field;
            ck_assert_str_eq(fake_text(field->head.aux, NULL), "seq");
            ck_assert_int_eq(field->head.flags, WIRE_PAYLOAD_U64);
            ck_assert_int_eq((int64_t)field->value, cases[i].sequence);
        }
        pop();
    }
    push_a(NULL);
    nvtx_torch = false;
    push_a("aten::addmm, seq = 17, op_id = 93");
    ck_assert_str_eq(
        fake_text(fake_nth(WIRE_RANGE_PUSH, fake_type_count(WIRE_RANGE_PUSH) - 1)->range.message,
                  NULL),
        "aten::addmm, seq = 17, op_id = 93");
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), fields);
    ck_assert_uint_ge(fake_strings(), before + 9);
}
END_TEST

void add_protocol_tests(Suite *suite)
{
    add_test(suite, operators_of_pytorch, attach_first);
    add_test(suite, inputs_of_operators, attach_first);
    add_test(suite, attaches_to_each_module, attach_first);
    add_test(suite, attaches_to_nothing_when_nvtx_is_not_traced, attach_first);
    add_test(suite, attaching_and_naming_make_no_spool, attach_first);
    add_test(suite, works_unrecorded, attach_first);
    add_test(suite, levels_are_returned, attach_first);
    add_test(suite, many_domains, attach_first);
    add_test(suite, attributes_arrive, attach_first);
    add_test(suite, messages_may_be_absent, attach_first);
    add_test(suite, small_attributes_are_not_read_past_their_size, attach_first);
    add_test(suite, one_buffer_a_thousand_names, attach_first);
    add_test(suite, long_names_whole, attach_first);
    add_test(suite, wide_texts_become_utf8, attach_first);
    add_test(suite, registered_strings, attach_first);
    add_test(suite, categories_and_threads_are_named, attach_first);
    add_test(suite, start_here_end_there, attach_first);
    add_test(suite, eight_threads, attach_first);
    add_test(suite, short_threads_start_at_level_zero, attach_first);
    add_test(suite, forked_child_defines_again, attach_first);
}
