INSERT INTO ZCOUNTRY (Z_PK, Z_ENT, Z_OPT, ZCODE, ZNAME) VALUES (1, 2, 1, 'DE', 'Germany'), (2, 2, 1, 'IS', 'Iceland');
INSERT INTO ZADDRESS (Z_PK, Z_ENT, Z_OPT, ZCITY, ZCOUNTRYCODE) VALUES
  (1, 1, 1, 'Bonn', 'de'), (2, 1, 1, 'Akureyri', 'IS'), (3, 1, 1, 'Atlantis', 'XX'), (4, 1, 1, 'Nowhere', NULL);
UPDATE Z_PRIMARYKEY SET Z_MAX = 2 WHERE Z_NAME = 'Country';
UPDATE Z_PRIMARYKEY SET Z_MAX = 4 WHERE Z_NAME = 'Address';
