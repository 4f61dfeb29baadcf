#!/usr/bin/env python3
"""Fills an empty store of the workload's first version with N objects, always the same for the same N and seed.

  hopctl create STORE --models Workload.xcdatamodeld --model-version Workload
  fill.py STORE --objects N [--seed K] [--external BYTES]

30 % Person, 68 % Order, 2 % Tag; Person <->> Order, Person <<->> Tag; about half of the persons have a photo of 0.1 to
2 kB; a third as many customers' names as persons. Only integer arithmetic in SQL, so every machine makes the same rows.
With --external photos have the form that Core Data gives to values with external storage: those of at least so many
bytes are files below .STORE_SUPPORT/_EXTERNAL_DATA (docs/decisions/0014).
"""
import argparse
import pathlib
import random
import sqlite3
import uuid

FIRST = ("Ada Björn Chloé Dmitri Elif Fátima Grace Hiro Inès Jürgen Kofi Lena Márta Noor Olaf Priya Quinn Rosa Søren "
         "Tomás "
         "Uma Václav Wei Xavi Yara Zoë").split()
LAST = ("Adler Bauer Castro Dubois Eriksen Fischer García Horvat Ivanov Jansen Kowalski Lindqvist Müller Novák Okafor "
        "Petrov "
        "Quispe Rossi Schmidt Tanaka Ueda Vargas Weiß Xu Yılmaz Zhang").split()
CITY = ("Lisbon Porto Malmö Graz Łódź Gdańsk Kraków Lyon Nantes Ghent Leiden Essen Köln Århus Turku Tampere Bergen "
        "Cádiz "
        "Gijón Modena").split()


def mixed(stream):
    """SQL of a number below 2^31 that looks random, from the row's number i."""
    return f"((((i + {stream * 7919}) * 2654435761) & 4294967295) * 48271 % 2147483647)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store")
    parser.add_argument("--objects", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--external", type=int, metavar="BYTES")
    options = parser.parse_args()
    n = options.objects
    tags, persons = max(1, n * 2 // 100), max(1, n * 30 // 100)
    orders = max(1, n - tags - persons)
    customers = max(1, persons // 3)
    random.seed(options.seed)
    db = sqlite3.connect(options.store, isolation_level=None)
    indexes = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL").fetchall()
    db.executescript("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA cache_size=-65536; BEGIN")
    for name, _ in indexes:
        db.execute(f'DROP INDEX "{name}"')
    for table, words in (("first", FIRST), ("last", LAST), ("city", CITY)):
        db.execute(f"CREATE TEMP TABLE {table} (k INTEGER PRIMARY KEY, s)")
        db.executemany(f"INSERT INTO {table} VALUES (?, ?)", enumerate(words))
    db.execute("CREATE TEMP TABLE bytes (k INTEGER PRIMARY KEY, b)")
    db.executemany("INSERT INTO bytes VALUES (?, ?)", ((k, random.randbytes(4000)) for k in range(64)))

    def h(stream):
        return mixed(stream + options.seed * 104729)

    def word(table, words, number):
        return f"(SELECT s FROM {table} WHERE k = ({number}) % {len(words)})"

    def rows(count):
        return f"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < {count}) "

    numbers = dict(db.execute("SELECT Z_NAME, Z_ENT FROM Z_PRIMARYKEY"))
    db.execute("INSERT INTO ZPERSON (Z_PK, Z_ENT, Z_OPT, ZAGE, ZBIRTHDATE, ZSCORE, ZCITY, ZEMAIL, ZFIRSTNAME, "
               "ZLASTNAME,"
               " ZLEGACYCODE, ZSTREET, ZZIP, ZPHOTO) " + rows(persons) +
               f"SELECT i, {numbers['Person']}, 1 + {h(1)} % 7, 18 + {h(2)} % 70, -1.0e9 + {h(3)} / 2.0, {h(4)} % "
               f"10000 / 100.0,"
               f" {word('city', CITY, h(5))}, 'user' || i || '.' || ({h(6)} % 100000) || '@example.org',"
               f" {word('first', FIRST, h(7))}, {word('last', LAST, h(8))}, 'LC-' || {h(9)},"
               f" ({h(10)} % 400 + 1) || ' ' || {word('last', LAST, h(11))} || ' street',"
               f" printf('%05d-%s', {h(12)} % 100000, substr('abcdefghij', {h(13)} % 8 + 1, 2)),"
               f" CASE WHEN {h(14)} % 10 < 4 THEN (SELECT substr(b, {h(15)} % 2000 + 1, 100 + {h(16)} % 1901) FROM "
               f"bytes"
               f" WHERE k = {h(17)} % 64) END FROM c")
    db.execute("INSERT INTO ZORDER (Z_PK, Z_ENT, Z_OPT, ZQUANTITY, ZSTATUS, ZPERSON, ZORDERDATE, ZPRICE, "
               "ZCUSTOMERNAME, ZNOTE,"
               " ZNUMBER) " + rows(orders) +
               f"SELECT i, {numbers['Order']}, 1 + {h(21)} % 3, 1 + {h(22)} % 12, {h(23)} % 20, 1 + {h(24)} % "
               f"{persons},"
               f" 6.0e8 + {h(25)} / 16.0, {h(26)} % 100000 / 100.0,"
               f" (SELECT {word('first', FIRST, 'q.x')} || ' ' || {word('last', LAST, 'q.x / 26')} || ' ' || q.x"
               f" FROM (SELECT {h(27)} % {customers} AS x) AS q),"
               f" CASE WHEN {h(28)} % 3 = 0 THEN 'deliver to the ' || {word('city', CITY, h(29))} || ' depot, ring "
               f"twice,"
               f" order ' || i END, printf('N-%010d', i * 7) FROM c")
    db.execute("INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT, ZNAME) " + rows(tags) +
               f"SELECT i, {numbers['Tag']}, 1, 'tag ' || i || ' ' || {word('city', CITY, h(31))} FROM c")
    join, = [name for name, in db.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name GLOB 'Z_*TAGS'")]
    for target, chance, limit in ((41, 43, 7), (42, 44, 3)):
        db.execute(f"INSERT OR IGNORE INTO {join} " + rows(persons) +
                   f"SELECT i, 1 + {h(target)} % {tags} FROM c WHERE {h(chance)} % 10 < {limit}")
    for entity, count in (("Order", orders), ("Person", persons), ("Tag", tags)):
        db.execute("UPDATE Z_PRIMARYKEY SET Z_MAX = ? WHERE Z_NAME = ?", (count, entity))
    for _, sql in indexes:
        db.execute(sql)
    if options.external:
        put_outside(db, pathlib.Path(options.store), options.external)
    db.execute("COMMIT")
    db.close()


def put_outside(db, store, bound):
    """Gives photos the form of values with external storage."""
    folder = store.with_name(f".{store.stem}_SUPPORT") / "_EXTERNAL_DATA"
    folder.mkdir(parents=True)

    def stored(photo):
        if len(photo) < bound:
            return b"\x01" + photo
        name = str(uuid.UUID(int=random.getrandbits(128), version=4)).upper()
        (folder / name).write_bytes(photo)
        return b"\x02" + name.encode() + b"\0"

    db.create_function("stored", 1, stored)
    db.execute("UPDATE ZPERSON SET ZPHOTO = stored(ZPHOTO) WHERE ZPHOTO IS NOT NULL")


main()
