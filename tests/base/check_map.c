/* Arrays and hash maps, against plain models. */
#include <stdio.h>
#include <stdlib.h>

#include "libprof/base/array.h"
#include "libprof/base/map.h"
#include "tests/check_main.h"

static uint64_t seed = 88172645463325252u;

static uint64_t random_u64(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

START_TEST(an_array_grows_and_keeps_its_elements)
{
    PROF_ARRAY(uint32_t) a = {0};
    for (uint32_t i = 0; i < 10000; i++) {
        uint32_t *slot = prof_array_add(&a);
        ck_assert_ptr_nonnull(slot);
        *slot = i * 3;
    }
    ck_assert_uint_eq(a.count, 10000);
    for (uint32_t i = 0; i < 10000; i++)
        ck_assert_uint_eq(a.data[i], i * 3);
    ck_assert(!prof_array_reserve(&a, SIZE_MAX / 8));
    ck_assert_uint_eq(a.data[9999], 9999 * 3);
    prof_array_free(&a);
    ck_assert_ptr_null(a.data);
}
END_TEST

/* Keys from a small space, so that puts, replacements and removals of what is there all happen, and
 * probe runs wrap and shift. */
START_TEST(a_map_behaves_like_a_table)
{
    enum { KEYS = 3000 };
    static uint64_t model[KEYS];
    static bool present[KEYS];
    struct prof_map map = {0};
    size_t count = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t k = random_u64() % KEYS, key = k * 0x100000000ull, value = random_u64();
        if (random_u64() % 3) {
            ck_assert(prof_map_put(&map, key, value));
            count += !present[k];
            present[k] = true;
            model[k] = value;
        } else {
            uint64_t old = 0;
            ck_assert_int_eq(prof_map_remove(&map, key, &old), present[k]);
            if (present[k])
                ck_assert_uint_eq(old, model[k]);
            count -= present[k];
            present[k] = false;
        }
        k = random_u64() % KEYS;
        uint64_t *got = prof_map_get(&map, k * 0x100000000ull);
        ck_assert_int_eq(got != NULL, present[k]);
        if (got)
            ck_assert_uint_eq(*got, model[k]);
    }
    ck_assert_uint_eq(map.count, count);
    size_t at = 0, walked = 0;
    for (uint64_t key, value; prof_map_next(&map, &at, &key, &value); walked++)
        ck_assert_uint_eq(value, model[key / 0x100000000ull]);
    ck_assert_uint_eq(walked, count);
    prof_map_clear(&map);
    ck_assert_ptr_null(prof_map_get(&map, 0));
    prof_map_free(&map);
}
END_TEST

START_TEST(a_map_takes_any_key)
{
    struct prof_map map = {0};
    ck_assert_ptr_null(prof_map_get(&map, 0));
    ck_assert(!prof_map_remove(&map, 0, NULL));
    ck_assert(prof_map_put(&map, 0, 1));
    ck_assert(prof_map_put(&map, UINT64_MAX, 2));
    ck_assert_uint_eq(*prof_map_get(&map, 0), 1);
    ck_assert_uint_eq(*prof_map_get(&map, UINT64_MAX), 2);
    prof_map_free(&map);
}
END_TEST

START_TEST(names_are_byte_strings)
{
    struct prof_names names = {0};
    ck_assert_ptr_null(prof_names_get(&names, "", 0));
    ck_assert(prof_names_put(&names, "", 0, 7));
    ck_assert(prof_names_put(&names, "a\0b", 3, 8));
    ck_assert(prof_names_put(&names, "a\0c", 3, 9));
    ck_assert(prof_names_put(&names, "a", 1, 10));
    ck_assert_uint_eq(*prof_names_get(&names, "", 0), 7);
    ck_assert_uint_eq(*prof_names_get(&names, "a\0b", 3), 8);
    ck_assert_uint_eq(*prof_names_get(&names, "a\0c", 3), 9);
    ck_assert_uint_eq(*prof_names_get(&names, "a", 1), 10);
    ck_assert(prof_names_put(&names, "a", 1, 11));
    ck_assert_uint_eq(*prof_names_get(&names, "a", 1), 11);
    char text[16];
    for (uint32_t i = 0; i < 20000; i++)
        ck_assert(prof_names_put(&names, text, (size_t)sprintf(text, "k%u", i), i));
    for (uint32_t i = 0; i < 20000; i++)
        ck_assert_uint_eq(*prof_names_get(&names, text, (size_t)sprintf(text, "k%u", i)), i);
    prof_names_free(&names);
}
END_TEST

CHECK_MAIN("map", an_array_grows_and_keeps_its_elements, a_map_behaves_like_a_table,
           a_map_takes_any_key, names_are_byte_strings)
