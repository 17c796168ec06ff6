/* --capture-range=nvtx:NAME[@DOMAIN]: ranges of that name open a window when they begin and close
 * it when they end. perfkit run hands name and domain over with '%' and ',' as %XX; without a
 * domain the default domain is meant, "*" is any. Without the option one flag is tested per range.
 */
#include <string.h>

#include "collectors/core/option_text.h"
#include "collectors/nvtx/nvtx.h"

#define MAX_STARTED 64u /* ranges by start and end that hold windows open at a time */

bool nvtx_capturing;

static char wanted_name[512];
static char wanted_domain[256];
static bool any_domain;
static _Atomic uint32_t started;
static _Atomic uint64_t started_ids[MAX_STARTED]; /* 0 = free */

void nvtx_capture_start(void)
{
    if (atomic_exchange(&started, 1) || option_capture() != WIRE_WINDOW_RANGE ||
        !collector_option("capture-name", wanted_name, sizeof wanted_name))
        return;
    if (!collector_option("capture-domain", wanted_domain, sizeof wanted_domain))
        wanted_domain[0] = '\0';
    any_domain = strcmp(wanted_domain, "*") == 0;
    option_decode(wanted_name);
    option_decode(wanted_domain);
    nvtx_capturing = true;
}

static bool opens_capture_range(int32_t type, const void *message)
{
    struct nvtx_text wide;
    const struct nvtx_object *registered;
    bool same;
    switch (type) {
    case PK_NVTX_MESSAGE_ASCII:
        return message && strcmp(message, wanted_name) == 0;
    case PK_NVTX_MESSAGE_UNICODE:
        nvtx_narrow(&wide, message);
        same = wide.text && wide.length == strlen(wanted_name) &&
               memcmp(wide.text, wanted_name, wide.length) == 0;
        nvtx_narrow_done(&wide);
        return same;
    case PK_NVTX_MESSAGE_REGISTERED:
        registered = nvtx_object_of(message, NVTX_STRING);
        return registered && strcmp(registered->text, wanted_name) == 0;
    default:
        return false;
    }
}

bool nvtx_capture_opens(const struct nvtx_object *domain, int32_t type, const void *message)
{
    if (!any_domain && strcmp(domain ? domain->text : "", wanted_domain) != 0)
        return false;
    if (!opens_capture_range(type, message) || !nvtx_begin())
        return false;
    collector_window(true, WIRE_WINDOW_RANGE);
    return true;
}

void nvtx_capture_closes(void)
{
    collector_window(false, WIRE_WINDOW_RANGE);
}

static bool swap(uint64_t from, uint64_t to)
{
    for (unsigned i = 0; i < MAX_STARTED; i++) {
        uint64_t found = from;
        if (atomic_compare_exchange_strong(&started_ids[i], &found, to))
            return true;
    }
    return false;
}

bool nvtx_capture_keep(pk_nvtx_range_id id)
{
    return swap(0, id);
}

bool nvtx_capture_take(pk_nvtx_range_id id)
{
    return swap(id, 0);
}
