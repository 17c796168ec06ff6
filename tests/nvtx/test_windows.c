/* Recording windows and capture ranges. */
#include <pthread.h>
#include <stdlib.h>
#include <wchar.h>

#include "libprof/spool/control.h"
#include "tests/nvtx/client.h"

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
    range_end(seen);            /* begun inside */
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
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED), fake_counter(WIRE_COUNT_RANGE_POPPED));
}
END_TEST

static void capture_setup(void)
{
    fake_options("trace=nvtx,capture=nvtx,capture-name=st%2Cep%25,capture-domain=");
    attach_first();
}

static void capture_domain_setup(void)
{
    fake_options("capture=nvtx,capture-name=step,capture-domain=mine");
    attach_first();
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

/* ---- pauses: one range is recorded all the same ---------------------------------------------- */

static void registered_push(struct pk_nvtx_domain *domain, const char *name)
{
    struct pk_nvtx_event_attributes event = attributes(NULL);
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = register_a(domain, name);
    domain_push(domain, &event);
}

static void assert_recorded(size_t ranges, const char *last)
{
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), ranges);
    ck_assert_str_eq(name_of(fake_nth(WIRE_RANGE_PUSH, ranges - 1)), last);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED), ranges);
}

START_TEST(in_pauses_one_range_is_recorded)
{
    static const struct control_page page = {.iteration = "step"};
    fake_pause(&page);
    fake_close(1);
    push_a("step");
    pop();
    assert_recorded(1, "step");
    push_w(L"step");
    pop();
    struct pk_nvtx_event_attributes event = attributes("step");
    push_ex(&event);
    pop();
    registered_push(NULL, "step");
    pop();
    range_end(start_a("step"));
    assert_recorded(4, "step");
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_START), 1);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_END), 1);
    /* Other names, other domains, no name, and marks are not. */
    static const char *const others[] = {"ste", "steps", "step 1", "step1", "", "Step"};
    for (unsigned i = 0; i < 6; i++) {
        push_a(others[i]);
        pop();
        registered_push(NULL, others[i]);
        pop();
    }
    push_w(L"steps");
    pop();
    push_a(NULL);
    pop();
    push_ex(NULL);
    pop();
    event.message_type = PK_NVTX_MESSAGE_REGISTERED;
    event.message.registered = (struct pk_nvtx_string *)&event; /* no handle of ours */
    push_ex(&event);
    pop();
    registered_push(domain_create("other"), "step");
    domain_pop(domain_create("other"));
    mark_a("step");
    assert_recorded(4, "step");
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 4);
    ck_assert_uint_eq(fake_type_count(WIRE_MARK), 0);
    /* Closed, and no pause: nothing. */
    fake_pause(NULL);
    push_a("step");
    pop();
    assert_recorded(4, "step");
}
END_TEST

START_TEST(in_pauses_a_numbered_range_is_recorded)
{
    static const struct control_page page = {
        .iteration = "step ", .iteration_domain = "mine", .numbered = 1};
    fake_pause(&page);
    fake_close(1);
    struct pk_nvtx_domain *mine = domain_create("mine");
    static const char *const numbered[] = {"step 12", "step 0"};
    for (unsigned i = 0; i < 2; i++) {
        registered_push(mine, numbered[i]);
        domain_pop(mine);
        assert_recorded(i + 1, numbered[i]);
    }
    static const char *const others[] = {"step ", "step 1a",  "step a",
                                         "step",  "a step 1", "step -1"};
    for (unsigned i = 0; i < 6; i++) {
        registered_push(mine, others[i]);
        domain_pop(mine);
    }
    push_a("step 12"); /* in the default domain */
    pop();
    assert_recorded(2, "step 0");
}
END_TEST

/* Ranges of before, of in between and of the pause keep their levels, and each is popped by its
 * own pop. */
START_TEST(levels_go_through_pauses)
{
    static const struct control_page page = {.iteration = "step"};
    fake_pause(&page);
    ck_assert_int_eq(push_a("epoch"), 0);
    ck_assert_int_eq(push_a("step"), 1); /* open when the pause begins */
    fake_close(1);
    ck_assert_int_eq(push_a("forward"), 2); /* not recorded */
    ck_assert_int_eq(pop(), 2);
    ck_assert_int_eq(pop(), 1);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 1);
    ck_assert_int_eq(push_a("step"), 1);
    ck_assert_int_eq(push_a("forward"), 2);
    ck_assert_int_eq(push_a("step"), 3); /* within itself */
    fake_close(0);                       /* in the middle of them */
    ck_assert_int_eq(push_a("last"), 4);
    ck_assert_int_eq(pop(), 4);
    ck_assert_int_eq(pop(), 3);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 3);
    ck_assert_int_eq(pop(), 2); /* forward: its push was not recorded */
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 3);
    ck_assert_int_eq(pop(), 1);
    ck_assert_int_eq(pop(), 0);
    ck_assert_int_lt(pop(), 0);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_PUSH), 5);
    ck_assert_uint_eq(fake_type_count(WIRE_RANGE_POP), 5);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_PUSHED), 5);
    ck_assert_uint_eq(fake_counter(WIRE_COUNT_RANGE_POPPED), 5);
}
END_TEST

void add_window_tests(Suite *suite)
{
    add_test(suite, windows_in_the_middle_of_ranges, attach_first);
    add_test(suite, windows_at_random, attach_first);
    add_test(suite, capture_ranges, capture_setup);
    add_test(suite, capture_ranges_by_start_and_end, capture_setup);
    add_test(suite, capture_range_in_a_domain, capture_domain_setup);
    add_test(suite, in_pauses_one_range_is_recorded, attach_first);
    add_test(suite, in_pauses_a_numbered_range_is_recorded, attach_first);
    add_test(suite, levels_go_through_pauses, attach_first);
}
