PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR DEFAULT (lower(hex(randomblob(9))))')
  WHERE name = 'ZTAG';
