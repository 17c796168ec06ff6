-- To be read behind normal.sql: 70 ranges of a thread at once, none inside another.
WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 69)
INSERT INTO range(start, duration, thread, name, depth) SELECT 1900000 + i, 1000000, 1, 10, 0 FROM c;
