-- What only some programs have: a graph recorded whole and one by its nodes, overhead, unified memory, code
-- compiled at run time, memory pools, a green context, named streams; recorded for part of the time and with
-- a kernel filter; killed at its end.
INSERT INTO capture(state, perfkit_version, command, directory, host, boot_id, kernel, cpu, cpu_count,
  start_realtime_ns, start_mono_ns, duration, exit_signal, trace, kernel_filter)
VALUES('complete', '0.1.0', './infer', '/home/user', 'node1', 'b', 'Linux 6.1.0', 'AMD EPYC 7763', 64,
  1785549185123456789, 5000000000, 10000000, 9, 'cuda', 'gemm|soft.*');
INSERT INTO process(pid, parent_pid, command, birth, start, end, end_reason, exit_signal, spool)
VALUES(500, 499, './infer', 'start', 0, 10000000, 'signal', 9, 'a.spool');
INSERT INTO thread(process, tid, name) VALUES(1, 500, NULL), (1, 501, 'loader <0>');
INSERT INTO device(process, api, ordinal, name, uuid, kind, units, memory_bytes, label)
VALUES(1, 'cuda', 0, 'NVIDIA H200', 'u0', 'gpu', 132, 150039945216, 'first');
INSERT INTO context(process, device, api, native, name, green, parent, units) VALUES
  (1, 1, 'cuda', 1, NULL, NULL, NULL, NULL), (1, 1, 'cuda', 2, 'decode', 1, 1, 16);
INSERT INTO stream(process, device, context, api, native, name, priority, is_default, non_blocking) VALUES
  (1, 1, 1, 'cuda', 7, NULL, 0, 1, 0), (1, 1, 2, 'cuda', 13, 'copy, "in"', -5, 0, 1),
  (1, 1, 2, 'cuda', 12, NULL, -5, 0, 1); -- CUPTI's own, which did nothing
INSERT INTO sync(start, duration, stream, kind) VALUES(8900000, 4000, 1, 1); -- cudaEventQuery
INSERT INTO string(id, value) VALUES(1, 'gemm'), (2, 'softmax'), (3, 'cudaLaunchKernel'), (4, 'cudaGraphLaunch'),
  (5, 'cudaGraphAddKernelNode'), (6, 'cudaGraphInstantiate'), (7, '/home/user/.nv/ComputeCache/a');
INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) VALUES
  (1, 16, 1, 1, 256, 1, 1), (2, 8, 1, 1, 128, 1, 1);
-- made by hand (thread 1 at 100 us), cloned when instantiated, launched twice
INSERT INTO graph_node(start, thread, node, graph, original, class) VALUES
  (100000, 1, 1, 1, NULL, 1), (200000, 1, 2, 2, 1, 1);
INSERT INTO api_call(start, duration, thread, name, source, correlation) VALUES
  (99000, 5000, 1, 5, 1, NULL), (199000, 9000, 1, 6, 1, NULL), (300000, 8000, 1, 4, 1, 40),
  (900000, 8000, 1, 4, 1, 41), (2000000, 7000, 1, 4, 1, 42), (2500000, 7000, 2, 4, 1, 43);
INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) VALUES
  (320000, 150000, 1, 1, 40, 2), (920000, 160000, 1, 1, 41, 2);
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) VALUES
  (1300000, 40000, 1, 2, 3, 9000, 4000, 1);
INSERT INTO graph_launch(start, duration, stream, graph, correlation) VALUES
  (2020000, 700000, 2, 9, 42), (2800000, 690000, 2, 9, 43);
INSERT INTO overhead(start, duration, process, thread, kind) VALUES
  (3000000, 900000, 1, 1, 7), (4000000, 300000, 1, 1, 7), (5000000, 20000, 1, NULL, 2), (10000, 80000, 1, 1, 6);
INSERT INTO migration(start, duration, process, kind, bytes, faults, target) VALUES
  (3100000, 30000, 1, 1, 2097152, NULL, 1), (3200000, 35000, 1, 1, 2097152, NULL, 1),
  (3300000, 12000, 1, 4, NULL, 57, 1), (6000000, NULL, 1, 3, NULL, 1, NULL), (6100000, 20000, 1, 2, 65536, NULL, NULL);
INSERT INTO jit(start, duration, process, thread, device, input, operation, cache_bytes, path) VALUES
  (20000, 60000, 1, 1, 1, 1, 3, NULL, NULL), (81000, 3000, 1, 1, 1, 1, 2, 40960, 7), (7000000, 2000, 1, 1, 1, 1, 1, 40960, 7);
INSERT INTO memory_pool(process, start, pool, operation, device, bytes, used_bytes, kept_bytes, threshold_bytes, thread) VALUES
  (1, 50000, 4096, 1, 1, NULL, NULL, NULL, NULL, 1), (1, 4000000, 4096, 3, 1, 67108864, 1048576, 0, 33554432, 1),
  (1, 9000000, 4096, 2, 1, NULL, NULL, NULL, NULL, 1);
INSERT INTO recording(process, start, begins, reason) VALUES(1, 50000, 1, 2), (1, 4050000, 0, 2), (1, 5000000, 1, 2);
INSERT INTO capture_health(process, subject, item, value, note) VALUES
  (1, 'launch', 'called', 12, NULL), (1, 'launch', 'recorded', 1, NULL), (1, 'launch', 'failed', 0, NULL),
  (1, 'launch', 'captured', 0, NULL), (1, 'launch', 'dropped', 0, NULL), (1, 'launch', 'outstanding', 1, NULL),
  (1, 'launch', 'remainder', 0, NULL), (1, 'launch', 'filtered', 10, NULL),
  (1, 'graph', 'launched', 2, NULL), (1, 'graph', 'kernels', 2, NULL),
  (1, 'collector', 'cuda contended', NULL, 'libtool.so uses CUPTI itself and gets no GPU events'),
  (1, 'record', 'outside', 42, 'records left out because nothing was to be recorded at their time'),
  (1, 'end', 'signal', 9, 'killed by a signal'),
  (1, 'risk', 'device_records', 1, 'device records of its last 37 ms may be missing; 1 launch is known to have none');
