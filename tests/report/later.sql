-- To be read behind normal.sql: all of it 3 ms later, without the last softmax, and its step of another name.
UPDATE kernel SET start = start + 3000000; UPDATE transfer SET start = start + 3000000; UPDATE memset SET start = start + 3000000;
UPDATE sync SET start = start + 3000000; UPDATE api_call SET start = start + 3000000; UPDATE range SET start = start + 3000000;
DELETE FROM kernel WHERE start = (SELECT max(start) FROM kernel WHERE config = 3) AND config = 3;
UPDATE string SET value = 'old/step' WHERE value = 'step';
UPDATE capture SET duration = 63000000; UPDATE process SET end = 63000000;
