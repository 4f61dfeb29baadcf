CREATE TABLE main (a); CREATE TABLE temp (a); CREATE TABLE staged (a); CREATE TABLE store (a);
CREATE TABLE HOPD_PAIRS (a); CREATE TABLE sqlitemaster (a);
