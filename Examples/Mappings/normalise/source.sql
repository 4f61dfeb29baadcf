INSERT INTO ZMEMBER (Z_PK, Z_ENT, Z_OPT, ZNUMBER) VALUES (1, 1, 1, 11), (2, 1, 1, 12), (3, 1, 1, 12);
INSERT INTO ZRECIPE (Z_PK, Z_ENT, Z_OPT, ZOWNER, ZCOOKNAME, ZPHOTOPATH, ZTITLE) VALUES
  (1, 2, 1, 3, 'Ada', '/1.jpg', 'Soup'), (2, 2, 3, 3, 'Bo', '/2.jpg', 'Bread'), (3, 2, 1, 1, 'Ada', NULL, 'Pie'),
  (4, 2, 1, NULL, NULL, '/4.jpg', 'Stew');
UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Member';
UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_NAME = 'Recipe';
