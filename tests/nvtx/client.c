/* See client.h. */
#include <stdlib.h>
#include <string.h>

#include "tests/check_main.h"
#include "tests/nvtx/client.h"

struct client first, second;
uint32_t injection_version;
static struct client *attaching;

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

int attach(struct client *client)
{
    memset(client, 0, sizeof *client);
    for (unsigned m = 1; m < PK_NVTX_MODULE_COUNT; m++)
        for (unsigned i = 1; i < 16; i++)
            client->table[m][i] = &client->slot[m][i];
    attaching = client;
    return InitializeInjectionNvtx2(get_export);
}

int attach_extension(uint16_t module, intptr_t *slots, size_t count)
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

void attach_first(void)
{
    fake_trace(1);
    fake_refuse(0);
    fake_close(0);
    fake_reset();
    ck_assert_int_eq(attach(&first), 1);
    ck_assert_int_eq(
        attach_extension(PK_NVTX_EXT_PAYLOAD, first.payload, PK_NVTX_PAYLOAD_SLOT_COUNT), 1);
}

const char *name_of(const struct fake_record *record)
{
    return record ? fake_text(record->range.message, NULL) : "(no record)";
}

struct pk_nvtx_event_attributes attributes(const char *message)
{
    return (struct pk_nvtx_event_attributes){
        .version = PK_NVTX_VERSION,
        .size = sizeof(struct pk_nvtx_event_attributes),
        .message_type = message ? PK_NVTX_MESSAGE_ASCII : PK_NVTX_MESSAGE_UNKNOWN,
        .message.ascii = message,
    };
}

void add_test(Suite *suite, const TTest *test, void (*setup)(void))
{
    TCase *each = check_case(suite, test->name);
    tcase_add_checked_fixture(each, setup, NULL);
    tcase_add_test(each, test);
}

int main(void)
{
    Suite *suite = suite_create("nvtx");
    add_protocol_tests(suite);
    add_payload_tests(suite);
    add_window_tests(suite);
    add_naming_tests(suite);
    return check_run_suite(suite);
}
