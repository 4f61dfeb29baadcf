INSERT INTO ZCONTACT (Z_PK, Z_ENT, Z_OPT, ZCHANGED, ZEMAIL, ZNAME) VALUES
  (1, 1, 1, 100, 'ada@example.org', 'Ada'), (2, 1, 1, 300, 'ada@example.org', 'Ada L.'),
  (3, 1, 1, 200, 'bo@example.org', 'Bo'), (4, 1, 1, NULL, NULL, 'Nobody'), (5, 1, 1, 50, NULL, 'No one'),
  (6, 1, 1, NULL, 'ada@example.org', 'A.');
INSERT INTO ZMESSAGE (Z_PK, Z_ENT, Z_OPT, ZSENDER, ZTEXT) VALUES
  (1, 2, 1, 1, 'one'), (2, 2, 1, 2, 'two'), (3, 2, 1, 3, 'three'), (4, 2, 1, 6, 'four'), (5, 2, 1, NULL, 'five');
UPDATE Z_PRIMARYKEY SET Z_MAX = 6 WHERE Z_NAME = 'Contact';
UPDATE Z_PRIMARYKEY SET Z_MAX = 5 WHERE Z_NAME = 'Message';
