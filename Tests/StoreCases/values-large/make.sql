UPDATE ZPART SET ZTITLE = replace(hex(zeroblob(500000)), '00', 'S3CRET'), ZBLOB = zeroblob(1000000) WHERE Z_PK = 2;
