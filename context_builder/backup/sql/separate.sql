-- Gives tenants with many embeddings the partition and index of their own that they had.
SELECT context_memory_separate(v.tenant_id, v.dimensions)
FROM (SELECT tenant_id, max(cardinality(embedding)) AS dimensions FROM context_memory_vectors GROUP BY 1 HAVING count(*) > 1000) AS v
