-- Data-parallel training on four ranks of two hosts: 12 steps of 10 ms, a gradient bucket of 32 MiB
-- under the backward pass and one after it. Rank 2 computes 1.5 ms longer in every step, rank 3 copies
-- to the host where the others do not.
INSERT INTO capture(state, perfkit_version, command, host, duration) VALUES
  ('merged', '0.1.0', 'torchrun --nproc-per-node 2 train.py', 'node1', 150000000);
WITH r(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM r WHERE n < 3)
INSERT INTO process(id, pid, command, start, end, end_reason, exit_status, host, rank, world_size, spool)
  SELECT n + 1, 4000 + n, 'python train.py', 0, 150000000, 'exit', 0, 'node' || (1 + n / 2), n, 4, 's' || n FROM r;
INSERT INTO thread(id, process, tid) SELECT id, id, pid FROM process;
INSERT INTO device(id, process, api, ordinal, name, uuid, kind)
  SELECT id, id, 'cuda', rank % 2, 'GPU', 'GPU-' || rank, 'gpu' FROM process;
INSERT INTO context(id, process, device, api) SELECT id, id, id, 'cuda' FROM process;
INSERT INTO stream(id, process, device, context, api, native)
  SELECT 2 * rank + 1, id, id, id, 'cuda', 7 FROM process UNION ALL SELECT 2 * rank + 2, id, id, id, 'cuda', 13 FROM process;
INSERT INTO string(id, value) VALUES
  (1, 'forward'), (2, 'backward'), (3, 'ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)'),
  (4, 'step'), (5, 'NCCL'), (6, 'ncclAllReduce'), (7, 'NCCL communicator ID'), (8, 'Message size [bytes]'),
  (9, 'Reduction operation'), (10, 'cudaLaunchKernel'), (11, 'cudaMemcpyAsync'), (12, 'ncclCommInitRank'),
  (13, 'No. of ranks'), (14, 'Rank');
INSERT INTO launch_config(id, name, grid_x, block_x) VALUES(1, 1, 128, 256), (2, 2, 128, 256), (3, 3, 24, 512);
-- One row a step and rank: when it begins, and how much longer its kernels take.
CREATE TEMP TABLE work AS
  WITH s(n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM s WHERE n < 11)
  SELECT s.n AS step, p.id AS p, p.rank AS r, 10000000 * (s.n + 1) AS at, CASE p.rank WHEN 2 THEN 1500000 ELSE 20000 * p.rank END AS more
  FROM s, process p ORDER BY s.n, p.id;
INSERT INTO range(start, duration, thread, name, depth) SELECT at, 10000000, p, 4, 0 FROM work;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
  SELECT at + 500000, 2000000, 2 * r + 1, 1, 10, 400000, 5000, p FROM work UNION ALL
  SELECT at + 2500000, 3000000 + more, 2 * r + 1, 2, 10, 2390000, 5000, p FROM work UNION ALL
  SELECT at + 4000000, 1000000, 2 * r + 2, 3, 10, 3880000, 6000, p FROM work UNION ALL
  SELECT at + 5500000 + more, 1500000 + 800000 - more, 2 * r + 2, 3, 10, 5370000 + more, 6000, p FROM work ORDER BY 1;
INSERT INTO range(start, duration, thread, name, domain, depth)
  SELECT at + 118000, 10000, p, 6, 5, 0 FROM work UNION ALL SELECT at + 128000, 10000, p, 6, 5, 0 FROM work;
INSERT INTO range_field(range, name, value) SELECT id, 7, 81985529216486895 FROM range WHERE name = 6;
INSERT INTO range_field(range, name, value) SELECT id, 8, 33554432 FROM range WHERE name = 6;
INSERT INTO range_field(range, name, value) SELECT id, 9, 'Sum' FROM range WHERE name = 6;
INSERT INTO transfer(start, duration, stream, bytes, kind, api_name, api_lead, api_duration, thread)
  SELECT at + 8500000, 300000, 7, 65536, 2, 11, 50000, 400000, p FROM work WHERE r = 3;
DROP TABLE work;
-- node1's perfkits both saw its port, node2's likewise; only one of them tells its rate.
INSERT INTO network_port(process, name, kind, start, duration, link_rate, received, sent) VALUES
  (1, 'mlx5_0/1', 'infiniband', 0, 150000000, 5e10, 805306368, 805310000),
  (2, 'mlx5_0/1', 'infiniband', 0, 140000000, 5e10, 805306000, 805309000),
  (3, 'mlx5_0/1', 'infiniband', 0, 150000000, NULL, 805310000, 805306368);
