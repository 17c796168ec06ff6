-- Two ranks, each with a GPU of its own that it calls 0.
INSERT INTO capture(state, perfkit_version, command, duration, exit_status) VALUES('complete', '0.1.0', 'mpirun ./rank', 1000000, 0);
INSERT INTO process(pid, command, start, end, end_reason, exit_status, spool) VALUES
  (10, './rank 0', 0, 1000000, 'exit', 0, 'a'), (11, './rank 1', 0, 1000000, 'exit', 0, 'b');
INSERT INTO thread(process, tid) VALUES(1, 10), (2, 11);
INSERT INTO device(process, api, ordinal, name, uuid, kind) VALUES(1, 'cuda', 0, 'GPU', 'u0', 'gpu'), (2, 'cuda', 0, 'GPU', 'u1', 'gpu');
INSERT INTO stream(process, device, api, native) VALUES(1, 1, 'cuda', 7), (2, 2, 'cuda', 7);
INSERT INTO string(id, value) VALUES(1, 'work'), (2, 'cudaLaunchKernel');
INSERT INTO launch_config(name, grid_x, block_x) VALUES(1, 1, 1);
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread) VALUES
  (100000, 200000, 1, 1, 2, 5000, 2000, 1), (300000, 300000, 2, 1, 2, 5000, 2000, 2);
