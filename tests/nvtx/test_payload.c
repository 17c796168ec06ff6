/* The payload and counter extensions. */
#include <math.h>

#include "tests/nvtx/client.h"

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

/* What NCCL registers and says: an enumeration, a layout, ranges with both message and payload, and
 * (for new communicators) a payload that comes with the end. */
#define REDUCTION (PK_NVTX_SCHEMA_ID_STATIC_START + 24)
#define ALL_REDUCE (PK_NVTX_SCHEMA_ID_STATIC_START + 5)
#define COMM_INIT (PK_NVTX_SCHEMA_ID_STATIC_START + 0)

struct all_reduce {
    uint64_t communicator;
    size_t bytes;
    int operation;
};
struct comm_init {
    uint64_t communicator;
    int ranks, rank, device;
};

static void register_collectives(struct pk_nvtx_domain *domain)
{
    static const struct pk_nvtx_enum_entry reductions[] = {
        {"Sum", 0, 0}, {"Product", 1, 0}, {"Max", 2, 0}};
    struct pk_nvtx_enum_attributes enumeration = {
        1 << 2 | 1 << 3 | 1 << 4 | 1 << 5, NULL, reductions, 3, sizeof(int), REDUCTION};
    uint64_t (*register_enum)(struct pk_nvtx_domain *, const struct pk_nvtx_enum_attributes *) =
        (uint64_t(*)(struct pk_nvtx_domain *, const struct pk_nvtx_enum_attributes *))
            first.payload[PK_NVTX_PAYLOAD_ENUM_REGISTER];
    static const struct pk_nvtx_schema_entry all_reduce[] = {
        {.type = 18, .name = "NCCL communicator ID"},
        {.type = 22, .name = "Message size [bytes]", .offset_bytes = 8},
        {.type = REDUCTION, .name = "Reduction operation", .offset_bytes = 16},
    };
    static const struct pk_nvtx_schema_entry comm_init[] = {
        {.type = 18, .name = "NCCL communicator ID"},
        {.type = 5, .name = "No. of ranks"}, /* offsets by natural alignment */
        {.type = 5, .name = "Rank"},
        {.type = 5, .name = "CUDA device"},
    };
    struct pk_nvtx_schema_attributes schema = {.field_mask = 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8,
                                               .type = 1,
                                               .entries = all_reduce,
                                               .entry_count = 3,
                                               .schema_id = ALL_REDUCE};
    schema_fn register_schema = PAYLOAD(PK_NVTX_PAYLOAD_SCHEMA_REGISTER, schema_fn);
    ck_assert_uint_eq(register_schema(domain, &schema), ALL_REDUCE);
    schema.entries = comm_init;
    schema.entry_count = 4;
    schema.schema_id = COMM_INIT;
    ck_assert_uint_eq(register_schema(domain, &schema), COMM_INIT);
    ck_assert_uint_eq(register_enum(domain, &enumeration), REDUCTION); /* after who refers to it */
}

static const char *field_name(size_t i)
{
    return fake_text(fake_nth(WIRE_FIELD, i)->head.aux, NULL);
}

START_TEST(collectives_leave_their_fields)
{
    struct pk_nvtx_domain *domain = domain_create("NCCL");
    register_collectives(domain);
    push_payload_fn pop_payload = PAYLOAD(PK_NVTX_PAYLOAD_RANGE_POP, push_payload_fn);
    struct pk_nvtx_event_attributes event = attributes("ncclCommInitRank");
    domain_push(domain, &event);
    struct comm_init comm = {0xfedcba9876543210u, 8, 3, -1};
    struct pk_nvtx_payload_data payload = {COMM_INIT, sizeof comm, &comm};
    ck_assert_int_eq(pop_payload(domain, &payload, 1), 0);
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), 4);
    ck_assert_str_eq(field_name(1), "No. of ranks");
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 0)->field.value, comm.communicator);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 1)->field.value, 8);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 3)->field.value, UINT64_MAX); /* -1, as 64 bits */
    ck_assert_str_eq(fake_text(fake_nth(WIRE_FIELD, 0)->field.domain, NULL), "NCCL");
    ck_assert_int_eq(fake_at(fake_count() - 1)->head.type, WIRE_RANGE_POP); /* they come first */

    struct all_reduce all = {comm.communicator, 4096, 2};
    event = attributes("ncclAllReduce");
    payload = (struct pk_nvtx_payload_data){ALL_REDUCE, sizeof all, &all};
    event.payload_type = PK_NVTX_PAYLOAD_EXT;
    event.reserved0 = 1;
    event.payload.u64 = (uint64_t)(uintptr_t)&payload;
    domain_push(domain, &event);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, 1)), "ncclAllReduce");
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), 7);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 5)->field.value, 4096);
    ck_assert_int_eq(fake_nth(WIRE_FIELD, 6)->head.flags, WIRE_PAYLOAD_TEXT);
    ck_assert_str_eq(fake_text((uint32_t)fake_nth(WIRE_FIELD, 6)->field.value, NULL), "Max");
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 1); /* running: nothing was left out */

    all.operation = 77; /* a reduction of the program's own: its number stays */
    domain_push(domain, &event);
    ck_assert_int_eq(fake_nth(WIRE_FIELD, 9)->head.flags, WIRE_PAYLOAD_I32);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 9)->field.value, 77);
    payload.size_bytes = 12; /* cut: what is whole stays, and it is said */
    domain_push(domain, &event);
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), 11);
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 2);

    payload.size_bytes = sizeof all;
    domain_start(domain, &event);
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), 14);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 13)->field.id, fake_nth(WIRE_RANGE_START, 0)->range.id);
}
END_TEST

START_TEST(layouts_of_other_shapes)
{
    struct pk_nvtx_domain *domain = domain_create("shapes");
    static const struct pk_nvtx_schema_entry entries[] = {
        {.type = 11, .name = "small"},
        {.type = 5, .name = "array", .flags = 1 << 4, .array_or_union_detail = 3},
        {.type = 20, .name = "real"},
        {.type = 75, .name = "text"},
        {.type = PK_NVTX_SCHEMA_ID_STATIC_START + 99, .name = "nested"},
        {.type = 5, .name = "nobody knows where"},
    };
    struct pk_nvtx_schema_attributes schema = {
        .field_mask = 1 << 2 | 1 << 4 | 1 << 5, .type = 1, .entries = entries, .entry_count = 6};
    schema_fn register_schema = PAYLOAD(PK_NVTX_PAYLOAD_SCHEMA_REGISTER, schema_fn);
    struct {
        int8_t small;
        int32_t array[3];
        double real;
        const char *text;
        int32_t rest[8];
    } shapes = {-5, {1, 2, 3}, 0.5, "said", {0}};
    struct pk_nvtx_payload_data payload = {register_schema(domain, &schema), sizeof shapes,
                                           &shapes};
    push_payload_fn push = PAYLOAD(PK_NVTX_PAYLOAD_RANGE_PUSH, push_payload_fn);
    push(domain, &payload, 1);
    ck_assert_uint_eq(fake_type_count(WIRE_FIELD), 3);
    ck_assert_uint_eq(fake_nth(WIRE_FIELD, 0)->field.value, (uint64_t)(int64_t)-5);
    ck_assert_int_eq(fake_nth(WIRE_FIELD, 1)->head.flags, WIRE_PAYLOAD_F64);
    ck_assert_str_eq(fake_text((uint32_t)fake_nth(WIRE_FIELD, 2)->field.value, NULL), "said");
    ck_assert_uint_eq(fake_type_count(WIRE_HEALTH), 2); /* running, not everything is kept */
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

void add_payload_tests(Suite *suite)
{
    add_test(suite, declared_work_follows_its_push, attach_first);
    add_test(suite, payload_events_find_their_message, attach_first);
    add_test(suite, collectives_leave_their_fields, attach_first);
    add_test(suite, layouts_of_other_shapes, attach_first);
    add_test(suite, counters_are_accepted, attach_first);
}
