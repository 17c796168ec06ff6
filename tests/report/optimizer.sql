-- To be read behind normal.sql: its backward is an optimizer's step, as `perfkit run --pytorch` names it.
UPDATE string SET value = 'Optimizer.step#SGD.step' WHERE value = 'backward';
