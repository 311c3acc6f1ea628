-- 0013 recent rows in place. Why: the folded samples of a series take some hundred bytes to some kilobytes. What
-- exceeds 2 kB went into the TOAST table, in pieces with an index entry each, to be fetched from there and
-- deleted when it is merged soon after. A row that fits a page stays in its table now.
-- Lock: SHARE UPDATE EXCLUSIVE on the four segments, brief: no reader waits, no commit, no fold. Time: under
-- 100 ms, whatever they hold. Rows that are there stay as they are.

ALTER TABLE stepwell.recent_0 SET (toast_tuple_target = 8160);
ALTER TABLE stepwell.recent_1 SET (toast_tuple_target = 8160);
ALTER TABLE stepwell.recent_2 SET (toast_tuple_target = 8160);
ALTER TABLE stepwell.recent_3 SET (toast_tuple_target = 8160);
