/* The tables of an Nsight Systems export as data, in the order of columns of real files, NOT NULL
 * where nsys declares it: readers rely on it. There 0 stands for what a capture does not know. */

#include "libprof/store/exchange/nsys.h"

#define GPU_HEAD                                                                                   \
    "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER "  \
    "NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, "         \
    "globalPid INTEGER"
#define API_HEAD                                                                                   \
    "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid "        \
    "INTEGER, correlationId INTEGER, nameId INTEGER"

const struct nsys_table nsys_tables[] = {
    {"StringIds", "id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", true},
    {"CUPTI_ACTIVITY_KIND_KERNEL",
     GPU_HEAD
     ", demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, "
     "launchType INTEGER, cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER "
     "NOT NULL, gridY INTEGER NOT NULL, gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY "
     "INTEGER NOT NULL, blockZ INTEGER NOT NULL, staticSharedMemory INTEGER NOT NULL, "
     "dynamicSharedMemory INTEGER NOT NULL, localMemoryPerThread INTEGER NOT NULL, "
     "localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, sharedMemoryExecuted INTEGER, "
     "graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone INTEGER, "
     "qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, clusterY "
     "INTEGER, clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, "
     "maxActiveClusters INTEGER, sharedMemoryRequestedPercentage INTEGER, "
     "tensorSizeMinusOneElements TEXT NOT NULL",
     true},
    {"CUPTI_ACTIVITY_KIND_MEMCPY",
     GPU_HEAD ", bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, "
              "srcKind INTEGER, dstKind INTEGER, srcDeviceId INTEGER, srcContextId INTEGER, "
              "dstDeviceId INTEGER, dstContextId INTEGER, migrationCause INTEGER, graphNodeId "
              "INTEGER, virtualAddress INTEGER, copyCount INTEGER",
     true},
    {"CUPTI_ACTIVITY_KIND_MEMSET",
     GPU_HEAD
     ", value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
     true},
    {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
     GPU_HEAD ", deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, "
              "eventSyncId INTEGER",
     true},
    {"CUPTI_ACTIVITY_KIND_RUNTIME", API_HEAD ", returnValue INTEGER NOT NULL, callchainId INTEGER",
     true},
    {"CUDA_CALLCHAINS",
     "id INTEGER NOT NULL, symbol INTEGER NOT NULL, module INTEGER NOT NULL, unresolved INTEGER, "
     "originalIP INTEGER, stackDepth INTEGER NOT NULL, PRIMARY KEY(id, stackDepth)",
     false},
    {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
     "timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId "
     "INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId "
     "INTEGER NOT NULL, eventSyncId INTEGER",
     false},
    {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
     GPU_HEAD ", graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL", false},
    {"CUPTI_ACTIVITY_KIND_OVERHEAD", API_HEAD ", overheadType INTEGER NOT NULL", false},
    {"CUPTI_ACTIVITY_KIND_JIT",
     API_HEAD
     ", overheadType INTEGER NOT NULL, jitEntryType INTEGER NOT NULL, jitOperationType INTEGER NOT "
     "NULL, deviceId INTEGER, jitOperationCorrelationId INTEGER, cacheSize INTEGER, cachePath TEXT",
     false},
    {"CUDA_GRAPH_NODE_EVENTS",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid "
     "INTEGER, nameId INTEGER NOT NULL, graphNodeId INTEGER NOT NULL, originalGraphNodeId INTEGER",
     false},
    {"CUDA_GPU_MEMORY_USAGE_EVENTS",
     "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId "
     "INTEGER NOT NULL, address INTEGER NOT NULL, pc INTEGER NOT NULL, bytes INTEGER NOT NULL, "
     "memKind INTEGER NOT NULL, memoryOperationType INTEGER NOT NULL, name TEXT, correlationId "
     "INTEGER, streamId INTEGER, localMemoryPoolAddress INTEGER, localMemoryPoolReleaseThreshold "
     "INTEGER, localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER, "
     "importedMemoryPoolAddress INTEGER, importedMemoryPoolProcessId INTEGER",
     false},
    {"CUDA_GPU_MEMORY_POOL_EVENTS",
     "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER NOT NULL, address "
     "INTEGER NOT NULL, operationType INTEGER NOT NULL, poolType INTEGER NOT NULL, correlationId "
     "INTEGER, minBytesToKeep INTEGER, localMemoryPoolReleaseThreshold INTEGER, "
     "localMemoryPoolSize INTEGER, localMemoryPoolUtilizedSize INTEGER",
     false},
    {"CUDA_UM_CPU_PAGE_FAULT_EVENTS",
     "start INTEGER NOT NULL, globalPid INTEGER NOT NULL, address INTEGER NOT NULL, "
     "originalFaultPc INTEGER, CpuInstruction INTEGER NOT NULL, module INTEGER NOT NULL, "
     "unresolvedFaultPc INTEGER, sourceFile INTEGER, sourceLine INTEGER",
     false},
    {"CUDA_UM_GPU_PAGE_FAULT_EVENTS",
     "start INTEGER NOT NULL, end INTEGER NOT NULL, globalPid INTEGER NOT NULL, deviceId INTEGER "
     "NOT NULL, address INTEGER NOT NULL, numberOfPageFaults INTEGER NOT NULL, faultAccessType "
     "INTEGER NOT NULL",
     false},
    {"NVTX_EVENTS",
     "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category "
     "INTEGER, color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, "
     "domainId INTEGER, uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value "
     "INTEGER, int32Value INTEGER, floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData "
     "TEXT",
     true},
    {"GPU_METRICS",
     "rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER NOT NULL, metricId INTEGER NOT NULL, "
     "value INTEGER NOT NULL",
     false},
    {"TARGET_INFO_GPU_METRICS",
     "typeId INTEGER NOT NULL, sourceId INTEGER NOT NULL, typeName TEXT NOT NULL, metricId INTEGER "
     "NOT NULL, metricName TEXT NOT NULL",
     false},
    {"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT", true},
    {"ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER", true},
    {"TARGET_INFO_GPU",
     "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
     "l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, "
     "smCount INTEGER, pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, "
     "ctxswDevPath TEXT, ctrlDevPath TEXT, revision INTEGER, nodeMask INTEGER, constantMemory "
     "INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, maxShmemPerBlock INTEGER, "
     "maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, "
     "threadsPerWarp INTEGER, asyncEngines INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, "
     "maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER, maxBlockDimY INTEGER, maxBlockDimZ "
     "INTEGER, maxGridDimX INTEGER, maxGridDimY INTEGER, maxGridDimZ INTEGER, computeMajor "
     "INTEGER, computeMinor INTEGER, smMajor INTEGER, smMinor INTEGER",
     true},
    {"TARGET_INFO_CUDA_DEVICE",
     "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL, uuid TEXT, numMultiprocessors "
     "INTEGER",
     true},
    {"TARGET_INFO_CUDA_CONTEXT_INFO",
     "nullStreamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId "
     "INTEGER NOT NULL, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, parentContextId "
     "INTEGER, isGreenContext INTEGER, numMultiprocessors INTEGER",
     true},
    {"TARGET_INFO_CUDA_STREAM",
     "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER "
     "NOT NULL, contextId INTEGER NOT NULL, priority INTEGER NOT NULL, flag INTEGER NOT NULL",
     true},
    {"TARGET_INFO_SYSTEM_ENV", /* only read */
     "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT", false},
    {"TARGET_INFO_SESSION_START_TIME",
     "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER", true},
    {"ANALYSIS_DETAILS",
     "globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL, stopTime "
     "INTEGER NOT NULL",
     true},
    {"DIAGNOSTIC_EVENT",
     "timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL, "
     "severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER",
     true},
    {"META_DATA_CAPTURE", "name TEXT NOT NULL, value TEXT", true},
    {"META_DATA_EXPORT", "name TEXT NOT NULL, value TEXT", true},
    {0},
};

#define ENUM(type, id, name, label)                                                                \
    {                                                                                              \
        type, id, name, label                                                                      \
    }
#define MEMCPY(id, name, label) ENUM("ENUM_CUDA_MEMCPY_OPER", id, "CUDA_MEMCPY_KIND_" name, label)
#define MEMORY(id, name, label)                                                                    \
    ENUM("ENUM_CUDA_MEM_KIND", id, "CUDA_MEMOPR_MEMORY_KIND_" name, label)
#define LAUNCH(id, name, label)                                                                    \
    ENUM("ENUM_CUDA_KERNEL_LAUNCH_TYPE", id, "CUDA_KERNEL_LAUNCH_TYPE_" name, label)
#define SYNC(id, name, label)                                                                      \
    ENUM("ENUM_CUPTI_SYNC_TYPE", id, "CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_" name, label)
#define STREAM(id, name, label)                                                                    \
    ENUM("ENUM_CUPTI_STREAM_TYPE", id, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_" name, label)
#define MIGRATION(id, name, label)                                                                 \
    ENUM("ENUM_CUDA_UNIF_MEM_MIGRATION", id, "CUDA_UNIFIED_MEMORY_MIGRATION_CAUSE_" name, label)
#define ACCESS(id, name, label)                                                                    \
    ENUM("ENUM_CUDA_UNIF_MEM_ACCESS_TYPE", id, "CUPTI_ACTIVITY_UNIFIED_MEMORY_ACCESS_TYPE_" name,  \
         label)

const struct nsys_enum nsys_enums[] = {
    MEMCPY(0, "UNKNOWN", "Unknown"),
    MEMCPY(1, "HTOD", "Host-to-Device"),
    MEMCPY(2, "DTOH", "Device-to-Host"),
    MEMCPY(3, "HTOA", "Host-to-Array"),
    MEMCPY(4, "ATOH", "Array-to-Host"),
    MEMCPY(5, "ATOA", "Array-to-Array"),
    MEMCPY(6, "ATOD", "Array-to-Device"),
    MEMCPY(7, "DTOA", "Device-to-Array"),
    MEMCPY(8, "DTOD", "Device-to-Device"),
    MEMCPY(9, "HTOH", "Host-to-Host"),
    MEMCPY(10, "PTOP", "Peer-to-Peer"),
    MEMCPY(11, "UVM_HTOD", "Unified Host-to-Device"),
    MEMCPY(12, "UVM_DTOH", "Unified Device-to-Host"),
    MEMCPY(13, "UVM_DTOD", "Unified Device-to-Device"),
    MEMORY(0, "PAGEABLE", "Pageable"),
    MEMORY(1, "PINNED", "Pinned"),
    MEMORY(2, "DEVICE", "Device"),
    MEMORY(3, "ARRAY", "Array"),
    MEMORY(4, "MANAGED", "Managed"),
    MEMORY(5, "DEVICE_STATIC", "Device Static"),
    MEMORY(6, "MANAGED_STATIC", "Managed Static"),
    MEMORY(7, "UNKNOWN", "Unknown"),
    LAUNCH(0, "UNKNOWN", "Unknown"),
    LAUNCH(1, "REGULAR", "Regular"),
    LAUNCH(2, "COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"),
    LAUNCH(3, "COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"),
    ENUM("ENUM_CUDA_FUNC_CACHE_CONFIG", 0, "CU_FUNC_CACHE_PREFER_NONE", "None"),
    ENUM("ENUM_CUDA_FUNC_CACHE_CONFIG", 1, "CU_FUNC_CACHE_PREFER_SHARED", "Shared"),
    ENUM("ENUM_CUDA_FUNC_CACHE_CONFIG", 2, "CU_FUNC_CACHE_PREFER_L1", "L1"),
    ENUM("ENUM_CUDA_FUNC_CACHE_CONFIG", 3, "CU_FUNC_CACHE_PREFER_EQUAL", "Equal"),
    ENUM("ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", 0, "CUDA_SHARED_MEM_LIMIT_DEFAULT", "Default"),
    ENUM("ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG", 1, "CUDA_SHARED_MEM_LIMIT_OPTIN", "Opt in"),
    SYNC(0, "UNKNOWN", "Unknown"),
    SYNC(1, "EVENT_SYNCHRONIZE", "Event sync"),
    SYNC(2, "STREAM_WAIT_EVENT", "Stream wait sync"),
    SYNC(3, "STREAM_SYNCHRONIZE", "Stream sync"),
    SYNC(4, "CONTEXT_SYNCHRONIZE", "Context sync"),
    STREAM(0, "UNKNOWN", "Unknown stream type"),
    STREAM(1, "DEFAULT", "Default stream"),
    STREAM(2, "NON_BLOCKING", "Non-blocking stream"),
    STREAM(3, "NULL", "Null stream"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 0, "OVERHEAD_UNDEFINED", "Undefined"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 1, "OVERHEAD_UNKNOWN", "Unknown"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 2, "OVERHEAD_DRIVER_COMPILER", "Driver JIT compiler (CUDA)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 3, "OVERHEAD_CUPTI_BUFFER_FLUSH", "Buffer flush (Profiler)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 4, "OVERHEAD_CUPTI_INSTRUMENTATION",
         "Instrumentation (Profiler)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 5, "OVERHEAD_CUPTI_RESOURCE",
         "Resource creation/destruction (Profiler)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 6, "OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING",
         "Runtime module loading (CUDA)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 7, "OVERHEAD_LAZY_FUNCTION_LOADING",
         "Lazy function loading (CUDA)"),
    ENUM("ENUM_CUPTI_OVERHEAD_TYPE", 8, "OVERHEAD_COMMAND_BUFFER_FULL",
         "Command buffer full (CUDA)"),
    ENUM("ENUM_CUDA_DEV_MEM_EVENT_OPER", 0, "CUDA_DEV_MEM_EVENT_OPR_ALLOCATION", "Allocation"),
    ENUM("ENUM_CUDA_DEV_MEM_EVENT_OPER", 1, "CUDA_DEV_MEM_EVENT_OPR_DEALLOCATION", "Deallocation"),
    ENUM("ENUM_CUDA_MEMPOOL_TYPE", 0, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_INVALID", "Invalid"),
    ENUM("ENUM_CUDA_MEMPOOL_TYPE", 1, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL", "Local"),
    ENUM("ENUM_CUDA_MEMPOOL_TYPE", 2, "CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED", "Imported"),
    ENUM("ENUM_CUDA_MEMPOOL_OPER", 0, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_INVALID",
         "Invalid"),
    ENUM("ENUM_CUDA_MEMPOOL_OPER", 1, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_CREATED",
         "Created"),
    ENUM("ENUM_CUDA_MEMPOOL_OPER", 2, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_DESTROYED",
         "Destroyed"),
    ENUM("ENUM_CUDA_MEMPOOL_OPER", 3, "CUPTI_ACTIVITY_MEMORY_POOL_OPERATION_TYPE_TRIMMED",
         "Trimmed"),
    MIGRATION(0, "UNKNOWN", "Unknown"),
    MIGRATION(1, "USER", "User prefetch"),
    MIGRATION(2, "COHERENCE", "Page fault"),
    MIGRATION(3, "PREFETCH", "Speculative prefetch"),
    MIGRATION(4, "EVICTION", "Eviction"),
    MIGRATION(5, "ACCESS_COUNTERS", "Access counters"),
    ACCESS(0, "UNKNOWN", "Unknown"),
    ACCESS(1, "READ", "Read"),
    ACCESS(2, "WRITE", "Write"),
    ACCESS(3, "ATOMIC", "Atomic"),
    ACCESS(4, "PREFETCH", "Prefetch"),
    ENUM("ENUM_NSYS_EVENT_CLASS", 0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
    ENUM("ENUM_NSYS_EVENT_CLASS", 1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
    ENUM("ENUM_NSYS_EVENT_CLASS", 77, "TRACE_PROCESS_EVENT_CUDA_GRAPH_NODE_CREATION",
         "CUDA graph node creation"),
    ENUM("ENUM_NSYS_EVENT_CLASS", 102, "TRACE_PROCESS_EVENT_CUDA_JIT", "CUDA JIT"),
    ENUM("ENUM_NSYS_EVENT_CLASS", 103, "TRACE_PROCESS_EVENT_CUDA_OVERHEAD", "CUDA overhead"),
    ENUM("ENUM_NSYS_EVENT_TYPE", 33, "NvtxCategory", "NvtxCategory"),
    ENUM("ENUM_NSYS_EVENT_TYPE", 34, "NvtxMark", "NvtxMark"),
    ENUM("ENUM_NSYS_EVENT_TYPE", 59, "NvtxPushPopRange", "NvtxPushPopRange"),
    ENUM("ENUM_NSYS_EVENT_TYPE", 60, "NvtxStartEndRange", "NvtxStartEndRange"),
    ENUM("ENUM_NSYS_EVENT_TYPE", 75, "NvtxDomainCreate", "NvtxDomainCreate"),
    ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", 0, "UnknownLevel", "Unknown"),
    ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", 1, "Info", "Info"),
    ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", 2, "Warning", "Warning"),
    ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", 3, "Error", "Error"),
    ENUM("ENUM_DIAGNOSTIC_SEVERITY_LEVEL", 4, "Verbose", "Verbose"),
    ENUM("ENUM_DIAGNOSTIC_SOURCE_TYPE", 0, "UnknownSource", "Unknown source"),
    ENUM("ENUM_DIAGNOSTIC_SOURCE_TYPE", 1, "Injection", "Injection"),
    ENUM("ENUM_DIAGNOSTIC_SOURCE_TYPE", 2, "Daemon", "Daemon"),
    ENUM("ENUM_DIAGNOSTIC_SOURCE_TYPE", 3, "Analysis", "Analysis"),
    ENUM("ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", 0, "UnknownTimestamp", "Unknown timestamp"),
    ENUM("ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", 1, "TargetTimestamp", "Target timestamp"),
    ENUM("ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE", 2, "HostTimestamp", "Host timestamp"),
    {0},
};
