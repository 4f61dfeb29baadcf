INSERT INTO ZPOST (Z_PK, Z_ENT, Z_OPT, ZTITLE) VALUES (1, 3, 1, 'Bees'), (2, 3, 1, 'Ants');
INSERT INTO ZTHREAD (Z_PK, Z_ENT, Z_OPT, ZPOST, ZNAME) VALUES (1, 5, 1, 1, 'honey'), (2, 5, 1, 1, 'wax'),
  (3, 5, 1, NULL, 'lost');
INSERT INTO ZREPLY (Z_PK, Z_ENT, Z_OPT, ZTHREAD, ZTEXT) VALUES
  (1, 4, 1, 1, 'sweet'), (2, 4, 1, 2, 'soft'), (3, 4, 1, 3, 'whose?'), (4, 4, 1, NULL, 'alone');
INSERT INTO ZPICTURE (Z_PK, Z_ENT, Z_OPT, ZREPLY, ZHEIGHT, ZTITLE) VALUES (1, 2, 1, 1, 480, 'hive'),
  (2, 2, 1, 3, 90, 'blur');
INSERT INTO ZCLIP (Z_PK, Z_ENT, Z_OPT, ZREPLY, ZSECONDS, ZTITLE) VALUES (1, 1, 1, 2, 30, 'candle'),
  (2, 1, 1, NULL, 5, 'buzz');
UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME IN ('Post', 'Picture', 'Clip');
UPDATE Z_PRIMARYKEY SET Z_MAX = 3 WHERE Z_NAME = 'Thread';
UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_NAME = 'Reply';
