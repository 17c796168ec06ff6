/* The tables of an Nsight Systems export as data, in the order of columns of real files, NOT NULL
 * where nsys declares it: readers rely on it. There 0 stands for what a capture does not know. */
#include "libprof/store/exchange/nsys.h"

#define GPU_HEAD "start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid"
#define API_HEAD "start! end! eventClass! globalTid correlationId nameId"

const struct nsys_table nsys_tables[] = {
    {"StringIds", "id* value:TEXT!", true},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     GPU_HEAD
     " demangledName! shortName! mangledName launchType cacheConfig registersPerThread! "
     "gridX! gridY! gridZ! blockX! blockY! blockZ! staticSharedMemory! dynamicSharedMemory! "
     "localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted graphNodeId "
     "sharedMemoryLimitConfig qmdBulkReleaseDone qmdPreexitDone qmdLastCtaDone graphId clusterX "
     "clusterY clusterZ clusterSchedulingPolicy maxPotentialClusterSize maxActiveClusters "
     "sharedMemoryRequestedPercentage tensorSizeMinusOneElements:TEXT!",
     true},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     GPU_HEAD " bytes! copyKind! deprecatedSrcId srcKind dstKind srcDeviceId srcContextId "
              "dstDeviceId dstContextId migrationCause graphNodeId virtualAddress copyCount",
     true},
    {"CUPTI_ACTIVITY_KIND_MEMSET", GPU_HEAD " value! bytes! graphNodeId memKind", true},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     GPU_HEAD " deprecatedSyncType syncType! eventId! eventSyncId", true},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", API_HEAD " returnValue! callchainId", true},
    {"CUDA_CALLCHAINS", "id* symbol! module! unresolved originalIP stackDepth*", false},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "timestamp deviceId! contextId! greenContextId streamId! correlationId globalPid eventId! "
     "eventSyncId",
     false},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", GPU_HEAD " graphId! graphExecId!", false},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD", API_HEAD " overheadType!", false},
    {"CUPTI_ACTIVITY_KIND_JIT",
     API_HEAD " overheadType! jitEntryType! jitOperationType! deviceId jitOperationCorrelationId "
              "cacheSize cachePath:TEXT",
     false},
    {"CUDA_GRAPH_NODE_EVENTS",
     "start! end! eventClass! globalTid nameId! graphNodeId! originalGraphNodeId", false},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "start! globalPid! deviceId! contextId! address! pc! bytes! memKind! memoryOperationType! "
     "name:TEXT correlationId streamId localMemoryPoolAddress localMemoryPoolReleaseThreshold "
     "localMemoryPoolSize localMemoryPoolUtilizedSize importedMemoryPoolAddress "
     "importedMemoryPoolProcessId",
     false},
    {"CUDA_GPU_MEMORY_POOL_EVENTS",
     "start! globalPid! deviceId! address! operationType! poolType! correlationId minBytesToKeep "
     "localMemoryPoolReleaseThreshold localMemoryPoolSize "
     "localMemoryPoolUtilizedSize",
     false},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
     "start! globalPid! address! originalFaultPc CpuInstruction! module! unresolvedFaultPc "
     "sourceFile sourceLine",
     false},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
     "start! end! globalPid! deviceId! address! numberOfPageFaults! faultAccessType!", false},
    {"NVTX_EVENTS",
     "start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId "
     "domainId uint64Value int64Value doubleValue:REAL uint32Value int32Value floatValue:REAL "
     "jsonTextId jsonText:TEXT binaryData:TEXT",
     true},
    {"GPU_METRICS", "rawTimestamp timestamp typeId! metricId! value!", false},
    {"TARGET_INFO_GPU_METRICS", "typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!",
     false},
    {"PROCESSES", "globalPid pid name:TEXT", true},
    {"ThreadNames", "nameId! priority globalTid", true},
    {"TARGET_INFO_GPU",
     "vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth "
     "clockRate smCount pwGpuId uuid:TEXT luid chipName:TEXT cuDevice ctxswDevPath:TEXT "
     "ctrlDevPath:TEXT revision nodeMask constantMemory maxIPC maxRegistersPerBlock "
     "maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp "
     "asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY "
     "maxBlockDimZ maxGridDimX maxGridDimY maxGridDimZ computeMajor computeMinor smMajor "
     "smMinor",
     true},
    {"TARGET_INFO_CUDA_DEVICE", "gpuId cudaId! pid! uuid:TEXT numMultiprocessors", true},
    {"TARGET_INFO_CUDA_CONTEXT_INFO",
     "nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext "
     "numMultiprocessors",
     true},
    {"TARGET_INFO_CUDA_STREAM", "streamId! hwId! vmId! processId! contextId! priority! flag!",
     true},
    {"TARGET_INFO_SYSTEM_ENV", /* only read */
     "globalVid devStateName:TEXT name:TEXT nameEnum value:TEXT", false},
    {"TARGET_INFO_SESSION_START_TIME", "utcEpochNs utcTime:TEXT localTime:TEXT systemClockNs",
     true},
    {"ANALYSIS_DETAILS", "globalVid! duration! startTime! stopTime!", true},
    {"DIAGNOSTIC_EVENT", "timestamp! timestampType! source! severity! text:TEXT! globalPid", true},
    {"META_DATA_CAPTURE", "name:TEXT! value:TEXT", true},
    {"META_DATA_EXPORT", "name:TEXT! value:TEXT", true},
    {0},
};

const struct nsys_enum nsys_enums[] = {
    {"ENUM_CUDA_MEMCPY_OPER", "CUDA_MEMCPY_KIND_",
     "0 UNKNOWN Unknown; 1 HTOD Host-to-Device; 2 DTOH Device-to-Host; 3 HTOA Host-to-Array; "
     "4 ATOH Array-to-Host; 5 ATOA Array-to-Array; 6 ATOD Array-to-Device; "
     "7 DTOA Device-to-Array; 8 DTOD Device-to-Device; 9 HTOH Host-to-Host; "
     "10 PTOP Peer-to-Peer; 11 UVM_HTOD Unified Host-to-Device; "
     "12 UVM_DTOH Unified Device-to-Host; 13 UVM_DTOD Unified Device-to-Device"},
    {"ENUM_CUDA_MEM_KIND", "CUDA_MEMOPR_MEMORY_KIND_",
     "0 PAGEABLE Pageable; 1 PINNED Pinned; 2 DEVICE Device; 3 ARRAY Array; 4 MANAGED Managed; "
     "5 DEVICE_STATIC Device Static; 6 MANAGED_STATIC Managed Static; 7 UNKNOWN Unknown"},
    {"ENUM_CUDA_KERNEL_LAUNCH_TYPE", "CUDA_KERNEL_LAUNCH_TYPE_",
     "0 UNKNOWN Unknown; 1 REGULAR Regular; 2 COOPERATIVE_SINGLE_DEVICE Coop Single Device; "
     "3 COOPERATIVE_MULTI_DEVICE Coop Multi Device"},
    {"ENUM_CUDA_FUNC_CACHE_CONFIG", "CU_FUNC_CACHE_PREFER_",
     "0 NONE None; 1 SHARED Shared; 2 L1 L1; 3 EQUAL Equal"},
    {"ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", "CUDA_SHARED_MEM_LIMIT_",
     "0 DEFAULT Default; 1 OPTIN Opt in"},
    {"ENUM_CUPTI_SYNC_TYPE", "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_",
     "0 UNKNOWN Unknown; 1 EVENT_SYNCHRONIZE Event sync; 2 STREAM_WAIT_EVENT Stream wait sync; "
     "3 STREAM_SYNCHRONIZE Stream sync; 4 CONTEXT_SYNCHRONIZE Context sync"},
    {"ENUM_CUPTI_STREAM_TYPE", "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_",
     "0 UNKNOWN Unknown stream type; 1 DEFAULT Default stream; "
     "2 NON_BLOCKING Non-blocking stream; 3 NULL Null stream"},
    {"ENUM_CUPTI_OVERHEAD_TYPE", "OVERHEAD_",
     "0 UNDEFINED Undefined; 1 UNKNOWN Unknown; 2 DRIVER_COMPILER Driver JIT compiler (CUDA); "
     "3 CUPTI_BUFFER_FLUSH Buffer flush (Profiler); "
     "4 CUPTI_INSTRUMENTATION Instrumentation (Profiler); "
     "5 CUPTI_RESOURCE Resource creation/destruction (Profiler); "
     "6 RUNTIME_TRIGGERED_MODULE_LOADING Runtime module loading (CUDA); "
     "7 LAZY_FUNCTION_LOADING Lazy function loading (CUDA); "
     "8 COMMAND_BUFFER_FULL Command buffer full (CUDA)"},
    {"ENUM_CUDA_DEV_MEM_EVENT_OPER", "CUDA_DEV_MEM_EVENT_OPR_",
     "0 ALLOCATION Allocation; 1 DEALLOCATION Deallocation"},
    {"ENUM_CUDA_MEMPOOL_TYPE", "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_",
     "0 INVALID Invalid; 1 LOCAL Local; 2 IMPORTED Imported"},
    {"ENUM_CUDA_MEMPOOL_OPER", "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_",
     "0 INVALID Invalid; 1 CREATED Created; 2 DESTROYED Destroyed; 3 TRIMMED Trimmed"},
    {"ENUM_CUDA_UNIF_MEM_MIGRATION", "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_",
     "0 UNKNOWN Unknown; 1 USER User prefetch; 2 COHERENCE Page fault; "
     "3 PREFETCH Speculative prefetch; 4 EVICTION Eviction; 5 ACCESS_COUNTERS Access counters"},
    {"ENUM_CUDA_UNIF_MEM_ACCESS_TYPE", "CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_",
     "0 UNKNOWN Unknown; 1 READ Read; 2 WRITE Write; 3 ATOMIC Atomic; 4 PREFETCH Prefetch"},
    {"ENUM_NSYS_EVENT_CLASS", "TRACE_PROCESS_EVENT_CUDA_",
     "0 RUNTIME CUDA runtime; 1 DRIVER CUDA driver; "
     "77 GRAPH_NODE_CREATION CUDA graph node creation; 102 JIT CUDA JIT; "
     "103 OVERHEAD CUDA overhead"},
    {"ENUM_NSYS_EVENT_TYPE", "",
     "33 NvtxCategory NvtxCategory; 34 NvtxMark NvtxMark; 59 NvtxPushPopRange NvtxPushPopRange; "
     "60 NvtxStartEndRange NvtxStartEndRange; 75 NvtxDomainCreate NvtxDomainCreate"},
    {"ENUM_DIAGNOSTIC_SEVERITY_LEVEL", "",
     "0 UnknownLevel Unknown; 1 Info Info; 2 Warning Warning; 3 Error Error; 4 Verbose Verbose"},
    {"ENUM_DIAGNOSTIC_SOURCE_TYPE", "",
     "0 UnknownSource Unknown source; 1 Injection Injection; 2 Daemon Daemon; 3 Analysis Analysis"},
    {"ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", "",
     "0 UnknownTimestamp Unknown timestamp; 1 TargetTimestamp Target timestamp; "
     "2 HostTimestamp Host timestamp"},
    {0},
};

/* ---- what fills them ------------------------------------------------------------------------- */

/* What fills each table of an Nsight Systems export, as SELECTs over a capture. The temporary
 * tables nsys_process, nsys_thread, nsys_stream, nsys_context, nsys_gpu, nsys_short, nsys_stack,
 * nsys_frame and nsys_text are made by nsys_export.c first: they give each row of the capture its
 * number there.
 *
 * Correlation numbers there join a call with its device records. A capture holds both in one row,
 * so they are made of row numbers: eight spaces, one a table, the sixth for what graphs share. */

#define OF(space) "k.id * 8 + " #space
/* The work of a graph has the number of the graph's launch. */
#define OF_GRAPH_OR(space) "coalesce(k.correlation * 8 + 6, " OF(space) ")"
#define DEVICE_OF(space)                                                                           \
    "k.start, k.start + k.duration, s.deviceId, s.contextId, NULL, s.streamId, " OF_GRAPH_OR(      \
        space) ", s.globalPid"
#define DEVICE_KERNEL DEVICE_OF(1)
#define DEVICE_TRANSFER DEVICE_OF(2)
#define DEVICE_MEMSET DEVICE_OF(3)
#define SYNC_NUMBER OF(4)
#define CALL_NUMBER OF_GRAPH_OR(5)
#define TIMED "k.start NOT NULL AND k.duration NOT NULL"

/* WIRE_MEMORY_* to nsys: shifted by one, SVM as managed, a pool as device memory */
#define MEMORY(kind)                                                                               \
    "CASE WHEN " kind " BETWEEN 1 AND 7 THEN " kind " - 1 WHEN " kind " = 8 THEN 4 WHEN " kind     \
    " = 9 THEN 2 ELSE 7 END"
#define SOURCE_KIND MEMORY("k.source_kind")
#define TARGET_KIND MEMORY("k.target_kind")
#define FILLED_KIND MEMORY("k.memory_kind")
#define ALLOCATED_KIND MEMORY("a.kind")

#define ALLOCATION_OWNERS                                                                          \
    "allocation a JOIN nsys_process p ON p.id = a.process LEFT JOIN nsys_gpu g ON g.id = "         \
    "a.device LEFT JOIN nsys_context c ON c.id = a.context"

/* The call that lives in a device record's row. OpenCL has no class of its own there. */
#define CALLED "CASE WHEN k.start IS NULL THEN k.api_lead ELSE k.start - k.api_lead END"
#define CALL_OF(table, space)                                                                      \
    {                                                                                              \
        "CUPTI_ACTIVITY_KIND_RUNTIME",                                                             \
            "SELECT " CALLED ", " CALLED " + k.api_duration, CASE WHEN n.value GLOB 'cu[A-Z]*' "   \
            "THEN 1 ELSE 0 END, t.globalTid, " OF(                                                 \
                space) ", k.api_name, 0, k.stack FROM " table                                      \
                       " k JOIN nsys_thread t ON t.id = k.thread JOIN string n ON n.id = "         \
                       "k.api_name WHERE "                                                         \
                       "k.api_lead + k.api_duration NOT NULL"                                      \
    }

#define PAYLOAD                                                                                    \
    "NULL, CASE WHEN typeof(e.payload) = 'integer' THEN e.payload END, "                           \
    "CASE WHEN typeof(e.payload) = 'real' THEN e.payload END"

const struct nsys_source nsys_sources[] = {
    {"StringIds",
     "SELECT 0, '' UNION ALL SELECT id, coalesce(value, '') FROM string UNION ALL SELECT id + "
     "(SELECT coalesce(max(id), 0) FROM string), value FROM nsys_text"},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     "SELECT " DEVICE_KERNEL ", coalesce(c.demangled, c.name), h.short, c.name, 1 + "
     "(coalesce(k.flags, 0) & 1), 0, c.registers, c.grid_x, c.grid_y, c.grid_z, c.block_x, "
     "c.block_y, c.block_z, c.shared_static, c.shared_dynamic, c.local_bytes, NULL, k.id, NULL, "
     "k.graph_node, NULL, NULL, NULL, NULL, NULL, c.cluster_x, c.cluster_y, c.cluster_z, NULL, "
     "NULL, NULL, NULL, '[]' FROM kernel k JOIN nsys_stream s ON s.id = k.stream JOIN "
     "launch_config c ON c.id = k.config LEFT JOIN nsys_short h ON h.id = coalesce(c.demangled, "
     "c.name) WHERE " TIMED},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "SELECT " DEVICE_TRANSFER ", k.bytes, CASE WHEN k.kind BETWEEN 0 AND 10 THEN k.kind WHEN "
     "k.kind = 11 THEN 2 WHEN k.kind = 12 THEN 1 ELSE 0 END, NULL, " SOURCE_KIND ", " TARGET_KIND
     ", NULL, NULL, (SELECT gpu FROM nsys_gpu WHERE id = k.peer), NULL, NULL, k.graph_node, NULL, "
     "1 FROM transfer k JOIN nsys_stream s ON s.id = k.stream WHERE " TIMED},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     "SELECT k.start, k.start + k.duration, coalesce(b.gpu, a.gpu, 0), NULL, NULL, "
     "coalesce(s.streamId, " NSYS_NO_EVENT "), 0, p.globalPid, k.bytes, CASE k.kind WHEN 1 THEN 11 "
     "WHEN 2 THEN 12 ELSE 13 END, NULL, 4, 4, a.gpu, NULL, b.gpu, NULL, k.cause, NULL, k.address, "
     "1 FROM migration k JOIN nsys_process p ON p.id = k.process LEFT JOIN nsys_stream s ON s.id = "
     "k.stream LEFT JOIN nsys_gpu a ON a.id = k.source LEFT JOIN nsys_gpu b ON b.id = k.target "
     "WHERE k.kind IN (1, 2, 8) AND " TIMED},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     "SELECT " DEVICE_MEMSET ", k.value, k.bytes, k.graph_node, " FILLED_KIND " FROM memset k JOIN "
     "nsys_stream s ON s.id = k.stream WHERE " TIMED},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     "SELECT k.start, k.start + k.duration, s.deviceId, s.contextId, NULL, "
     "coalesce(s.streamId, " NSYS_NO_EVENT "), " SYNC_NUMBER
     ", coalesce(s.globalPid, t.globalPid), NULL, k.kind, "
     "coalesce(k.event, " NSYS_NO_EVENT "), coalesce(k.recorded, " NSYS_NO_EVENT ") FROM sync k "
     "LEFT JOIN nsys_stream s ON s.id = k.stream LEFT JOIN nsys_thread t ON t.id = k.thread "
     "WHERE " TIMED " AND coalesce(s.globalPid, t.globalPid) NOT NULL"},
    CALL_OF("kernel", 1),
    CALL_OF("transfer", 2),
    CALL_OF("memset", 3),
    CALL_OF("sync", 4),
    {"CUPTI_ACTIVITY_KIND_RUNTIME",
     "SELECT k.start, k.start + k.duration, CASE k.source WHEN 2 THEN 1 ELSE 0 END, "
     "t.globalTid, " CALL_NUMBER ", k.name, coalesce(k.result, 0), k.stack FROM api_call k JOIN "
     "nsys_thread t ON t.id = k.thread WHERE k.duration NOT NULL"},
    /* Callers have smaller numbers: a damaged chain ends too. */
    {"CUDA_CALLCHAINS",
     "WITH RECURSIVE chain(id, stack, frame, depth) AS (SELECT u.id, s.id, s.frame, 0 FROM "
     "nsys_stack u JOIN stack s ON s.id = u.id UNION ALL SELECT c.id, p.id, p.frame, c.depth + 1 "
     "FROM chain c JOIN stack s ON s.id = c.stack JOIN stack p ON p.id = s.parent WHERE p.id < "
     "s.id) SELECT c.id, f.symbol, f.module, f.unresolved, f.address, row_number() OVER (PARTITION "
     "BY c.id ORDER BY c.depth, f.level) - 1 FROM chain c JOIN nsys_frame f ON f.frame = c.frame"},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "SELECT coalesce(e.start, 0), s.deviceId, s.contextId, NULL, s.streamId, e.correlation * 8 + "
     "7, s.globalPid, e.event, coalesce(e.recorded, " NSYS_NO_EVENT ") FROM event_record e JOIN "
     "nsys_stream s ON s.id = e.stream"},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     "SELECT k.start, k.start + k.duration, s.deviceId, s.contextId, NULL, s.streamId, "
     "k.correlation * 8 + 6, s.globalPid, k.graph, k.graph FROM graph_launch k JOIN nsys_stream s "
     "ON s.id = k.stream WHERE " TIMED},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD",
     "SELECT k.start, k.start + k.duration, 103, coalesce(t.globalTid, p.globalPid), NULL, NULL, "
     "CASE WHEN k.kind BETWEEN 1 AND 7 THEN k.kind + 1 ELSE 1 END FROM overhead k JOIN "
     "nsys_process p ON p.id = k.process LEFT JOIN nsys_thread t ON t.id = k.thread WHERE " TIMED},
    {"CUPTI_ACTIVITY_KIND_JIT",
     "SELECT k.start, k.start + k.duration, 102, coalesce(t.globalTid, p.globalPid), NULL, NULL, "
     "2, k.input, k.operation, g.gpu, k.correlation, k.cache_bytes, n.value FROM jit k JOIN "
     "nsys_process p ON p.id = k.process LEFT JOIN nsys_thread t ON t.id = k.thread LEFT JOIN "
     "nsys_gpu g ON g.id = k.device LEFT JOIN string n ON n.id = k.path WHERE " TIMED},
    {"CUDA_GRAPH_NODE_EVENTS",
     "SELECT g.start, g.start, 77, t.globalTid, 0, g.node, g.original FROM graph_node g JOIN "
     "nsys_thread t ON t.id = g.thread"},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "SELECT a.start, p.globalPid, g.gpu, c.contextId, coalesce(a.address, a.native), 0, "
     "a.bytes, " ALLOCATED_KIND ", 0 FROM " ALLOCATION_OWNERS},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "SELECT a.\"end\", p.globalPid, g.gpu, c.contextId, coalesce(a.address, a.native), 0, "
     "a.bytes, " ALLOCATED_KIND ", 1 FROM " ALLOCATION_OWNERS " WHERE a.\"end\" NOT NULL"},
    {"CUDA_GPU_MEMORY_POOL_EVENTS",
     "SELECT m.start, p.globalPid, g.gpu, m.pool, m.operation, 1, m.correlation, m.kept_bytes, "
     "m.threshold_bytes, m.bytes, m.used_bytes FROM memory_pool m JOIN nsys_process p ON p.id = "
     "m.process LEFT JOIN nsys_gpu g ON g.id = m.device"},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
     "SELECT m.start, p.globalPid, m.address, NULL, NULL, NULL, NULL, NULL, NULL FROM migration m "
     "JOIN nsys_process p ON p.id = m.process WHERE m.kind = 3"},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
     "SELECT m.start, m.start + coalesce(m.duration, 0), p.globalPid, coalesce(a.gpu, b.gpu, 0), "
     "m.address, m.faults, m.cause FROM migration m JOIN nsys_process p ON p.id = m.process LEFT "
     "JOIN nsys_gpu a ON a.id = m.source LEFT JOIN nsys_gpu b ON b.id = m.target WHERE m.kind = 4"},
    {"NVTX_EVENTS", /* domains of each process: named where they are made */
     "SELECT 0, NULL, 75, NULL, NULL, NULL, s.value, p.globalPid | (p.pid & 16777215), NULL, NULL, "
     "d.domain FROM (SELECT DISTINCT t.process, r.domain FROM range r JOIN thread t ON t.id = "
     "r.thread WHERE r.domain NOT NULL UNION SELECT t.process, m.domain FROM marker m JOIN thread "
     "t ON t.id = m.thread WHERE m.domain NOT NULL UNION SELECT process, domain FROM category "
     "WHERE domain NOT NULL) d JOIN nsys_process p ON p.id = d.process JOIN string s ON s.id = "
     "d.domain"},
    {"NVTX_EVENTS",
     "SELECT 0, NULL, 33, NULL, c.category, NULL, c.name, p.globalPid | (p.pid & 16777215), NULL, "
     "NULL, coalesce(c.domain, 0) FROM category c JOIN nsys_process p ON p.id = c.process"},
    {"NVTX_EVENTS",
     "SELECT e.start, e.start + e.duration, CASE WHEN e.depth IS NULL THEN 60 ELSE 59 END, CASE "
     "WHEN e.depth IS NULL THEN e.id END, e.category, e.color, n.value, t.globalTid, CASE WHEN "
     "e.depth IS NULL AND e.duration NOT NULL THEN coalesce(x.globalTid, t.globalTid) END, e.name, "
     "coalesce(e.domain, 0), " PAYLOAD " FROM range e JOIN nsys_thread t ON t.id = e.thread LEFT "
     "JOIN nsys_thread x ON x.id = e.end_thread LEFT JOIN string n ON n.id = e.name"},
    {"NVTX_EVENTS",
     "SELECT e.start, NULL, 34, NULL, e.category, e.color, n.value, t.globalTid, NULL, e.name, "
     "coalesce(e.domain, 0), " PAYLOAD " FROM marker e JOIN nsys_thread t ON t.id = e.thread LEFT "
     "JOIN string n ON n.id = e.name"},
    {"TARGET_INFO_GPU_METRICS",
     "SELECT " NSYS_VM " | g.gpu, 0, d.name, c.slot, coalesce(c.name, c.metric) FROM counter c "
     "JOIN counter_device d ON d.id = c.counter_device JOIN nsys_counter_gpu g ON g.id = d.id"},
    {"PROCESSES",
     "SELECT p.globalPid, p.pid, q.command FROM nsys_process p JOIN process q ON q.id = p.id"},
    {"ThreadNames",
     "SELECT x.id + (SELECT coalesce(max(id), 0) FROM string), t.priority, t.globalTid FROM "
     "nsys_thread t JOIN nsys_text x ON x.value = t.name"},
    {"TARGET_INFO_GPU",
     "SELECT 0, g.gpu, d.name, NULL, 1 - d.integrated, d.l2_bytes, d.memory_bytes, "
     "d.memory_bandwidth, d.clock_khz * 1000, d.units, g.gpu, CASE WHEN d.uuid LIKE 'GPU-%' THEN "
     "substr(d.uuid, 5) ELSE d.uuid END, NULL, NULL, g.gpu, NULL, NULL, NULL, NULL, NULL, NULL, "
     "NULL, d.shared_per_block_bytes, NULL, d.shared_per_unit_bytes, d.registers_per_unit, d.warp, "
     "NULL, CASE WHEN d.warp > 0 THEN d.max_threads_per_unit / d.warp END, NULL, d.max_block, "
     "NULL, NULL, NULL, NULL, NULL, NULL, d.compute_major, d.compute_minor, d.compute_major, "
     "d.compute_minor FROM device d JOIN (SELECT gpu, min(id) AS id FROM nsys_gpu GROUP BY gpu) g "
     "ON g.id = d.id"},
    {"TARGET_INFO_CUDA_DEVICE",
     "SELECT DISTINCT g.gpu, g.gpu, p.pid, CASE WHEN d.uuid LIKE 'GPU-%' THEN substr(d.uuid, 5) "
     "ELSE d.uuid END, d.units FROM device d JOIN nsys_gpu g ON g.id = d.id JOIN nsys_process p ON "
     "p.id = d.process"},
    {"TARGET_INFO_CUDA_CONTEXT_INFO",
     "SELECT coalesce((SELECT min(s.streamId) FROM nsys_stream s JOIN stream q ON q.id = s.id "
     "WHERE q.context = c.id AND q.is_default), 0), 0, 1, p.pid, c.deviceId, c.contextId, "
     "coalesce(u.contextId, 0), coalesce(q.green, 0), coalesce(q.units, 0) FROM nsys_context c "
     "JOIN context q ON q.id = c.id JOIN nsys_process p ON p.id = q.process LEFT JOIN nsys_context "
     "u ON u.id = q.parent"},
    {"TARGET_INFO_CUDA_STREAM",
     "SELECT s.streamId, 0, 1, p.pid, s.contextId, coalesce(q.priority, 0) & 4294967295, CASE WHEN "
     "q.is_default THEN 3 WHEN q.non_blocking THEN 2 ELSE 1 END FROM nsys_stream s JOIN stream q "
     "ON q.id = s.id JOIN nsys_process p ON p.id = q.process"},
    {"TARGET_INFO_SESSION_START_TIME",
     "SELECT start_realtime_ns, strftime('%Y-%m-%dT%H:%M:%S', start_realtime_ns / 1000000000, "
     "'unixepoch'), strftime('%Y-%m-%dT%H:%M:%S', start_realtime_ns / 1000000000, 'unixepoch', "
     "'localtime'), start_mono_ns FROM capture"},
    {"ANALYSIS_DETAILS",
     "SELECT " NSYS_VM ", duration, coalesce(start_mono_ns, 0), coalesce(start_mono_ns, 0) + "
     "duration FROM capture"},
    {"DIAGNOSTIC_EVENT",
     "SELECT 0, 1, 3, CASE WHEN (h.item IN ('dropped', 'remainder') AND h.value) OR h.level = "
     "'loss' THEN 2 ELSE 1 END, h.subject || ' ' || h.item || coalesce(' ' || h.value, '') || "
     "coalesce(': ' || h.note, ''), p.globalPid FROM capture_health h LEFT JOIN nsys_process p ON "
     "p.id = h.process"},
    {"META_DATA_CAPTURE",
     "SELECT 'PERFKIT_COMMAND', command FROM capture UNION ALL SELECT 'PERFKIT_DIRECTORY', "
     "directory FROM capture UNION ALL SELECT 'PERFKIT_HOST', host FROM capture UNION ALL SELECT "
     "'PERFKIT_CPU', cpu FROM capture UNION ALL SELECT 'PERFKIT_CPU_COUNT', cpu_count FROM capture "
     "UNION ALL SELECT 'PERFKIT_KERNEL', kernel FROM capture UNION ALL SELECT 'PERFKIT_STATE', "
     "state FROM capture UNION ALL SELECT 'PERFKIT_EXIT_STATUS', exit_status FROM capture"},
    {"META_DATA_EXPORT", /* so that an import knows what is no CUDA device: its number and kind */
     "SELECT DISTINCT 'PERFKIT_OPENCL_DEVICE', g.gpu || ' ' || d.kind FROM nsys_gpu g JOIN device "
     "d ON d.id = g.id WHERE d.api = 'opencl'"},
    {0},
};
