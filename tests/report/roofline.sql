-- A roofline: one kernel for each bound, one without declared work, names that must stay names.
INSERT INTO capture(state, perfkit_version, command, directory, host, boot_id, kernel, cpu, cpu_count,
  start_realtime_ns, start_mono_ns, duration, exit_status, trace)
VALUES('complete', '0.1.0', './solve', '/home/user', 'node1', 'b', 'Linux 6.1.0', 'AMD EPYC 7763', 64,
  1785549185123456789, 5000000000, 10000000, 0, 'cuda');
INSERT INTO process(pid, parent_pid, command, birth, start, end, end_reason, exit_status, spool)
VALUES(500, 499, './solve', 'start', 0, 10000000, 'exit', 0, 'a.spool');
INSERT INTO thread(process, tid) VALUES(1, 500);
INSERT INTO device(process, api, ordinal, name, uuid, driver, kind, units, compute_major, compute_minor,
  clock_khz, memory_bytes, memory_bandwidth, l2_bytes)
VALUES(1, 'cuda', 0, 'NVIDIA H200', 'GPU-0', '580.1', 'gpu', 132, 9, 0, 1980000, 150039945216,
  4916736000000, 52428800);
INSERT INTO ceiling(device, name, value, measured_at, how) VALUES
  (1, 'dram_copy', 4.0e12, 1785500000, 'a copy'), (1, 'dram_read', 4.2e12, 1785500000, 'a read'),
  (1, 'l2_read', 7e12, 1785500000, NULL), (1, 'fp32', 6e13, 1785500000, NULL),
  (1, 'tensor_tf32', 4e14, 1785500000, NULL), (1, 'tensor_tf32_sustained', 3.5e14, 1785500000, NULL),
  (1, 'matmul_fp32', 5.2e13, 1785500000, 'cuBLAS 130101, 8192 x 8192 x 8192, its own choice'),
  (1, 'matmul_tf32', 3.4e14, 1785500000, NULL), (1, 'htod_pinned', 5.5e10, 1785500000, NULL),
  (1, 'launch', 2000, 1785500000, NULL);
INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1);
INSERT INTO stream(process, device, context, api, native) VALUES(1, 1, 1, 'cuda', 7);
INSERT INTO string(value) VALUES('axpy'), ('gemm'), ('tf32_gemm'), ('walk'), ('tiny'), ('lookup'),
  ('undeclared'), ('perfkit'), ('declared'), ('cudaLaunchKernel'), ('solve'),
  ('''; system("touch HACKED"); set label '''), ('`touch HACKED`'), ('a
system "touch HACKED"
END
plot x'), ('@HACKED {/Symbol a}_b^c \n " # ; %s'), ('void f<int, 2>(float const *) é核');
INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) VALUES
  (1, 4096, 1, 1, 256, 1, 1), (2, 1024, 1, 1, 256, 1, 1), (3, 1024, 1, 1, 128, 1, 1), (4, 8, 1, 1, 32, 1, 1),
  (5, 1, 1, 1, 32, 1, 1), (6, 512, 1, 1, 256, 1, 1), (7, 512, 1, 1, 256, 1, 1), (12, 1, 1, 1, 1, 1, 1),
  (13, 1, 1, 1, 1, 1, 1), (14, 1, 1, 1, 1, 1, 1), (15, 1, 1, 1, 1, 1, 1), (16, 1, 1, 1, 1, 1, 1);
-- name, number, duration in us, FLOP, bytes: each launched three times inside a declaration of its own
CREATE TEMP TABLE k(config, us, flop, bytes);
INSERT INTO k VALUES(1, 400, 3.3e8, 1.5e9), (2, 300, 1.5e10, 1e8), (3, 200, 6e10, 2e8), (4, 250, 1e9, 1e8),
  (5, 1, 1e3, 6e7), (6, 100, 1e8, 6e8), (8, 50, 1e9, 6e7), (9, 45, 2e9, 6e7), (10, 40, 3e9, 6e7),
  (11, 35, 4e9, 6e7), (12, 30, 5e9, 6e7);
INSERT INTO range(id, start, duration, thread, name, domain, depth)
SELECT config * 10 + n.i, (config * 10 + n.i) * 10000, 5000, 1, 9, 8, 0 FROM k,
  (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2) n ORDER BY 2;
INSERT INTO work(range, flop, bytes_read, bytes_written)
SELECT range.id, flop, bytes * 2 / 3, bytes / 3 FROM range JOIN k ON k.config = range.id / 10;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
SELECT 2000000 + (config * 3 + n.i) * 500000, us * 1000, 1, config, 10,
  2000000 + (config * 3 + n.i) * 500000 - (config * 10 + n.i) * 10000 - 1000, 3000, 1 FROM k,
  (SELECT 0 AS i UNION ALL SELECT 1 UNION ALL SELECT 2) n ORDER BY 1;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
VALUES(30000000, 90000, 1, 7, 10, 25000000, 3000, 1);
INSERT INTO range(start, duration, thread, name, depth) VALUES(0, 9000000, 1, 11, 0);
UPDATE capture SET duration = 40000000;
