/* Short-lived threads: threads N. Each marks "short" with payloads 3 * i, 3 * i + 1, 3 * i + 2 and
 * ends; eight live at a time. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "perfkit/annotate.h"

#define AT_A_TIME 8

static void *briefly(void *data)
{
    pk_nvtx_mark_ex_fn mark =
        (pk_nvtx_mark_ex_fn)perfkit_annotate_slot(PK_NVTX_MODULE_CORE, PK_NVTX_CORE_MARK_EX);
    for (uint64_t k = 0; mark && k < 3; k++) {
        struct pk_nvtx_event_attributes event = {
            .version = PK_NVTX_VERSION,
            .size = sizeof event,
            .payload_type = PK_NVTX_PAYLOAD_UINT64,
            .payload.u64 = (uint64_t)(uintptr_t)data * 3 + k,
            .message_type = PK_NVTX_MESSAGE_ASCII,
            .message.ascii = "short",
        };
        mark(&event);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    for (long i = 0; i < count; i += AT_A_TIME) {
        pthread_t thread[AT_A_TIME];
        long n = count - i < AT_A_TIME ? count - i : AT_A_TIME;
        for (long k = 0; k < n; k++)
            if (pthread_create(&thread[k], NULL, briefly, (void *)(uintptr_t)(i + k)) != 0)
                return 1;
        for (long k = 0; k < n; k++)
            pthread_join(thread[k], NULL);
    }
    puts("done");
    return 0;
}
