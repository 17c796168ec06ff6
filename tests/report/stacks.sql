-- Behind normal.sql: call stacks of its kernels; those of its copies lead nowhere.
INSERT INTO string(id, value) VALUES(9001, 'launch<T>(int)'), (9002, '/src/a b.c'), (9003, 'main');
INSERT INTO frame(id, process, kind, address) VALUES(1, 1, 1, 1), (2, 1, 1, 2);
INSERT INTO symbol(frame, level, function, file, line) VALUES(1, 0, 9003, 9002, 7), (2, 0, 9001, 9002, 42);
INSERT INTO stack(id, parent, frame, depth) VALUES(1, NULL, 1, 1), (2, 1, 2, 2);
UPDATE kernel SET stack = 2; UPDATE transfer SET stack = 99;
