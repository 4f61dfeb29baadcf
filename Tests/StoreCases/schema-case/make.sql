PRAGMA writable_schema = ON;
UPDATE sqlite_master SET name = 'ztag', tbl_name = 'ztag', sql = replace(sql, 'TABLE ZTAG', 'TABLE ztag')
  WHERE tbl_name = 'ZTAG';
