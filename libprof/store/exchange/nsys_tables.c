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
