"""The three hops as a plain script: rows are read, tuples made, and written with executemany, into a new file per hop.

Needs the folder of the hops as scripts (hop1.txt, hop2.txt, hop3.txt) as third argument: layout and indexes come from
there.
"""
import itertools
import os
import pathlib
import sqlite3
import sys

from common import DESTINATION, SOURCE, done

SCRIPTS = pathlib.Path(sys.argv[3])


def hop(source, destination, script, copies, after=lambda db: None):
    """`copies`: table to read, its columns, table to write, its columns, what makes a tuple of a row (None leaves it
    out)."""
    lines = [(line[0], line[2:]) for line in (SCRIPTS / script).read_text().splitlines()]
    rows = sqlite3.connect(f"file:{source}?mode=ro", uri=True, isolation_level=None)
    db = sqlite3.connect(f"file:{destination}", uri=True, isolation_level=None)
    db.executescript("PRAGMA auto_vacuum = 2; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size "
                     "= -8000")
    db.execute("ATTACH ? AS src", (f"file:{source}?mode=ro",))
    tables = list(itertools.takewhile(lambda line: line[0] == "T", lines))
    for _, sql in tables:
        db.execute(sql)
    for table, columns, target, names, make in copies:
        count = len(names.split(","))
        insert = f"INSERT INTO {target} ({names}) VALUES ({', '.join('?' * count)})"
        select = f"SELECT {columns} FROM {table} WHERE rowid BETWEEN ? AND ?"
        last = rows.execute(f"SELECT max(rowid) FROM {table}").fetchone()[0] or 0
        for low in range(1, last + 1, 10_000):
            made = map(make, rows.execute(select, (low, low + 9_999))) if make else rows.execute(select,
                (low, low + 9_999))
            db.execute("BEGIN")
            db.executemany(insert, filter(None, made))
            db.execute("COMMIT")
    after(db)
    for kind, sql in lines[len(tables):]:
        if kind in "IT":
            db.execute(sql)
    db.close()
    rows.close()


CORE = "Z_PK, Z_ENT, Z_OPT, "
ORDER = "ZQUANTITY, ZSTATUS, ZPERSON, ZORDERDATE, ZPRICE, ZCUSTOMERNAME, ZNOTE, ZNUMBER"
PERSON = "ZAGE, ZBIRTHDATE, ZSCORE, ZCITY, {0}, ZFIRSTNAME, ZLASTNAME, ZSTREET, ZZIP, ZPHOTO"
PERSON_3 = "ZACTIVE, ZAGE, ZBIRTHDATE, ZSCORE, ZEMAILADDRESS, ZFULLNAME, ZPHOTO"
ADDRESS = "ZPERSON, ZCITY, ZSTREET, ZZIP"
between = [f"{DESTINATION}.1", f"{DESTINATION}.2"]
for path in (DESTINATION, *between):
    pathlib.Path(path).unlink(missing_ok=True)

hop(SOURCE, between[0], "hop1.txt", [
    ("ZORDER", "Z_PK, 1, Z_OPT, " + ORDER, "ZORDER", CORE + ORDER, None),
    ("ZPERSON", "Z_PK, 2, Z_OPT, 1, " + PERSON.format("ZEMAIL"), "ZPERSON",
     CORE + "ZACTIVE, " + PERSON.format("ZEMAILADDRESS"), None),
    ("ZTAG", "Z_PK, 3, Z_OPT, ZNAME", "ZTAG", CORE + "ZNAME", None),
    ("Z_2TAGS", "Z_2PERSONS, Z_3TAGS", "Z_2TAGS", "Z_2PERSONS, Z_3TAGS", None)])


def order(row):
    return None if row[2] == 19 else (*row, row[1] * row[5])


def address(row):
    key, city, street, zip = row
    return key, 1, 1, key, city, street, zip.upper()


def person(row):
    key, active, age, birth, score, email, first, last, photo = row
    return key, 3, 1, active, age, birth, score * 1.5 + age, email, first + " " + last.upper(), photo, key


hop(between[0], between[1], "hop2.txt", [
    ("ZPERSON", "Z_PK, ZCITY, ZSTREET, ZZIP", "ZADDRESS", CORE + ADDRESS, address),
    ("ZORDER", "Z_PK, " + ORDER + ", 2, 1", "ZORDER", "Z_PK, " + ORDER + ", Z_ENT, Z_OPT, ZTOTAL", order),
    ("ZPERSON", "Z_PK, ZACTIVE, ZAGE, ZBIRTHDATE, ZSCORE, ZEMAILADDRESS, ZFIRSTNAME, ZLASTNAME, ZPHOTO", "ZPERSON",
     CORE + PERSON_3 + ", ZADDRESS", person),
    ("ZTAG", "Z_PK, 4, 1, ZNAME", "ZTAG", CORE + "ZNAME", None),
    ("Z_2TAGS", "Z_2PERSONS, Z_3TAGS", "Z_3TAGS", "Z_3PERSONS, Z_4TAGS", None)])
os.remove(between[0])

customers = {}


def customer(row):
    return (*row[:-1], customers.setdefault(row[-1], len(customers) + 1))


hop(between[1], DESTINATION, "hop3.txt", [
    ("ZADDRESS", "Z_PK, 1, 1, " + ADDRESS, "ZADDRESS", CORE + ADDRESS, None),
    ("ZORDER", "Z_PK, 3, 1, ZQUANTITY, ZSTATUS, ZPERSON, ZORDERDATE, ZPRICE, ZTOTAL, ZNOTE, ZNUMBER, ZCUSTOMERNAME",
     "ZORDER",
     CORE + "ZQUANTITY, ZSTATUS, ZPERSON, ZORDERDATE, ZPRICE, ZTOTAL, ZNOTE, ZNUMBER, ZCUSTOMER", customer),
    ("ZPERSON", "Z_PK, 4, 1, " + PERSON_3, "ZPERSON", CORE + PERSON_3, None),
    ("ZTAG", "Z_PK, 5, 1, ZNAME", "ZTAG", CORE + "ZNAME", None),
    ("Z_3TAGS", "Z_3PERSONS, Z_4TAGS", "Z_4TAGS", "Z_4PERSONS, Z_5TAGS", None)],
    after=lambda db: (db.execute("BEGIN"), db.executemany(
        "INSERT INTO ZCUSTOMER (Z_PK, Z_ENT, Z_OPT, ZNAME) VALUES (?, 2, 1, ?)",
        ((key, name) for name, key in customers.items())), db.execute("COMMIT")))
os.remove(between[1])
done()
