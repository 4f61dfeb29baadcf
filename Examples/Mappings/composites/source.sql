INSERT INTO ZROOM (Z_PK, Z_ENT, Z_OPT, ZPAINTER) VALUES (1, 2, 1, 'masters'), (2, 2, 1, NULL);
INSERT INTO ZPAINTING (Z_PK, Z_ENT, Z_OPT, ZID, ZYEAR, ZID1, ZBORN, ZROOM, ZPLACE, ZNAME, ZTITLE) VALUES
  (1, 1, 1, 11, 1888, 71, 1853, 1, 'Arles', 'Vincent', 'Sunflowers'),
  (2, 1, 1, 12, 1665, 72, 1632, 1, 'Delft', 'Johannes', 'Girl'),
  (3, 1, 1, 13, NULL, NULL, NULL, 2, NULL, NULL, 'Unknown'),
  (4, 1, 1, 14, -1, 73, 1900, 2, 'Rome', 'Nobody', 'Forgery');
UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_NAME = 'Painting';
UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'Room';
