PRAGMA writable_schema = ON;
UPDATE sqlite_master SET sql = replace(sql, 'ZNAME VARCHAR', 'ZNAME VARCHAR COLLATE nonsense') WHERE name = 'ZTAG';
