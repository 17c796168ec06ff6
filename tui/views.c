/* The list of views: their order is that of the tabs and of the keys 1 to 9. */
#include "tui/views.h"

const struct tui_view tui_views[TUI_VIEWS] = {
    [TUI_VIEW_KERNELS] = {"kernels", "Kernels",
                          "which kernels run, how often, how long; Enter: one", false,
                          tui_fill_kernels, tui_fill_kernel},
    [TUI_VIEW_STREAMS] = {"streams", "Streams", "what each stream did in the last minute", true,
                          tui_fill_streams, NULL},
    [TUI_VIEW_TRANSFERS] = {"transfers", "Memcpy",
                            "memcpy and memset, how fast, against the ceiling", false,
                            tui_fill_transfers, NULL},
    [TUI_VIEW_MEMORY] = {"memory", "Memory",
                         "live memory, the largest pieces; Enter: the code that allocates", false,
                         tui_fill_memory, tui_fill_memory_paths},
    [TUI_VIEW_RANGES] = {"ranges", "NVTX", "device time by the ranges that launched it", true,
                         tui_fill_ranges, NULL},
    [TUI_VIEW_PROCESSES] = {"processes", "Procs", "processes and ranks", false, tui_fill_processes,
                            NULL},
    [TUI_VIEW_FINDINGS] = {"findings", "Findings",
                           "what the rules say, of a running capture lately; Enter: why", true,
                           tui_fill_findings, tui_fill_finding},
    [TUI_VIEW_DEVICES] = {"devices", "Devices", "load, memory, power, clocks by the driver", false,
                          tui_fill_devices, NULL},
    [TUI_VIEW_HEALTH] = {"health", "Health", "lost records, delay, and what perfkit itself costs",
                         true, tui_fill_health, NULL},
    [TUI_VIEW_HOST] = {"host", "Host", "where the host's threads are, which lines launch", true,
                       tui_fill_host, NULL},
};
