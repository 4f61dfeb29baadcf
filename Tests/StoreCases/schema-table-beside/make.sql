CREATE TABLE "it's ""mine""; --" (a); INSERT INTO "it's ""mine""; --" VALUES ('S3CRET');
