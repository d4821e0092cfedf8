-- The partitions by day of the table $1.
SELECT i.inhrelid::regclass::text FROM pg_inherits AS i WHERE i.inhparent = $1::text::regclass ORDER BY 1
