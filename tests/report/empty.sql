-- Nothing was recorded, and little is known.
INSERT INTO capture(state) VALUES('complete');
