INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (1, 2, 1, 'Garden'), (2, 2, 1, 'unused');
INSERT INTO ZNOTE (Z_PK, Z_ENT, Z_OPT, ZTAGTEXT, ZTEXT) VALUES
  (1, 1, 1, 'garden, Tools', 'Buy a spade'), (2, 1, 1, 'TOOLS tools', 'Oil the saw'), (3, 1, 1, NULL, 'Nothing'),
  (4, 1, 1, ' , ', 'Commas'), (5, 1, 1, 'Straße,GARDEN', 'Sweep'), (6, 1, 1, 'strasse', 'Salt');
UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'Tag';
UPDATE Z_PRIMARYKEY SET Z_MAX = 6 WHERE Z_NAME = 'Note';
