PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR CHECK (length(randomblob(1000000000)) > 0)')
  WHERE name = 'ZTAG';
