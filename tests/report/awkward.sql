-- What does not fit a simple picture: two processes whose device ordinals collide with each other and
-- with a pid, kernels that overlap in part on one queue, ranges that cross, a graph launch, kernels
-- without start or end, a signal, losses.
INSERT INTO capture(state, perfkit_version, command, host, kernel, cpu, cpu_count, start_realtime_ns, start_mono_ns, duration, exit_signal, trace)
VALUES('recovered', '0.1.0', 'torchrun --nproc 2 x.py', 'node2', 'Linux 6.1.0', 'cpu', 8, 1785549185000000000, 1, 2000000, 11, 'cuda');
INSERT INTO process(pid, command, birth, start, end, end_reason, exit_status, exit_signal, rank, spool) VALUES
  (1, 'torchrun', 'start', 0, 2000000, 'signal', NULL, 11, NULL, NULL), (10, 'python x.py', 'fork', 100, NULL, 'unseen', NULL, NULL, 0, 'a'),
  (11, 'python x.py', 'fork', 200, 1900000, 'exit', 3, NULL, 1, 'b');
INSERT INTO thread(process, tid) VALUES(2, 10), (3, 11);
INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(2, 'cuda', 0, 'GPU A', 'ua', 'gpu'), (3, 'cuda', 0, 'GPU B', 'ub', 'gpu'),
  (3, 'cuda', 1, 'GPU A', 'ua', 'gpu');
INSERT INTO stream(process, device, api, native, out_of_order) VALUES(2, 1, 'cuda', 7, 0), (3, 2, 'cuda', 7, 1), (3, 3, 'cuda', 7, 0);
INSERT INTO string(id, value) VALUES(1, 'k1'), (2, 'k2'), (3, 'cuLaunchKernel'), (4, 'cudaGraphLaunch'), (5, 'outer'), (6, 'inner'), (7, 'crossing'), (8, 'slow');
INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 32), (2, 2, 64);
-- overlapping in part, one inside another, equal starts
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) VALUES
  (100000, 50000, 2, 1, 3, 9000, 4000, 2), (120000, 60000, 2, 2, 3, 20000, 4000, 2), (130000, 10000, 2, 1, 3, 25000, 4000, 2),
  (300000, 10000, 2, 1, 3, 90000, 4000, 2), (300000, 30000, 2, 2, 3, 80000, 4000, 2), (310000, 5000, 2, 1, 3, 70000, 4000, 2),
  (400000, 7000, 1, 1, 3, 10000, 4000, 1), (500000, 7000, 3, 1, 3, 10000, 4000, 2);
-- the end of one was never seen, the start of another neither
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) VALUES (700000, NULL, 1, 2, 3, 10000, 4000, 1), (NULL, NULL, 1, 2, 3, 800000, 4000, 1);
-- a graph: one call, three kernels
INSERT INTO api_call(start, duration, thread, name, source, correlation) VALUES(900000, 20000, 1, 4, 1, 77);
INSERT INTO kernel(start, duration, stream, config, correlation, graph_node) VALUES(930000, 5000, 1, 1, 77, 1), (936000, 5000, 1, 2, 77, 2), (942000, 5000, 1, 1, 77, 3);
INSERT INTO api_call(start, duration, thread, name, result, source) VALUES(1000000, 5000, 1, 3, 700, 2);
-- push/pop of two domains that cross; a start/end range; one still open; an inner one with the outer's start
INSERT INTO range(start, duration, thread, name, depth, domain) VALUES(380000, 100000, 1, 5, 0, NULL), (380000, 50000, 1, 6, 1, NULL), (420000, 100000, 1, 7, 0, 8);
INSERT INTO range(start, duration, thread, name, depth) VALUES(385000, 200000, 1, 8, NULL), (1500000, NULL, 1, 5, 0);
-- a call that crosses the end of a range
INSERT INTO range(start, duration, thread, name, depth) VALUES(90000, 3000, 2, 6, 0);
INSERT INTO allocation(process, start, end, bytes, kind, device, thread) VALUES(2, 50000, 1200000, 1000, 3, 1, 1), (3, 60000, NULL, 5000, 3, 2, 2), (3, 70000, 80000, NULL, 5, NULL, 2);
INSERT INTO capture_health(process, subject, item, value) VALUES(2, 'launch', 'called', 12), (2, 'launch', 'recorded', 8), (2, 'launch', 'dropped', 2), (3, 'launch', 'called', 7), (3, 'launch', 'recorded', 7);
INSERT INTO capture_health(process, subject, item, value, note) VALUES(2, 'end', 'unseen', NULL, 'killed');
