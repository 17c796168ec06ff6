-- The processors were sampled: a function with a line, one in a library, one that was preempted, a thread
-- that launches nothing, and an interpreter whose functions are not known.
INSERT INTO capture(state, perfkit_version, command, host, boot_id, cpu_count, start_mono_ns, duration, exit_status)
VALUES('complete', '0.1.0', './train', 'node1', 'b', 64, 5000000000, 100000000, 0);
INSERT INTO process(pid, command, birth, start, end, end_reason, exit_status, spool)
VALUES(500, './train', 'start', 0, 100000000, 'exit', 0, 'a.spool');
INSERT INTO thread(process, tid, name) VALUES(1, 500, 'main'), (1, 501, 'loader');
INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(1, 'cuda', 0, 'NVIDIA H200', 'GPU-0', 'gpu');
INSERT INTO context(process, device, api, native) VALUES(1, 1, 'cuda', 1);
INSERT INTO stream(process, device, context, api, native) VALUES(1, 1, 1, 'cuda', 7);
INSERT INTO string(value) VALUES('gemm'), ('load_batch_from_the_shuffled_shards'), ('/src/data/loader.c'), ('main'),
  ('/src/train.c'), ('std::vector<float, std::allocator<float> >::push_back(float const&)'), ('sort_keys'),
  ('_PyEval_EvalFrameDefault');
INSERT INTO launch_config(name, grid_x, grid_y, grid_z, block_x, block_y, block_z) VALUES(1, 64, 1, 1, 128, 1, 1);
INSERT INTO kernel(start, duration, stream, config, thread) VALUES(10000000, 1000000, 1, 1, 1), (89000000, 1000000, 1, 1, 1);
INSERT INTO module(process, start, path, address, bytes) VALUES(1, 0, '/home/user/train', 4096, 65536),
  (1, 0, '/usr/lib/libtransform.so.4', 131072, 65536),
  (1, 0, '/usr/lib/libpython3.12.so.1.0', 262144, 65536);
INSERT INTO frame(process, kind, address, module, offset) VALUES(1, 1, 5000, 1, 904), (1, 1, 6000, 1, 1904),
  (1, 1, 140000, 2, 8928), (1, 1, 7000, 1, 2904),
  (1, 1, 270000, 3, 7856);
INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 4, 5, 36), (2, 0, 2, 3, 118), (3, 0, 6, NULL, NULL),
  (4, 0, 7, 3, 7), (5, 0, 8, NULL, NULL);
INSERT INTO stack(parent, frame, depth) VALUES(NULL, 1, 1), (1, 2, 2), (NULL, 3, 1), (1, 4, 2), (NULL, 5, 1);
-- kind: 1 on a processor, 2 blocked, 3 waiting for a processor, 4 inside the kernel
INSERT INTO cpu_sample(start, thread, kind, duration, weight, stack) VALUES
  (12000000, 1, 1, NULL, 5000000, 2), (17000000, 1, 4, NULL, 5000000, 2), (22000000, 1, 2, 20000000, 20000000, 2),
  (42000000, 1, 3, 12000000, 12000000, 2), (54000000, 1, 3, 9000000, 9000000, 3), (63000000, 1, 1, NULL, 5000000, 4),
  (20000000, 2, 1, NULL, 9000000, 5);
