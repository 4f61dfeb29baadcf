PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = 'CREATE VIEW ZNOTE AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)'
  || ' SELECT i AS Z_PK, 2 AS Z_ENT FROM n', rootpage = 0 WHERE name = 'ZNOTE';
