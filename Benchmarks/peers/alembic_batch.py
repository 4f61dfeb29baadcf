"""The three hops with Alembic's batch mode; data steps with SQLAlchemy Core, as in a revision script."""
import sqlalchemy
from alembic.migration import MigrationContext
from alembic.operations import Operations
from common import RENAMES, copied, done
from sqlalchemy import Column, Float, Integer, String, text

engine = sqlalchemy.create_engine("sqlite:///" + copied())


def first(op, connection):
    with op.batch_alter_table("ZPERSON") as batch:
        batch.add_column(Column("ZACTIVE", Integer, server_default="1"))
        batch.alter_column("ZEMAIL", new_column_name="ZEMAILADDRESS")
        batch.drop_column("ZLEGACYCODE")


def second(op, connection):
    names = (("Z_ENT", Integer), ("Z_OPT", Integer), ("ZPERSON", Integer), ("ZCITY", String), ("ZSTREET", String),
             ("ZZIP", String))
    address = op.create_table("ZADDRESS", Column("Z_PK", Integer, primary_key=True), *[Column(*name) for name in names])
    with op.batch_alter_table("ZPERSON") as batch:
        batch.add_column(Column("ZADDRESS", Integer))
        batch.add_column(Column("ZFULLNAME", String))
    with op.batch_alter_table("ZORDER") as batch:
        batch.add_column(Column("ZTOTAL", Float))
    last = 0
    while rows := connection.exec_driver_sql(
            "SELECT Z_PK, ZCITY, ZSTREET, ZZIP, ZFIRSTNAME, ZLASTNAME FROM ZPERSON WHERE Z_PK > ? ORDER BY Z_PK LIMIT "
            "10000",
            (last,)).fetchall():
        last = rows[-1][0]
        op.bulk_insert(address, [
            dict(Z_PK=key, Z_ENT=1, Z_OPT=1, ZPERSON=key, ZCITY=city, ZSTREET=street, ZZIP=zip.upper())
            for key, city, street, zip, _, _ in rows])
        connection.execute(
            text("UPDATE ZPERSON SET ZADDRESS = Z_PK, Z_OPT = 1, ZFULLNAME = :name, ZSCORE = ZSCORE * 1.5 + ZAGE "
                 "WHERE Z_PK = :key"),
            [dict(key=row[0], name=row[4] + " " + row[5].upper()) for row in rows])
    op.execute("DELETE FROM ZORDER WHERE ZSTATUS = 19")
    op.execute("UPDATE ZORDER SET ZTOTAL = ZQUANTITY * ZPRICE, Z_OPT = 1")
    with op.batch_alter_table("ZPERSON") as batch:
        for name in ("ZFIRSTNAME", "ZLASTNAME", "ZCITY", "ZSTREET", "ZZIP"):
            batch.drop_column(name)
    op.create_index("ZADDRESS_ZPERSON_INDEX", "ZADDRESS", ["ZPERSON"])


def third(op, connection):
    op.create_table("ZCUSTOMER", Column("Z_PK", Integer, primary_key=True), Column("Z_ENT", Integer),
                    Column("Z_OPT", Integer),
                    Column("ZNAME", String))
    op.execute("INSERT INTO ZCUSTOMER SELECT NULL, 2, 1, ZCUSTOMERNAME FROM ZORDER GROUP BY ZCUSTOMERNAME")
    op.create_index("Z_Customer_UNIQUE_name", "ZCUSTOMER", ["ZNAME"], unique=True)
    with op.batch_alter_table("ZORDER") as batch:
        batch.add_column(Column("ZCUSTOMER", Integer))
    op.execute("UPDATE ZORDER SET Z_ENT = 3, ZCUSTOMER = (SELECT Z_PK FROM ZCUSTOMER WHERE ZNAME = ZCUSTOMERNAME)")
    with op.batch_alter_table("ZORDER") as batch:
        batch.drop_column("ZCUSTOMERNAME")
    op.create_index("ZORDER_ZCUSTOMER_INDEX", "ZORDER", ["ZCUSTOMER"])
    with op.batch_alter_table("ZPERSON") as batch:
        batch.drop_column("ZADDRESS")
    op.execute("UPDATE ZPERSON SET Z_ENT = 4")
    op.execute("UPDATE ZTAG SET Z_ENT = 5")
    for sql in RENAMES:
        op.execute(sql)


with engine.connect() as connection:
    connection.exec_driver_sql("PRAGMA synchronous = OFF")
    operations = Operations(MigrationContext.configure(connection))
    for hop in (first, second, third):
        hop(operations, connection)
        connection.commit()
engine.dispose()
done()
