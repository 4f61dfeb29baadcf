INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZCHANGED, ZCITY, ZEMAIL, ZNAME) VALUES
  (1, 2, 1, 100.0, 'Bern', 'ada@example.org', 'Ada'), (2, 2, 1, 300.0, NULL, 'ADA@example.org ', 'Ada L.'),
  (3, 2, 1, NULL, 'Rome', 'ada@example.org', NULL), (4, 2, 1, 200.0, NULL, NULL, 'Bo'),
  (5, 2, 1, 200.0, NULL, '', 'Bo');
INSERT INTO ZCALL (Z_PK, Z_ENT, Z_OPT, ZMINUTES, ZPERSON) VALUES (1, 1, 1, 5, 1), (2, 1, 1, 7, 2), (3, 1, 1, 9, 3),
  (4, 1, 1, 1, 5), (5, 1, 1, 2, NULL);
UPDATE Z_PRIMARYKEY SET Z_MAX = 5;
