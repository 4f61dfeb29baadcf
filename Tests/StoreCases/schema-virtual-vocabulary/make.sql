PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = 'CREATE VIRTUAL TABLE ZNOTE USING fts5vocab(nothing, row)', rootpage = 0
  WHERE name = 'ZNOTE';
