"""Do two results hold the same? Every row of every table, value for value, by key: one pass over both stores, whatever
their size."""
import hashlib
import sqlite3

CORE = {"Z_PRIMARYKEY", "Z_METADATA", "Z_MODELCACHE"}


class Differs(Exception):
    """Two results that must be the same are not."""


def compare(reference, other, strict):
    """Throws where the rows of entities or many-to-manys differ; answers what was compared. Customers are compared by
    name, their keys are free. `strict` compares storage classes, layout and Z_PRIMARYKEY too: what a store is for Core
    Data, not only its rows."""
    db = sqlite3.connect(f"file:{reference}?mode=ro", uri=True, isolation_level=None)
    try:
        db.execute("PRAGMA cache_size = -65536")
        db.execute("ATTACH ? AS other", (f"file:{other}?mode=ro",))
        tables = _tables(db, "main")
        if missing := tables - _tables(db, "other"):
            raise Differs(f"{', '.join(sorted(missing))} is not there")
        rows = sum(_table(db, table, strict) for table in sorted(tables))
        if strict:
            _layout(db)
        return f"{rows} rows of {len(tables)} tables" + (", layout" if strict else "")
    finally:
        db.close()


def files(path):
    """What lies in files beside a store, by name."""
    folder = path.with_name(f".{path.stem}_SUPPORT") / "_EXTERNAL_DATA"
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest()
            for file in folder.iterdir()} if folder.exists() else {}


def indexes(path):
    """How many indexes a result has."""
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    count, = db.execute("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND tbl_name GLOB 'Z*' AND sql IS "
                        "NOT NULL").fetchone()
    db.close()
    return count


def _tables(db, side):
    names = {name for name, in db.execute(f"SELECT name FROM {side}.sqlite_master WHERE type = 'table' AND name GLOB "
                                          f"'Z*'")}
    return names - CORE


def _table(db, table, strict):
    count, = db.execute(f"SELECT count(*) FROM main.{table}").fetchone()
    found, = db.execute(f"SELECT count(*) FROM other.{table}").fetchone()
    if count != found:
        raise Differs(f"{table} has {found} rows in place of {count}")
    columns = [row[1] for row in db.execute(f"PRAGMA main.table_info({table})")]
    if "Z_PK" not in columns:
        return _same(db, table, ", ".join(columns), count)
    if table == "ZCUSTOMER":
        return _same(db, table, ", ".join(name for name in columns if name != "Z_PK"), count)
    there = {row[1] for row in db.execute(f"PRAGMA other.table_info({table})")}
    if absent := [name for name in columns if name not in there]:
        raise Differs(f"{table} has no {', '.join(absent)}")
    wrong = " OR ".join(_unequal(name, strict) for name in columns)
    row = db.execute(f"SELECT a.Z_PK FROM main.{table} AS a LEFT JOIN other.{table} AS b ON b.Z_PK = a.Z_PK WHERE "
                     f"{wrong} LIMIT 1")
    if key := row.fetchone():
        bad = [name for name in columns if db.execute(
            f"SELECT {_unequal(name, strict)} FROM main.{table} AS a LEFT JOIN other.{table} AS b ON b.Z_PK = a.Z_PK"
            f" WHERE a.Z_PK = ?", key).fetchone()[0]]
        raise Differs(f"{table}, row {key[0]}: {', '.join(bad)}")
    return count


def _unequal(name, strict):
    if name == "ZCUSTOMER":
        return ("(SELECT ZNAME FROM main.ZCUSTOMER WHERE Z_PK = a.ZCUSTOMER) IS NOT"
                " (SELECT ZNAME FROM other.ZCUSTOMER WHERE Z_PK = b.ZCUSTOMER)")
    return f"a.{name} IS NOT b.{name}" + (f" OR typeof(a.{name}) <> typeof(b.{name})" if strict else "")


def _same(db, table, columns, count):
    """Tables without keys that both must have: as sets, and as many rows."""
    for one, two in (("main", "other"), ("other", "main")):
        extra, = db.execute(f"SELECT count(*) FROM (SELECT {columns} FROM {one}.{table} EXCEPT SELECT {columns} FROM "
                            f"{two}.{table})").fetchone()
        if extra:
            raise Differs(f"{table}: {extra} rows are only on one side")
    return count


def _layout(db):
    select = "SELECT type, name, tbl_name, sql FROM {}.sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite%'"
    one, two = (set(db.execute(select.format(side))) for side in ("main", "other"))
    if one != two:
        raise Differs("the layout: " + ", ".join(sorted({row[1] for row in one ^ two})))
    # Customers have free keys; that no key is above the number is looked at apart.
    keys = "SELECT Z_ENT, Z_NAME, Z_SUPER, iif(Z_NAME = 'Customer', 0, Z_MAX) FROM {}.Z_PRIMARYKEY"
    one, two = (set(db.execute(keys.format(side))) for side in ("main", "other"))
    for side in ("main", "other"):
        if "ZCUSTOMER" in _tables(db, side) and db.execute(
                f"SELECT (SELECT max(Z_PK) FROM {side}.ZCUSTOMER) > Z_MAX FROM {side}.Z_PRIMARYKEY WHERE Z_NAME = "
                f"'Customer'").fetchone()[0]:
            raise Differs("Z_PRIMARYKEY: a customer has a key above the largest")
    if one != two:
        raise Differs("Z_PRIMARYKEY")
