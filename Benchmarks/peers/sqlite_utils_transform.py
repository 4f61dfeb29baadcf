"""The three hops with sqlite-utils: transform where it has a word for it, its own way of running SQL where it has
none."""
import sqlite_utils
from common import RENAMES, copied, done

db = sqlite_utils.Database(copied())
person, order, address = db["ZPERSON"], db["ZORDER"], db["ZADDRESS"]
db.execute("PRAGMA synchronous = OFF")


def drop_indexes(table, column):
    """transform refuses to take away a column that has an index."""
    for index in table.indexes:
        if column in index.columns:
            db.execute(f'DROP INDEX "{index.name}"')


# Workload 2
person.add_column("ZACTIVE", int)
db.execute("UPDATE ZPERSON SET ZACTIVE = 1")
drop_indexes(person, "ZEMAIL")
person.transform(rename={"ZEMAIL": "ZEMAILADDRESS"}, drop={"ZLEGACYCODE"})
# Workload 3
address.create({"Z_PK": int, "Z_ENT": int, "Z_OPT": int, "ZPERSON": int, "ZCITY": str, "ZSTREET": str, "ZZIP": str},
               pk="Z_PK")
address.insert_all((
    {"Z_PK": key, "Z_ENT": 1, "Z_OPT": 1, "ZPERSON": key, "ZCITY": city, "ZSTREET": street, "ZZIP": zip.upper()}
    for key, city, street, zip in db.execute("SELECT Z_PK, ZCITY, ZSTREET, ZZIP FROM ZPERSON")), batch_size=1000)
person.add_column("ZADDRESS", int)
person.add_column("ZFULLNAME", str)
person.convert("ZLASTNAME", lambda name: name.upper())
db.execute("UPDATE ZPERSON SET ZADDRESS = Z_PK, Z_OPT = 1, ZFULLNAME = ZFIRSTNAME || ' ' || ZLASTNAME, ZSCORE = "
           "ZSCORE * 1.5 + ZAGE")
person.transform(drop={"ZFIRSTNAME", "ZLASTNAME", "ZCITY", "ZSTREET", "ZZIP"})
db.execute("DELETE FROM ZORDER WHERE ZSTATUS = 19")
order.add_column("ZTOTAL", float)
db.execute("UPDATE ZORDER SET ZTOTAL = ZQUANTITY * ZPRICE, Z_OPT = 1")
address.create_index(["ZPERSON"])
# Workload 4
order.extract("ZCUSTOMERNAME", table="ZCUSTOMER", fk_column="ZCUSTOMER", rename={"ZCUSTOMERNAME": "ZNAME"})
db["ZCUSTOMER"].transform(rename={"id": "Z_PK"})
db["ZCUSTOMER"].add_column("Z_ENT", int)
db["ZCUSTOMER"].add_column("Z_OPT", int)
db.execute("UPDATE ZCUSTOMER SET Z_ENT = 2, Z_OPT = 1")
order.create_index(["ZCUSTOMER"], if_not_exists=True)
person.transform(drop={"ZADDRESS"})
person.create_index(["ZEMAILADDRESS"])
for table, number in (("ZPERSON", 4), ("ZORDER", 3), ("ZTAG", 5)):
    db.execute(f"UPDATE {table} SET Z_ENT = {number}")
for sql in RENAMES:
    db.execute(sql)
db.conn.commit()
db.close()
done()
