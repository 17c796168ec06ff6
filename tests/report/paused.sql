-- To be read behind normal.sql: a pause of 10 ms, and nothing recorded of the last 5 ms.
INSERT INTO recording(process, start, begins, reason) VALUES(1, 0, 1, 0), (1, 20000000, 0, 6), (1, 30000000, 1, 6),
  (1, 55000000, 0, 1);
