"""Is the bench itself right? All who can take part reach the same content at a small size, and a planted difference is
found."""
import sqlite3

from . import contents, measuring, workload
from .competitors import single_hop

OBJECTS = 1000
PLANTED = (
    ("a value", "UPDATE ZORDER SET ZTOTAL = ZTOTAL + 1 WHERE Z_PK = (SELECT max(Z_PK) FROM ZORDER)"),
    ("a storage class", "UPDATE ZPERSON SET ZAGE = CAST(ZAGE AS BLOB) WHERE Z_PK = 1"),
    ("a value that is NULL", "UPDATE ZADDRESS SET ZCITY = NULL WHERE Z_PK = 7"),
    ("a lost row", "DELETE FROM ZTAG WHERE Z_PK = 3"),
    ("a row too many", "INSERT INTO ZTAG (Z_PK, Z_ENT, Z_OPT) VALUES (9999, 5, 1)"),
    ("another customer", "UPDATE ZORDER SET ZCUSTOMER = (SELECT Z_PK FROM ZCUSTOMER WHERE Z_PK <> ZORDER.ZCUSTOMER) "
                         "WHERE Z_PK = 1"),
    ("another pair", "UPDATE Z_4TAGS SET Z_5TAGS = 999 WHERE rowid = 1"),
    ("a lost index", "DROP INDEX Z_Order_byDate"),
    ("a wrong key", "UPDATE Z_PRIMARYKEY SET Z_MAX = 1 WHERE Z_NAME = 'Person'"))


def run(bench):
    """The exit status."""
    bad = 0
    source = bench.workload.source(OBJECTS)
    sections = [bench.runner.section("sizes", "Three hops", source, OBJECTS, bench.all, "hand", 1)]
    for number in range(1, 4):
        before = source if number == 1 else bench.workload.advanced(source, workload.VERSIONS[number - 1])
        sections.append(bench.runner.section(
            f"hop{number}", f"Hop {number}", before, OBJECTS, single_hop(bench.workload, bench.sqlrun, bench.scripts,
                number), "hand", 1))
    for section in sections:
        bad += len(section.failures)
        for key, what in section.compared.items():
            print(f"{'FAILED  ' if what == 'DIFFERS' else 'ok      '} {section.title}, {section.titles[key]}: {what}")
        for failure in section.failures:
            print(f"FAILED   {section.title}, {failure}")
    for name, why in bench.peers.missing.items():
        print(f"SKIPPED  {name}: {why}")
    one, other = bench.folder / "one.sqlite", bench.folder / "other.sqlite"
    hand = bench.pick("hand-fused")[0]
    measuring.run(hand.command(source, one))
    for what, sql in PLANTED:
        measuring.run(hand.command(source, other))
        db = sqlite3.connect(other)
        db.execute(sql)
        db.commit()
        db.close()
        try:
            contents.compare(one, other, strict=True)
            print(f"FAILED   {what} was planted and not found")
            bad += 1
        except contents.Differs as error:
            print(f"ok       {what} was planted and found: {error}")
    print(f"self-check of the benchmark: {bad} failed, {len(bench.peers.missing)} skipped")
    return 1 if bad else 0
