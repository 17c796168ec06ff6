-- Hardware counters: two kernels in turn, one that ran too seldom under the samples, one side by side with
-- a copy; a statement of the sampler.
INSERT INTO capture(state, perfkit_version, command, directory, host, boot_id, kernel, cpu, cpu_count,
  start_realtime_ns, start_mono_ns, duration, exit_status, trace)
VALUES('complete', '0.1.0', './train', '/home/user', 'node1', 'b', 'Linux 6.1.0', 'AMD EPYC 7763', 64,
  1785549185123456789, 5000000000, 10000000, 0, 'cuda');
INSERT INTO process(pid, parent_pid, command, birth, start, end, end_reason, exit_status, spool)
VALUES(500, 499, './train', 'start', 0, 10000000, 'exit', 0, 'a.spool');
INSERT INTO thread(process, tid) VALUES(1, 500);
INSERT INTO device(process, api, ordinal, name, uuid, kind, units, memory_bytes)
VALUES(1, 'cuda', 0, 'NVIDIA H200', 'GPU-0', 'gpu', 132, 150039945216);
INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1);
INSERT INTO stream(process, device, context, api, native) VALUES(1, 1, 1, 'cuda', 7), (1, 1, 1, 'cuda', 8);
INSERT INTO string(value) VALUES('copy_rows'), ('gemm'), ('rare'), ('overlapped');
INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) VALUES
  (1, 132, 1, 1, 256, 1, 1), (2, 64, 1, 1, 128, 1, 1), (3, 1, 1, 1, 32, 1, 1), (4, 64, 1, 1, 128, 1, 1);
-- 2 ms of bursts from 1 ms on: copy_rows and gemm take turns of 110 and 190 us
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 9)
INSERT INTO kernel(start, duration, stream, config)
SELECT 1000000 + i * 300000, 110000, 1, 1 FROM n UNION ALL SELECT 1110000 + i * 300000, 190000, 1, 2 FROM n;
INSERT INTO kernel(start, duration, stream, config) VALUES(4100000, 60000, 1, 3), (5000000, 900000, 1, 4);
INSERT INTO transfer(start, duration, stream, bytes, kind) VALUES(4950000, 1000000, 2, 8000000, 1);
INSERT INTO counter_device(uuid, ordinal, name, chip, metric_set, interval)
VALUES('GPU-0', 0, 'NVIDIA H200', 'GH100', 'roofline', 20000);
INSERT INTO counter(counter_device, slot, name, unit, metric, kind, clock, peak, traced) VALUES
  (1, 0, 'sm_cycles', 'cycle', 'sm__cycles_elapsed.max', 2, NULL, NULL, NULL),
  (1, 1, 'dram_read_bytes', 'byte', 'dram__bytes_read.sum', 1, 0, 3072, NULL),
  (1, 2, 'dram_write_bytes', 'byte', 'dram__bytes_write.sum', 1, 0, 3072, NULL),
  (1, 3, 'tensor', 'cycle', 'TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime.sum', 1, 0, 528, NULL),
  (1, 4, 'alu', 'instruction', 'TPC.TriageCompute.sm__inst_executed_pipe_alu_realtime.sum', 1, 0, 264, 4);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 259),
t(at) AS (SELECT 1000000 + i * 20000 FROM n),
-- nanoseconds of copy_rows and gemm in each sample: they begin 0 and 110 us into each 300 us
p(at, phase) AS (SELECT at, (at - 1000000) % 300000 FROM t),
o(at, c, g) AS (SELECT at, max(0, min(phase + 20000, 110000) - phase) + max(0, phase + 20000 - 300000),
  max(0, min(phase + 20000, 300000) - max(phase, 110000)) FROM p)
INSERT INTO counter_sample(counter_device, start, duration, c0, c1, c2, c3, c4)
SELECT 1, at, 20000, 35000, CASE WHEN at < 4000000 THEN c * 2000 + g * 300 ELSE 1e7 END,
  CASE WHEN at < 4000000 THEN c * 1900 + g * 100 ELSE 0 END, CASE WHEN at < 4000000 THEN g * 700 ELSE 0 END,
  CASE WHEN at < 4000000 THEN c * 50 + c / 110000.0 * 4224 + g / 190000.0 * 1024 ELSE 0 END FROM o;
INSERT INTO counter_burst(counter_device, start, duration, samples, others, decode) VALUES
  (1, 1000000, 5200000, 260, 0, 20000000);
INSERT INTO capture_health(process, subject, item, value, note) VALUES
  (NULL, 'collector', 'counters note', NULL, '260 samples in 1 burst, 52.0% of the time; the sampler used 9.8% of a core'),
  (NULL, 'collector', 'counters degraded', NULL, 'GPU 1: this user may not read the GPU''s counters: run as root');
