-- A training loop of 40 steps on one GPU: copies in, four kernels on two streams, a copy out, a wait;
-- NVTX ranges around it; 3 allocations of which one leaks. Everything is accounted for.
INSERT INTO capture(state, perfkit_version, command, directory, host, boot_id, kernel, cpu, cpu_count,
  start_realtime_ns, start_mono_ns, duration, exit_status, trace)
VALUES('complete', '0.1.0', './train --steps 40', '/home/user/train', 'node1', 'b', 'Linux 6.1.0',
  'AMD EPYC 7763 64-Core Processor', 64, 1785549185123456789, 5000000000, 60000000, 0, 'cuda,nvtx');
INSERT INTO process(pid, parent_pid, command, birth, start, end, end_reason, exit_status, spool)
VALUES(4242, 4241, './train --steps 40', 'start', 0, 60000000, 'exit', 0, 'a.spool');
INSERT INTO thread(process, tid, name) VALUES(1, 4242, 'train'), (1, 4250, NULL);
INSERT INTO device(process, api, ordinal, name, vendor, driver, uuid, kind, integrated, compute_major,
  compute_minor, units, warp, clock_khz, memory_clock_khz, memory_bus_bits, memory_bytes,
  memory_bandwidth, l2_bytes, shared_per_unit_bytes, shared_per_block_bytes, registers_per_unit,
  max_threads_per_unit, max_block)
VALUES(1, 'cuda', 0, 'NVIDIA H200', 'NVIDIA', '570.86', 'u0', 'gpu', 0, 9, 0, 132, 32, 1980000,
  3201000, 6144, 150039945216, 4916736000000, 62914560, 233472, 49152, 65536, 2048, 1024);
INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1);
INSERT INTO stream(process, device, context, api, native, is_default) VALUES(1, 1, 1, 'cuda', 7, 1),
  (1, 1, 1, 'cuda', 13, 0);
INSERT INTO string(id, value) VALUES(1, '_Z9embeddingPKfPKiPfi'), (2, 'embedding(float const*, int const*, float*, int)'),
  (3, 'void gemm_kernel<float, 128, 128, 32, (Layout)0>(GemmParams<float>)'), (4, 'softmax'), (5, 'adam_step'),
  (6, 'cudaLaunchKernel'), (7, 'cudaMemcpyAsync'), (8, 'cudaStreamSynchronize'), (9, 'cudaMemsetAsync'),
  (10, 'step'), (11, 'forward'), (12, 'backward'), (13, 'data'), (14, 'epoch'), (15, 'cudaMalloc'),
  (16, 'checkpoint'), (17, 'loader');
INSERT INTO launch_config(name, demangled, grid_x, grid_y, grid_z, block_x, block_y, block_z, registers,
  shared_static, shared_dynamic, local_bytes) VALUES
  (1, 2, 256, 1, 1, 128, 1, 1, 32, 0, 0, 0), (3, NULL, 16, 16, 1, 256, 1, 1, 168, 49152, 16384, 0),
  (4, NULL, 512, 1, 1, 256, 1, 1, 24, 1024, 0, 0), (5, NULL, 1024, 1, 1, 512, 1, 1, 40, 0, 0, 0);
CREATE TEMP TABLE n(i INTEGER PRIMARY KEY);
WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 39) INSERT INTO n SELECT i FROM c;
-- every step starts at 2 ms + i * 1.4 ms
INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, thread,
  source_kind, target_kind, blocking)
  SELECT 2000000 + i * 1400000 + 30000, 90000 + i % 7 * 1000, 2, 4194304, 1, 7, 12000, 6000, 1, 1, 3, 0 FROM n;
INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, thread,
  source_kind, target_kind, blocking)
  SELECT 2000000 + i * 1400000 + 990000, 20000, 1, 4096, 2, 7, 8000, 40000, 1, 3, 2, 1 FROM n WHERE i % 4 = 0;
INSERT INTO memset(start, duration, stream, bytes, value, api_name, api_lead, api_duration, thread, memory_kind)
  SELECT 2000000 + i * 1400000 + 20000, 5000, 1, 1048576, 0, 9, 9000, 4000, 1, 3 FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, queue_delay)
  SELECT 2000000 + i * 1400000 + 60000, 110000 + i * 317 % 9000, 1, 1, 6, 14000, 5000, 1, 9000 FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, queue_delay)
  SELECT 2000000 + i * 1400000 + 200000, 420000 + i * 7919 % 60000, 1, 2, 6, 140000, 4000, 1, 130000 FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, queue_delay)
  SELECT 2000000 + i * 1400000 + 700000, 35000 + i * 131 % 2000, 1, 3, 6, 500000, 4000, 1, 490000 FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread, queue_delay)
  SELECT 2000000 + i * 1400000 + 750000, 180000 + i * 53 % 900, 1, 4, 6, 510000, 4000, 1, 500000 FROM n;
INSERT INTO sync(start, duration, stream, kind, api_name, api_lead, api_duration, thread)
  SELECT 2000000 + i * 1400000 + 1100000, 60000, 1, 3, 8, 0, 60000, 1 FROM n;
INSERT INTO api_call(start, duration, thread, name, source) VALUES(100000, 900000, 1, 15, 1), (1010000, 30000, 1, 15, 1),
  (1050000, 20000, 1, 15, 1);
INSERT INTO range(start, duration, thread, name, depth) SELECT 2000000 + i * 1400000, 1250000, 1, 10, 1 FROM n;
INSERT INTO range(start, duration, thread, name, depth) SELECT 2000000 + i * 1400000 + 45000, 25000, 1, 11, 2 FROM n;
INSERT INTO range(start, duration, thread, name, depth) SELECT 2000000 + i * 1400000 + 180000, 100000, 1, 12, 2 FROM n;
INSERT INTO range(start, duration, thread, name, depth, domain) SELECT 2000000 + i * 1400000 - 700000, 600000, 2, 13, 0, 17 FROM n;
INSERT INTO range(start, duration, thread, name, depth) VALUES(1900000, 57000000, 1, 14, 0);
INSERT INTO marker(start, thread, name) VALUES(30000000, 1, 16);
INSERT INTO allocation(process, start, end, bytes, kind, native, address, source, device, context, thread) VALUES
  (1, 110000, 59000000, 4194304, 3, 1, 140000000000, 1, 1, 1, 1), (1, 1012000, 59100000, 268435456, 3, 2, 150000000000, 1, 1, 1, 1),
  (1, 1052000, NULL, 1048576, 3, 3, 160000000000, 1, 1, 1, 1);
INSERT INTO rollup(second, stream, config, count, sum, min, max) SELECT 0, 1, config, count(*), sum(duration), min(duration), max(duration) FROM kernel GROUP BY config;
INSERT INTO clock_sync(process, device, clock, source_ns, mono_ns, error_ns) VALUES(1, 1, 'device', 0, 5000000000, 240);
INSERT INTO capture_health(process, subject, item, value) VALUES
  (1, 'launch', 'called', 160), (1, 'launch', 'recorded', 160), (1, 'transfer', 'called', 50), (1, 'transfer', 'recorded', 50),
  (1, 'memset', 'called', 40), (1, 'memset', 'recorded', 40), (1, 'allocation', 'called', 3), (1, 'allocation', 'recorded', 3),
  (1, 'range', 'called', 161), (1, 'range', 'recorded', 161);
INSERT INTO capture_health(process, subject, item, value, note) VALUES
  (1, 'collector', 'cuda running', NULL, 'CUPTI 12.8'), (1, 'end', 'exit', 0, 'return from main or exit()');
