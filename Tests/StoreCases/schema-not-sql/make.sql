PRAGMA writable_schema = ON; UPDATE sqlite_master SET sql = 'CREATE TABLE ZNOTE nonsense' WHERE name = 'ZNOTE';
