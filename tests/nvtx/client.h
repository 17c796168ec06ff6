/* A client of NVTX: it hands its slot tables to InitializeInjectionNvtx2 and calls through them, as
 * the vendor's headers do. Against the recording core of fake.h; no GPU, no CUDA, no spool. */
#ifndef PERFKIT_TESTS_NVTX_CLIENT_H
#define PERFKIT_TESTS_NVTX_CLIENT_H

#include <check.h>
#include <stddef.h>
#include <stdint.h>

#include "perfkit/nvtx_abi.h"
#include "tests/nvtx/fake.h"

int InitializeInjectionNvtx2(pk_nvtx_get_export_table_fn get_export_table);
int InitializeInjectionNvtxExtension(struct pk_nvtx_ext_module_info *info);

struct client {
    pk_nvtx_function slot[PK_NVTX_MODULE_COUNT][16];
    pk_nvtx_function *table[PK_NVTX_MODULE_COUNT][17];
    intptr_t payload[PK_NVTX_PAYLOAD_SLOT_COUNT];
    intptr_t counters[PK_NVTX_PAYLOAD_SLOT_COUNT];
};
extern struct client first, second;
extern uint32_t injection_version; /* what the injection said of itself */

int attach(struct client *client);
int attach_extension(uint16_t module, intptr_t *slots, size_t count);
void attach_first(void); /* a fresh core, the first client and the payload extension */

/* Name of a range or mark. */
const char *name_of(const struct fake_record *record);
struct pk_nvtx_event_attributes attributes(const char *message);

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

void add_protocol_tests(Suite *suite);
void add_payload_tests(Suite *suite);
void add_window_tests(Suite *suite);
void add_naming_tests(Suite *suite);
void add_test(Suite *suite, const TTest *test, void (*setup)(void)); /* a case of its own */

#endif
