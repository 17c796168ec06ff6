-- A program that is still running: no length yet, a range and a kernel that have not ended.
INSERT INTO capture(state, perfkit_version, command, host, start_realtime_ns, start_mono_ns, spool)
VALUES('recording', '0.1.0', './server', 'node1', 1785549185123456789, 1, '/tmp/spool');
INSERT INTO process(pid, command, start, end_reason, spool) VALUES(50, './server', 10, 'running', 'a');
INSERT INTO thread(process, tid) VALUES(1, 50);
INSERT INTO device(process, api, ordinal, name, kind) VALUES(1, 'cuda', 0, 'GPU', 'gpu');
INSERT INTO stream(process, device, api, native) VALUES(1, 1, 'cuda', 7);
INSERT INTO string(id, value) VALUES(1, 'work'), (2, 'cudaLaunchKernel'), (3, 'serve');
INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 1);
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) VALUES
  (1000, 500, 1, 1, 2, 300, 100, 1), (2000, 700, 1, 1, 2, 300, 100, 1), (3000, NULL, 1, 1, 2, 300, 100, 1);
INSERT INTO range(start, duration, thread, name, depth) VALUES(500, NULL, 1, 3, 0);
INSERT INTO allocation(process, start, bytes, kind, device, thread) VALUES(1, 600, 1000, 3, 1, 1);
