CREATE TABLE pragma_table_info (name, type, pk);
