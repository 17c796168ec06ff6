-- More events than a page holds: 250,000 kernels with their calls, of 5 names, on one stream, under one
-- range.
INSERT INTO capture(state, perfkit_version, command, duration, exit_status) VALUES('complete', '0.1.0', './many', 2600000000, 0);
INSERT INTO process(pid, command, start, end, end_reason, exit_status, spool) VALUES(9, './many', 0, 2600000000, 'exit', 0, 's');
INSERT INTO thread(process, tid) VALUES(1, 9);
INSERT INTO device(process, api, ordinal, name, kind) VALUES(1, 'cuda', 0, 'GPU', 'gpu');
INSERT INTO stream(process, device, api, native) VALUES(1, 1, 'cuda', 7);
INSERT INTO string(id, value) VALUES(1, 'a'), (2, 'b'), (3, 'c'), (4, 'd'), (5, 'e'), (6, 'cudaLaunchKernel'), (7, 'all');
INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1), (5, 1, 1);
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 249999)
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
  SELECT 10000 + i * 10000 + i * 7919 % 3000, 2000 + i * 131 % 4000, 1, 1 + i % 5, 6, 5000, 1800, 1 FROM n;
INSERT INTO range(start, duration, thread, name, depth) VALUES(0, 2590000000, 1, 7, 0);
