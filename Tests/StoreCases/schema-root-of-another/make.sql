PRAGMA writable_schema = ON;
UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master WHERE name = 'ZTAG') WHERE name = 'ZNOTE';
