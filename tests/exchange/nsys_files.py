"""Small SQLite files in the shape of Nsight Systems exports, schema 3.20 to 3.28, made from the published
schema: what each version added, tables that are absent when empty, and the ways in which such a file is broken."""
import os
import sqlite3

VM = 1 << 48


def pid_of(pid):
    return VM | pid << 24


def tid_of(pid, tid):
    return VM | pid << 24 | tid


GPU = "start, end, deviceId, contextId, greenContextId, streamId, correlationId, globalPid"
TABLES = {
    "StringIds": "id PRIMARY KEY, value TEXT",
    "CUPTI_ACTIVITY_KIND_KERNEL": GPU + ", demangledName, shortName, mangledName, launchType, cacheConfig, "
    "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ, staticSharedMemory, dynamicSharedMemory, "
    "localMemoryPerThread, localMemoryTotal, gridId, sharedMemoryExecuted, graphNodeId, sharedMemoryLimitConfig",
    "CUPTI_ACTIVITY_KIND_MEMCPY": GPU + ", bytes, copyKind, deprecatedSrcId, srcKind, dstKind, srcDeviceId, "
    "srcContextId, dstDeviceId, dstContextId, migrationCause, graphNodeId, virtualAddress, copyCount",
    "CUPTI_ACTIVITY_KIND_MEMSET": GPU + ", value, bytes, graphNodeId, memKind",
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": GPU + ", deprecatedSyncType, syncType, eventId, eventSyncId",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, eventClass, globalTid, correlationId, nameId, returnValue, callchainId",
    "NVTX_EVENTS": "start, end, eventType, rangeId, category, color, text TEXT, globalTid, endGlobalTid, textId, domainId, "
    "uint64Value, int64Value, doubleValue REAL, uint32Value, int32Value, floatValue REAL, jsonTextId, jsonText TEXT, "
    "binaryData TEXT",
    "PROCESSES": "globalPid, pid, name TEXT",
    "ThreadNames": "nameId, priority, globalTid",
    "META_DATA_EXPORT": "name TEXT, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs, utcTime TEXT, localTime TEXT",
    "CUDA_GPU_MEMORY_USAGE_EVENTS": "start, globalPid, deviceId, contextId, address, pc, bytes, memKind, "
    "memoryOperationType, name TEXT, correlationId, streamId",
}
LATER = {  # column by column, with the minor version of the schema that brought it
    24: ("CUPTI_ACTIVITY_KIND_KERNEL", ["qmdBulkReleaseDone", "graphId", "clusterX", "clusterY", "clusterZ"]),
    25: ("CUPTI_ACTIVITY_KIND_KERNEL", ["tensorSizeMinusOneElements"]),
    28: ("NVTX_EVENTS", ["eventId"]),
}
NAMES = ["cudaLaunchKernel_v7000", "cuLaunchKernel", "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020",
         "cudaStreamWaitEvent_v3020", "void gemm<float>(float *)", "gemm", "softmax", "step", "library", "worker",
         "cudaMemsetAsync_v3020", "cudaGraphLaunch_v10000", "cudaMemcpy_v3020"]
ID = {name: number for number, name in enumerate(NAMES)}


def make(path, minor=25, leave_out=(), shuffle=False):
    """Two processes that both call their GPU 0. Returns what an import must count."""
    if os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    added = {}
    for version, (table, columns) in LATER.items():
        if minor >= version:
            added.setdefault(table, []).extend(columns)
    for table, columns in TABLES.items():
        if table in leave_out:
            continue
        names = [c.strip() for c in columns.split(",")] + added.get(table, [])
        if shuffle:
            names.reverse()
        typed = ", ".join(name if " " in name else name + " INTEGER" for name in names)
        db.execute(f"CREATE TABLE {table}({typed})")

    def put(table, **values):
        if table not in leave_out:
            have = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
            values = {name: value for name, value in values.items() if name in have}
            db.execute(f"INSERT INTO {table}({', '.join(values)}) VALUES({', '.join('?' * len(values))})", list(values.values()))

    for name, number in ID.items():
        put("StringIds", id=number, value=name)
    for name, value in (("EXPORT_PRODUCT_NAME", "NVIDIA Nsight Systems"), ("EXPORT_SCHEMA_VERSION", f"3.{minor}.0")):
        put("META_DATA_EXPORT", name=name, value=value)
    put("TARGET_INFO_SESSION_START_TIME", utcEpochNs=1785549185000000000)
    for pid in (100, 200):
        fill(put, pid, minor)
    db.commit()
    db.close()


def fill(put, pid, minor):
    put("PROCESSES", globalPid=pid_of(pid), pid=pid, name=f"train{pid}")
    put("ThreadNames", nameId=ID["worker"], priority=20, globalTid=tid_of(pid, pid + 1))
    gpu = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": pid_of(pid)}
    for i in range(10):  # the same correlation numbers in both processes
        at = -5000 + 1000 * i
        put("CUPTI_ACTIVITY_KIND_RUNTIME", start=at, end=at + 100, eventClass=i % 2, globalTid=tid_of(pid, pid + i % 2),
            correlationId=10 + i, nameId=ID["cuLaunchKernel" if i % 2 else "cudaLaunchKernel_v7000"], returnValue=0)
        put("CUPTI_ACTIVITY_KIND_KERNEL", start=at + 200, end=at + 500 + i, correlationId=10 + i, demangledName=ID["void gemm<float>(float *)"]
            if i < 6 else ID["softmax"], shortName=ID["gemm"], mangledName=ID["gemm"], launchType=1, registersPerThread=32, gridX=8,
            gridY=1, gridZ=1, blockX=128, blockY=1, blockZ=1, staticSharedMemory=0, dynamicSharedMemory=1024,
            localMemoryPerThread=0, clusterX=0, clusterY=0, clusterZ=0, tensorSizeMinusOneElements="[]", **gpu)
    put("CUPTI_ACTIVITY_KIND_RUNTIME", start=6000, end=6100, eventClass=0, globalTid=tid_of(pid, pid), correlationId=30,
        nameId=ID["cudaMemcpyAsync_v3020"], returnValue=0)
    put("CUPTI_ACTIVITY_KIND_MEMCPY", start=6200, end=6700, correlationId=30, bytes=4096, copyKind=1, srcKind=1, dstKind=2, copyCount=1,
        **gpu)
    put("CUPTI_ACTIVITY_KIND_MEMCPY", start=6800, end=6900, correlationId=31, bytes=1 << 40, copyKind=8, srcKind=2, dstKind=2, **gpu)
    # a wait inside a copy shares its number
    put("CUPTI_ACTIVITY_KIND_RUNTIME", start=7000, end=7900, eventClass=0, globalTid=tid_of(pid, pid), correlationId=32,
        nameId=ID["cudaMemcpy_v3020"], returnValue=0)
    put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=7050, end=7900, correlationId=32, syncType=3, eventId=4294967295, **gpu)
    put("CUPTI_ACTIVITY_KIND_MEMCPY", start=7200, end=7700, correlationId=32, bytes=64, copyKind=2, srcKind=2, dstKind=0, **gpu)
    put("CUPTI_ACTIVITY_KIND_MEMSET", start=8000, end=8050, correlationId=33, value=7, bytes=512, memKind=2, **gpu)
    # before 3.25 the type of a wait for a stream is 2
    put("CUPTI_ACTIVITY_KIND_RUNTIME", start=8100, end=8300, eventClass=0, globalTid=tid_of(pid, pid), correlationId=34,
        nameId=ID["cudaStreamSynchronize_v3020"], returnValue=0)
    put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=8100, end=8300, correlationId=34, syncType=3 if minor >= 25 else 2,
        eventId=4294967295, **gpu)
    put("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", start=8310, end=8320, correlationId=35, syncType=2, eventId=5, eventSyncId=9, **gpu)
    # a graph of two kernels
    put("CUPTI_ACTIVITY_KIND_RUNTIME", start=8400, end=8450, eventClass=0, globalTid=tid_of(pid, pid), correlationId=36,
        nameId=ID["cudaGraphLaunch_v10000"], returnValue=0)
    for node in (1, 2):
        put("CUPTI_ACTIVITY_KIND_KERNEL", start=8500 + 100 * node, end=8550 + 100 * node, correlationId=36, demangledName=ID["softmax"],
            shortName=ID["softmax"], registersPerThread=16, gridX=1, gridY=1, gridZ=1, blockX=32, blockY=1, blockZ=1,
            staticSharedMemory=0, dynamicSharedMemory=0, localMemoryPerThread=0, graphNodeId=(1 << 32) + node, **gpu)
    text = {"text": "step"} if minor >= 25 else {"textId": ID["step"]}
    put("NVTX_EVENTS", start=-1957198520, eventType=75, text="library", globalTid=tid_of(pid, pid), domainId=2, eventId=pid)
    put("NVTX_EVENTS", start=-5100, end=9000, eventType=59, globalTid=tid_of(pid, pid), domainId=0, eventId=pid + 1, **text)
    put("NVTX_EVENTS", start=-5000, end=-4000, eventType=59, globalTid=tid_of(pid, pid), domainId=0, eventId=pid + 2, **text)
    put("NVTX_EVENTS", start=-5000, end=100, eventType=59, globalTid=tid_of(pid, pid), domainId=2, eventId=pid + 3, **text)
    put("NVTX_EVENTS", start=0, end=500, eventType=60, rangeId=1, globalTid=tid_of(pid, pid), endGlobalTid=tid_of(pid, pid + 1),
        domainId=0, eventId=pid + 4, **text)
    put("NVTX_EVENTS", start=10, eventType=34, globalTid=tid_of(pid, pid), domainId=0, eventId=pid + 5, **text)
    put("NVTX_EVENTS", start=8990, eventType=59, globalTid=tid_of(pid, pid + 1), domainId=0, eventId=pid + 6, **text)
    for address, start, operation in ((9007199254740993, -10, 0), (9007199254740993, 50, 1), (9007199254740993, 60, 0)):
        put("CUDA_GPU_MEMORY_USAGE_EVENTS", start=start, globalPid=pid_of(pid), deviceId=0, contextId=1, address=address, pc=0,
            bytes=1000, memKind=2, memoryOperationType=operation)
