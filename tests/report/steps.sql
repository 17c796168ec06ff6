-- To be read behind normal.sql: 16,000 iterations of a kernel instead, more than a page has bars; the 12,345th is slow.
DELETE FROM kernel; DELETE FROM transfer; DELETE FROM memset; DELETE FROM sync; DELETE FROM api_call; DELETE FROM range;
DELETE FROM allocation; DELETE FROM marker;
UPDATE capture SET duration = 1600000000;
INSERT INTO string(id, value) VALUES(9100, '<b onload=1>step</b>'), (9102, 'cudaLaunchKernel');
WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 15999)
INSERT INTO range(start, duration, thread, name, depth) SELECT 100000 * i, 60000 + i % 7 * 100 + 30000 * (i = 12344), 1, 9100, 0 FROM n;
INSERT INTO kernel(start, duration, stream, config, api_name, api_lead, api_duration, thread)
SELECT start + 5000, duration - 10000, 1, 1, 9102, 4000, 2000, 1 FROM range;
