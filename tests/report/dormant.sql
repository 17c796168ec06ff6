-- A dormant capture whose recording never began.
INSERT INTO string(id, value) VALUES(1, 'x');
INSERT INTO capture(state, command, duration) VALUES('complete', './program', 2000000000);
INSERT INTO process(id, pid, command, start, "end", end_reason, spool) VALUES(1, 70, './program', 1000000, 1999000000, 'exit', '70.spool');
INSERT INTO recording(process, start, begins, reason) VALUES(1, 0, 0, 0);
