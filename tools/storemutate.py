#!/usr/bin/env python3
"""storemutate - changes a Core Data store as nobody would: bytes, pages, headers, and its content by SQL.

Used by tools/fuzz-stores. Every function takes a random.Random, so a seed tells the whole change, and returns a word
that says what was done. What cannot be done to a store (a table is not there, SQLite refuses) raises sqlite3.Error or
OSError, and the caller goes on with the next change.
"""
import os
import plistlib
import random
import shutil
import sqlite3
import struct
import time
from pathlib import Path

# A word in values of attributes: it may stand in no message.
SECRET = 'qvzxSecret'
INTS = [0, 1, -1, 2, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, -2**31, 2**32, 2**53, 2**63 - 1,
        -2**63]
NAMES = ['main', 'temp', 'sqlite_master', 'sqlite_schema', 'store', 'target', 'dest', 'source', 'hopd', 'Z_METADATA',
         'Z_PRIMARYKEY', 'ZZZ', 'z_metadata',
         'a"b', "a'b", 'a;b', 'a\nb', 'a\x1b[31mb', '%s%n', '', ' ', 'SELECT', 'ключ', 'x' * 10000, '_rowid_', 'rowid',
         'oid', 'Z_PK', 'z_pk', 'ZNAME']


def value(r):
    """A value that the column was not made for."""
    return r.choice([
        lambda: None, lambda: r.choice(INTS), lambda: -r.choice(INTS[:-1]),
        lambda: r.random() * 10**r.randrange(-300, 300), lambda: float('inf'),
        lambda: float('-inf'), lambda: -0.0, lambda: 1e-320, lambda: '', lambda: SECRET, lambda: SECRET + '\0behind',
        lambda: str(r.choice(INTS)),
        lambda: SECRET * r.choice([1, 100, 20000]), lambda: '\ufeff\u202e' + SECRET, lambda: b'', lambda: b'\0',
        lambda: b'\x01', lambda: b'\x02',
        lambda: b'\x02../../../etc/passwd\0', lambda: b'\x02' + b'A' * 36 + b'\0',
        lambda: b'\x025D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33\0',
        lambda: b'\x03' + r.randbytes(9), lambda: r.randbytes(r.choice([1, 16, 40, 5000])), lambda: '2024-01-01',
        lambda: 'NaN', lambda: '1e999',
        lambda: 'http://[', lambda: (b'\xff\xfe' + SECRET.encode(), 'text'), lambda: (b'\xc3', 'text'),
        lambda: ('12', 'blob')])()


def bind(v):
    """The SQL and the parameter of a value; text may be any bytes."""
    if isinstance(v, tuple):
        data, kind = v
        return ('CAST(? AS TEXT)', data) if kind == 'text' else ('CAST(? AS BLOB)', data)
    return '?', v


def q(name):
    return '"' + name.replace('"', '""') + '"'


class Store:
    """A connection for changes: the schema may be written, nothing is checked."""

    def __init__(self, path):
        self.c = sqlite3.connect(path, isolation_level=None, timeout=1)
        self.c.text_factory = lambda b: b.decode('utf-8', 'surrogateescape')
        end = time.monotonic() + 5
        self.c.set_progress_handler(lambda: time.monotonic() > end, 100000)
        self.c.execute('PRAGMA writable_schema=ON')
        self.c.execute('PRAGMA foreign_keys=OFF')

    def all(self, sql, *a):
        return self.c.execute(sql, a).fetchall()

    def tables(self):
        return [t for t, in self.all("SELECT name FROM sqlite_master WHERE type='table' AND name NOT LIKE 'sqlite_%'")]

    def data_tables(self):
        return [t for t in self.tables() if t not in ('Z_METADATA', 'Z_PRIMARYKEY', 'Z_MODELCACHE')] or self.tables()

    def columns(self, t):
        return [x[1] for x in self.all(f'PRAGMA table_info({q(t)})')]


# ---- rows ---------------------------------------------------------------------------------------
def set_values(s, r):
    t = r.choice(s.data_tables())
    col, (sql, v) = r.choice(s.columns(t)), bind(value(r))
    where = r.choice(['rowid = (SELECT rowid FROM %s ORDER BY rowid LIMIT 1 OFFSET %d)' % (q(t), r.randrange(12)),
                      'rowid % 3 = 1', '1'])
    s.c.execute(f'UPDATE OR REPLACE {q(t)} SET {q(col)} = {sql} WHERE {where}', (v,))
    return f'{t}.{col} set'


def copy_rows(s, r):
    t = r.choice(s.data_tables())
    cols = s.columns(t)
    key = r.choice(['Z_PK + 1000', '-Z_PK', 'Z_PK * 1000000007', '9223372036854775807 - Z_PK'])
    take = [key if c == 'Z_PK' else (r.choice([q(c), q(c), 'NULL']) if c not in ('Z_ENT',) else q(c)) for c in cols]
    s.c.execute(f"INSERT OR {r.choice(['IGNORE', 'REPLACE'])} INTO {q(t)} SELECT {', '.join(take)} FROM {q(t)}")
    return f'{t} rows copied ({key})'


def delete_rows(s, r):
    t = r.choice(s.tables())
    s.c.execute(f"DELETE FROM {q(t)} WHERE "
                f"{r.choice(['1', 'rowid % 2', 'rowid = (SELECT min(rowid) FROM ' + q(t) + ')'])}")
    return f'{t} rows deleted'


def many_rows(s, r):
    t = r.choice([t for t in s.data_tables() if 'Z_PK' in s.columns(t)])
    cols = [c for c in s.columns(t) if c != 'Z_PK']
    top = s.all(f'SELECT max(Z_PK) FROM {q(t)}')[0][0] or 0
    # A row may have a value of some hundred KiB: as many as fit into about 32 MiB.
    row = (s.all(f"SELECT total({' + '.join(f'coalesce(length(CAST({q(c)} AS BLOB)), 0)' for c in cols)}) FROM "
                 f"(SELECT * FROM {q(t)} LIMIT 1)")[0][0] or 0)
    n = max(30, min(3000, int((32 << 20) / (row + 1))))
    s.c.execute(f"WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {n}) INSERT OR IGNORE INTO {q(t)} "
                f"(Z_PK, {', '.join(map(q, cols))}) "
                f"SELECT {int(top)} + i, {', '.join(q(c) for c in cols)} FROM n, (SELECT * FROM {q(t)} LIMIT 1)")
    s.c.execute('UPDATE Z_PRIMARYKEY SET Z_MAX = Z_MAX + 5000')
    return f'{t} has {n} more rows'


# ---- Core Data's own tables ---------------------------------------------------------------------
def primary_keys(s, r):
    col, v = r.choice(['Z_ENT', 'Z_NAME', 'Z_SUPER', 'Z_MAX']), r.choice([value(r), r.choice(NAMES), r.choice(INTS),
        r.randrange(8)])
    if col == 'Z_NAME':
        v = r.choice([*NAMES, *INTS, r.randrange(8)])           # a name of an entity may be told, and the mark must not
    sql, v = bind(v)
    what = r.choice(['one', 'one', 'one', 'delete', 'add', 'swap', 'case'])
    some = 'rowid = (SELECT rowid FROM Z_PRIMARYKEY ORDER BY random() LIMIT 1)'.replace('random()',
        f'abs(Z_ENT * {r.randrange(1, 97)} % 11)')
    if what == 'one':
        s.c.execute(f'UPDATE OR REPLACE Z_PRIMARYKEY SET {col} = {sql} WHERE {some}', (v,))
    elif what == 'delete':
        s.c.execute(f'DELETE FROM Z_PRIMARYKEY WHERE {some}')
    elif what == 'add':
        s.c.execute(f'INSERT INTO Z_PRIMARYKEY VALUES (?, {sql}, ?, ?)',
                    (r.choice(INTS), None if SECRET in repr(v) else v, r.choice(INTS), r.choice(INTS)))
    elif what == 'swap':
        s.c.execute('UPDATE Z_PRIMARYKEY SET Z_NAME = (SELECT p.Z_NAME FROM Z_PRIMARYKEY p WHERE p.Z_ENT = 3 - '
                    'Z_PRIMARYKEY.Z_ENT) WHERE Z_ENT IN (1, 2)')
    else:
        s.c.execute('UPDATE Z_PRIMARYKEY SET Z_NAME = upper(Z_NAME)')
    return f'Z_PRIMARYKEY.{col} {what}'


def change_plist(r, node, depth=0):
    """One change somewhere in a property list."""
    if depth < 6 and isinstance(node, dict) and node and r.random() < 0.8:
        k = r.choice(sorted(node, key=str))
        how = r.randrange(5)
        if how == 0:
            del node[k]
        elif how == 1:
            node[r.choice([n for n in NAMES if '\x1b' not in n]) or 'x'] = node[k]
        elif how == 2:
            node[k] = r.choice([0, 2**63 - 1, '', 'x', b'', b'\0' * 32, [], {}, True, 1.5, ['a'], {'a': b'b'}])
        else:
            node[k] = change_plist(r, node[k], depth + 1)
        return node
    if isinstance(node, list) and node and r.random() < 0.8:
        i = r.randrange(len(node))
        node[i] = change_plist(r, node[i], depth + 1)
        return node
    if isinstance(node, bytes) and node:
        b = bytearray(node)
        b[r.randrange(len(b))] ^= 1 << r.randrange(8)
        return bytes(b)
    return r.choice([0, -1, 'x' * r.choice([1, 10000]), b'\xff' * 32, [[]], {}, False])


def metadata(s, r):
    what = r.choice(['plist', 'plist', 'plist', 'plist', 'bytes', 'value', 'none', 'two', 'uuid', 'version', 'bomb'])
    if what == 'plist':
        tree = plistlib.loads(s.all('SELECT Z_PLIST FROM Z_METADATA')[0][0])
        for _ in range(r.randrange(1, 3)):
            tree = change_plist(r, tree)
        try:
            data = plistlib.dumps(tree, fmt=r.choice([plistlib.FMT_BINARY, plistlib.FMT_XML]))
        except (TypeError, OverflowError, ValueError):
            data = b'bplist00'
        s.c.execute('UPDATE Z_METADATA SET Z_PLIST = ?', (data,))
    elif what == 'bytes':
        s.c.execute('UPDATE Z_METADATA SET Z_PLIST = ?', (scratch(r, s.all('SELECT Z_PLIST FROM Z_METADATA')[0][0]),))
    elif what == 'value':
        sql, v = bind(value(r))
        s.c.execute(f'UPDATE Z_METADATA SET Z_PLIST = {sql}', (v,))
    elif what == 'none':
        s.c.execute('DELETE FROM Z_METADATA')
    elif what == 'two':
        s.c.execute('INSERT INTO Z_METADATA SELECT Z_VERSION + 1, Z_UUID, Z_PLIST FROM Z_METADATA')
    elif what == 'bomb':
        s.c.execute('UPDATE Z_METADATA SET Z_PLIST = ?', (r.choice([
            b'<plist><array>' * 100000, b'bplist00' + b'\xa1\x08' * 30 + bytes([8 + 2 * i for i in range(30)])
            + b'\0' * 6 + b'\1\1' + struct.pack('>QQQ', 30, 0, 68),
            b'<?xml version="1.0"?><!DOCTYPE p [<!ENTITY a "aaaaaaaaaa"><!ENTITY b '
            b'"&a;&a;&a;&a;&a;&a;&a;&a;">]><plist><string>&b;</string></plist>']),))
    else:
        sql, v = bind(value(r))
        if what == 'uuid' and SECRET in repr(v):                # the store's identifier is told
            sql, v = '?', 'no identifier at all'
        s.c.execute(f"UPDATE Z_METADATA SET {'Z_UUID' if what == 'uuid' else 'Z_VERSION'} = {sql}", (v,))
    return f'Z_METADATA {what}'


def model_cache(s, r):
    what = r.choice(['bytes', 'value', 'none', 'two', 'drop', 'zlib'])
    if what == 'bytes':
        s.c.execute('UPDATE Z_MODELCACHE SET Z_CONTENT = ?',
                    (scratch(r, s.all('SELECT Z_CONTENT FROM Z_MODELCACHE')[0][0] or b'xx'),))
    elif what == 'value':
        sql, v = bind(value(r))
        s.c.execute(f'UPDATE Z_MODELCACHE SET Z_CONTENT = {sql}', (v,))
    elif what == 'zlib':
        s.c.execute('UPDATE Z_MODELCACHE SET Z_CONTENT = zeroblob(?)', (r.choice([0, 100, 3000000]),))
    else:
        s.c.execute({'none': 'DELETE FROM Z_MODELCACHE',
                     'two': 'INSERT INTO Z_MODELCACHE SELECT Z_CONTENT FROM Z_MODELCACHE',
                     'drop': 'DROP TABLE Z_MODELCACHE'}[what])
    return f'Z_MODELCACHE {what}'


# ---- schema -------------------------------------------------------------------------------------
def alter(s, r):
    t, n = r.choice(s.tables()), r.choice(NAMES)
    col = r.choice(s.columns(t) or ['Z_PK'])
    fn = r.choice(['abs(1)', 'random()', "load_extension('x')", 'nonsense(1)', "readfile('/etc/passwd')",
                   'randomblob(1000000000)', 'sqlite_version()'])
    index = r.choice([x for x, in s.all("SELECT name FROM sqlite_master WHERE type = 'index' AND sql NOT NULL")]
                     or ['none'])
    return run_any(s, r, [
        f'ALTER TABLE {q(t)} RENAME TO {q(n)}', f'ALTER TABLE {q(t)} RENAME COLUMN {q(col)} TO {q(n)}',
        f'ALTER TABLE {q(t)} DROP COLUMN {q(col)}',
        f'ALTER TABLE {q(t)} ADD COLUMN {q(n)} INTEGER',
        f'ALTER TABLE {q(t)} ADD COLUMN ZEXTRA DEFAULT {r.choice([1, "(1)", "NULL", repr(SECRET)])}',
        f'ALTER TABLE {q(t)} ADD COLUMN ZGEN AS ({q(col)} || 1)',
        f'ALTER TABLE {q(t)} ADD COLUMN ZCHK CHECK ({fn} NOTNULL)', f'DROP TABLE {q(t)}', f'DROP INDEX {q(index)}',
        f'CREATE INDEX {q(n + "i")} ON {q(t)} ({q(col)})',
        f'CREATE UNIQUE INDEX {q(n + "u")} ON {q(t)} ({q(col)}) WHERE {q(col)} > 5',
        f'CREATE INDEX xe ON {q(t)} (abs({q(col)}))',
        f'CREATE TABLE {q(n)} (a, b)', f'CREATE VIEW {q(n)} AS SELECT * FROM {q(t)}', f'CREATE VIEW v1 AS SELECT {fn}',
        'CREATE VIEW v2 AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT * FROM n',
        f'CREATE TRIGGER {q(n + "t")} AFTER {r.choice(["INSERT", "DELETE", "UPDATE"])} ON {q(t)} BEGIN '
        f'{r.choice(["DELETE FROM " + q(t), "SELECT " + fn, "SELECT RAISE(ABORT, 1)"])}; END',
        f'CREATE VIRTUAL TABLE {q(n + "f")} USING {r.choice(["fts5(a)", "fts4(a)", "rtree(a, b, c)"])}',
        'CREATE TABLE seq (a INTEGER PRIMARY KEY AUTOINCREMENT)',
        f'CREATE TABLE wr (a PRIMARY KEY, b) WITHOUT ROWID', 'CREATE TABLE st (a INTEGER) STRICT', 'ANALYZE',
        f'CREATE TABLE fk (a REFERENCES {q(t)} ON DELETE CASCADE)',
        f'CREATE TABLE big ({", ".join("c%d" % i for i in range(r.choice([500, 1999])))})',
        # What Apple's software leaves in stores beside the tables of the model.
        'CREATE TABLE ACHANGE (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER)', 'CREATE TABLE ATRANSACTION (Z_PK INTEGER)',
        'CREATE TABLE ANSCKEVENT (Z_PK INTEGER)'])


def run_any(s, r, statements):
    sql = r.choice(statements)
    s.c.execute(sql)
    return sql[:90]


WORDS = ['INTEGER', 'VARCHAR', 'BLOB', 'FLOAT', 'TIMESTAMP', 'DECIMAL', 'PRIMARY KEY', 'TEXT', 'REAL', 'ANY',
         'NOT NULL', 'UNIQUE', 'COLLATE NOCASE', 'COLLATE nonsense',
         'DEFAULT 5', "CHECK (abs(1) > 0)", 'CHECK (0)', 'GENERATED ALWAYS AS (1)', 'AS (1) STORED', 'REFERENCES ZTAG',
         'WITHOUT ROWID', 'STRICT', 'DESC', 'AUTOINCREMENT', 'HIDDEN']


def schema_text(s, r):
    """A row of sqlite_master is changed by hand."""
    rows = s.all('SELECT rowid, type, name, tbl_name, rootpage, sql FROM sqlite_master')
    rowid, kind, name, _, root, sql = r.choice(rows)
    what = r.choice(['word', 'word', 'word', 'insert', 'insert', 'root', 'type', 'name', 'tbl_name', 'delete', 'double',
                     'bytes', 'virtual', 'null'])
    if what in ('word', 'insert') and sql:
        parts = sql.split(' ')
        i = r.randrange(len(parts))
        if what == 'word':
            parts[i] = r.choice(WORDS + [p for p in parts if p.strip()])
        else:
            places = [k for k, p in enumerate(parts) if p.endswith(',')] or [i]
            i = r.choice(places)
            parts[i] = parts[i].rstrip(',') + ' ' + r.choice(WORDS) + ','
        s.c.execute('UPDATE sqlite_master SET sql = ? WHERE rowid = ?', (' '.join(parts), rowid))
    elif what == 'root':
        s.c.execute('UPDATE sqlite_master SET rootpage = ? WHERE rowid = ?', (r.choice(INTS + [x[4] for x in rows] * 3),
            rowid))
    elif what in ('type', 'name', 'tbl_name'):
        new = r.choice(['view', 'trigger', 'index', 'table', None]) if what == 'type' else r.choice(NAMES
            + [x[2] for x in rows] * 2 + [name.lower()])
        s.c.execute(f'UPDATE sqlite_master SET {what} = ? WHERE rowid = ?', (new, rowid))
    elif what == 'delete':
        s.c.execute('DELETE FROM sqlite_master WHERE rowid = ?', (rowid,))
    elif what == 'double':
        s.c.execute('INSERT INTO sqlite_master SELECT * FROM sqlite_master WHERE rowid = ?', (rowid,))
    elif what == 'virtual':
        s.c.execute("UPDATE sqlite_master SET sql = ?, rootpage = 0 WHERE rowid = ?",
                    (f'CREATE VIRTUAL TABLE {q(name)} USING ' + r.choice(['fts5(a)', 'rtree(a,b,c)', 'nonsense(a)',
                        "csv('/etc/passwd')", 'dbstat', 'json_each', 'fts5vocab(a, row)']), rowid))
    elif what == 'null':
        s.c.execute('UPDATE sqlite_master SET sql = ? WHERE rowid = ?',
                    (r.choice([None, '', 5, 'CREATE TABLE x', b'CREATE']), rowid))
    else:
        s.c.execute('UPDATE sqlite_master SET sql = ? WHERE rowid = ?',
                    (scratch(r, (sql or 'x').encode('utf-8', 'surrogateescape')).decode('latin-1'), rowid))
    version = s.all('PRAGMA schema_version')[0][0]
    s.c.execute(f'PRAGMA schema_version = {version + 1}')
    return f'schema of {kind} {name}: {what}'


def whole_file(s, r):
    how = r.choice(['page_size', 'auto_vacuum', 'user_version', 'encoding', 'wal', 'delete', 'vacuum', 'free',
                    'legacy'])
    for sql in {'page_size': ['PRAGMA journal_mode=DELETE', f'PRAGMA page_size={r.choice([512, 1024, 8192, 65536])}',
                              'VACUUM'], 'wal': ['PRAGMA journal_mode=WAL'],
                'auto_vacuum': [f'PRAGMA auto_vacuum={r.choice([1, 2])}', 'VACUUM'],
                'user_version': [f'PRAGMA user_version={r.choice(INTS[:15])}', 'PRAGMA application_id=7'],
                'delete': ['PRAGMA journal_mode=DELETE'], 'vacuum': ['VACUUM'],
                'encoding': ["PRAGMA encoding='UTF-16le'", 'VACUUM'],
                'free': ['CREATE TABLE gone AS SELECT randomblob(200000)', 'DROP TABLE gone'],
                'legacy': ['PRAGMA legacy_file_format=1', 'VACUUM']}[how]:
        s.c.execute(sql)
    return f'file: {how}'


BY_SQL = [(set_values, 9), (copy_rows, 2), (delete_rows, 2), (many_rows, 1), (primary_keys, 4), (metadata, 4),
          (model_cache, 2), (alter, 6), (schema_text, 7), (whole_file, 2)]


# ---- bytes --------------------------------------------------------------------------------------
def scratch(r, data):
    """Some bytes of a string changed, cut out, put in or doubled."""
    b = bytearray(data) or bytearray(b'\0')
    for _ in range(r.choice([1, 1, 1, 2, 8, 40])):
        i, n = r.randrange(len(b)), r.choice([1, 1, 2, 4, 16, 200])
        how = r.randrange(7)
        if how == 0:
            b[i] ^= 1 << r.randrange(8)
        elif how == 1:
            b[i] = r.choice([0, 1, 0x7f, 0x80, 0xff, r.randrange(256)])
        elif how == 2:
            b[i:i + n] = r.randbytes(len(b[i:i + n]))
        elif how == 3:
            b[i:i + n] = r.choice([b'\0', b'\xff', b'\x81'])[:1] * len(b[i:i + n])
        elif how == 4 and len(b) > n:
            del b[i:i + n]
        elif how == 5:
            b[i:i] = b[r.randrange(len(b)):][:n]
        else:
            w = struct.pack(r.choice(['>H', '>I', '>Q']), r.choice([x for x in INTS if 0 <= x < 65536]))
            b[i:i + len(w)] = w
        if not b:
            b = bytearray(b'\0')
    return bytes(b)


def page_bytes(path, r):
    b = bytearray(path.read_bytes())
    size = int.from_bytes(b[16:18], 'big') if len(b) > 18 else 4096
    size = size if size in (512, 1024, 2048, 4096, 8192, 16384, 32768) else 4096
    pages = max(1, len(b) // size)
    p = r.randrange(pages)
    at = p * size
    how = r.choice(['flip', 'flip', 'flip', 'head', 'cells', 'record', 'swap', 'copy', 'zero', 'noise', 'cut', 'longer',
                    'header', 'header', 'kibibyte', 'empty', 'encrypted'])
    if how == 'flip':
        for _ in range(r.choice([1, 1, 2, 10])):
            b[r.randrange(len(b))] ^= 1 << r.randrange(8)
    elif how == 'head':
        b[at + (100 if p == 0 else 0) + r.randrange(12)] = r.randrange(256)
    elif how == 'cells':
        b[at + (100 if p == 0 else 0) + 8 + r.randrange(60)] = r.randrange(256)
    elif how == 'record':
        i = at + size - 1 - r.randrange(min(size, 400))
        b[i:i + 3] = r.randbytes(3)
    elif how in ('swap', 'copy') and pages > 2:
        o = r.randrange(pages) * size
        one, two = b[at:at + size], b[o:o + size]
        b[o:o + size] = one
        if how == 'swap':
            b[at:at + size] = two
    elif how == 'zero':
        b[at:at + size] = bytes(size)
    elif how == 'noise':
        b[at:at + size] = r.randbytes(size)
    elif how == 'cut':
        del b[r.randrange(len(b)):]
    elif how == 'kibibyte':
        del b[r.randrange(len(b) // 1024 + 1) * 1024:]
    elif how == 'longer':
        b += r.randbytes(r.choice([1, 511, size, size * 3]))
    elif how == 'header':
        i = r.choice([0, 16, 17, 18, 19, 20, 21, 22, 23, 24, 28, 31, 32, 36, 39, 40, 44, 47, 48, 52, 55, 56, 59, 60, 64,
                      68, 92, 96])
        n = r.choice([1, 1, 2, 4])
        b[i:i + n] = r.choice([b'\0' * n, b'\xff' * n, r.randbytes(n),
                               struct.pack('>I', r.choice([1, 2, 3, 4, 5]))[4 - n:]])
    elif how == 'empty':
        b = bytearray(r.choice([b'', b'\0', b'SQLite format 3\0', b'SQLite format 3', b'\0' * 4096]))
    elif how == 'encrypted':
        b = bytearray(r.randbytes(len(b)))
    path.write_bytes(b)
    return f'bytes: {how}, page {p + 1}'


def child(path, work):
    """Runs statements in a process that dies without closing: what it left in side files stays there."""
    pid = os.fork()
    if pid == 0:
        try:
            c = sqlite3.connect(path, isolation_level=None, timeout=1)
            work(c)
        finally:
            os._exit(0)
    os.waitpid(pid, 0)


def page_size(path):
    """Bytes of a page, as the header tells."""
    size = int.from_bytes(path.read_bytes()[16:18], 'big')
    return 65536 if size == 1 else max(size, 512)


def side_files(path, r):
    """What lies beside a store: logs of dead writers, and whatever else has their names."""
    how = r.choice(['hot-wal', 'hot-wal', 'hot-wal-bytes', 'hot-journal', 'hot-journal-bytes', 'garbage', 'own',
                    'directory', 'link', 'super', 'super',
                    'hot-wal-index', 'lone-index', 'log-of-another'])
    wal, journal = Path(f'{path}-wal'), Path(f'{path}-journal')

    def touch(c, table=None):
        tables = [t for t, in c.execute("SELECT name FROM sqlite_master WHERE type='table' AND name GLOB 'Z[A-Z]*'")]
        for t in tables[:4]:
            c.execute(f'UPDATE {q(t)} SET Z_OPT = Z_OPT + 1')

    def hot_wal(c):
        c.execute('PRAGMA journal_mode=WAL')
        c.execute('PRAGMA wal_autocheckpoint=0')
        touch(c)
        touch(c)

    def hot_journal(c):
        c.execute('PRAGMA journal_mode=DELETE')
        c.execute('PRAGMA cache_size=1')
        c.execute('BEGIN IMMEDIATE')
        touch(c)
        c.execute('CREATE TABLE half AS SELECT randomblob(40000) a, zeroblob(300000) b')

    if how.startswith('hot-wal'):
        child(path, hot_wal)
    elif how.startswith('hot-journal'):
        child(path, hot_journal)
    file = wal if 'wal' in how else journal
    if how.endswith('-bytes') and file.is_file() and not file.is_symlink():
        file.write_bytes(scratch(r, file.read_bytes()))
    elif how == 'garbage':
        Path(f"{path}{r.choice(['-wal', '-shm', '-journal'])}").write_bytes(r.choice([b'', r.randbytes(5000),
            path.read_bytes()[:9000]]))
    elif how == 'own':
        shutil.copy(path, f"{path}{r.choice(['-wal', '-journal'])}")
    elif how == 'directory':
        os.mkdir(f"{path}{r.choice(['-wal', '-shm', '-journal'])}")
    elif how == 'link':
        os.symlink(r.choice([decoy(path), 'nowhere', path.name]), f"{path}{r.choice(['-wal', '-shm', '-journal'])}")
    elif how == 'super':
        # SQLite looks for the file that a journal names, reads it and deletes it, wherever it is.
        child(path, hot_journal)
        victim = r.choice(['missing', 'decoy', 'pipe', 'sparse', 'itself', 'relative'])
        name = {'missing': str(path.parent / 'super-mj0123'), 'decoy': decoy(path), 'pipe': str(path.parent / 'pipe'),
                'sparse': str(path.parent.parent / 'sparse'),
                'itself': str(path), 'relative': '../decoy'}[victim].encode()
        if victim == 'pipe':
            os.mkfifo(name)
        elif victim == 'sparse':
            with open(name, 'wb') as f:
                f.truncate(2 << 30)
        elif victim == 'relative':
            decoy(path)
        with open(journal, 'ab') as f:
            f.write(struct.pack('>I', 0x40000000 // page_size(path) + 1) + name
                    + struct.pack('>II', len(name), sum(name) & 0xffffffff)
                    + b'\xd9\xd5\x05\xf9\x20\xa1\x63\xd7')
        how += f' ({victim})'
    elif how == 'hot-wal-index':
        # The index of a log is memory that everybody shares: cut off, overwritten, of another size.
        index = Path(f'{path}-shm')
        index.write_bytes(r.choice([b'', b'x', bytes(32768), r.randbytes(32768), r.randbytes(70000)]))
    elif how == 'lone-index':
        Path(f'{path}-shm').write_bytes(r.choice([b'', bytes(32768), r.randbytes(32768)]))
    elif how == 'log-of-another':
        other = path.parent / 'another'
        shutil.copy(path, other)
        child(other, hot_wal)
        Path(f'{other}-wal').replace(wal)
        Path(f'{other}-shm').unlink(missing_ok=True)
        other.unlink()
        # Pages of the store as it is have moved on since.
        c = sqlite3.connect(path, isolation_level=None)
        try:
            touch(c)
            if r.random() < 0.5:
                c.execute('VACUUM')
        finally:
            c.close()
    return f'beside: {how}'


def decoy(path):
    """Somebody else's file, for links to lead to. One of ours: later changes of the same case may write through the
    link."""
    file = path.parent.parent / 'decoy'
    if not file.exists():
        file.write_text('root:x:0:0:root:/root:/bin/sh\n')
    return str(file)


def external(path, r):
    """The files of binary values."""
    folder = path.parent / f'.{path.stem}_SUPPORT' / '_EXTERNAL_DATA'
    files = sorted(folder.iterdir()) if folder.is_dir() else []
    if not files:
        raise OSError('no external data')
    f, how = r.choice(files), r.choice(['gone', 'link', 'fifo', 'directory', 'empty', 'longer', 'stranger', 'none',
                                        'linked-folder', 'hard'])
    if how in ('gone', 'link', 'fifo', 'directory'):
        f.unlink()
        {'gone': lambda: 0, 'link': lambda: f.symlink_to(decoy(path)), 'fifo': lambda: os.mkfifo(f),
         'directory': f.mkdir}[how]()
    elif how == 'empty':
        f.write_bytes(b'')
    elif how == 'longer':
        f.write_bytes(b'x' * 300000)
    elif how == 'stranger':
        (folder / r.choice(['stranger', '-rf', 'a\nb'])).write_bytes(b'x')
    elif how == 'none':
        shutil.rmtree(folder.parent)
    elif how == 'hard':
        os.link(f, folder / 'other')
    else:
        away = path.parent / 'elsewhere'
        folder.rename(away)
        folder.symlink_to(away)
    return f'external data: {how}'


def mutate(path, r):
    """Changes the store at path, and returns what was done, in words."""
    path, done = Path(path), []
    kinds = [r.choice(['sql', 'sql', 'sql', 'bytes', 'bytes', 'side', 'external'])
             for _ in range(r.choice([1, 1, 1, 2, 2, 3, 5]))]
    for _ in range(kinds.count('sql')):
        try:
            s = Store(path)
            try:
                done.append(r.choices([f for f, _ in BY_SQL], [w for _, w in BY_SQL])[0](s, r))
            finally:
                s.c.close()
        except (sqlite3.Error, sqlite3.Warning, OSError, IndexError, plistlib.InvalidFileException, ValueError,
                KeyError, OverflowError, TypeError, AttributeError) as e:
            done.append(f'(nothing: {type(e).__name__})')
    for kind, f in (('side', side_files), ('bytes', page_bytes), ('external', external)):
        for _ in range(kinds.count(kind)):
            # SQLite itself would read, wait for or delete what such a journal names: nothing opens the store here any
            # more.
            if kind == 'side' and done and done[-1].startswith('beside: super'):
                break
            try:
                done.append(f(path, r))
            except (sqlite3.Error, OSError, ValueError, IndexError) as e:
                done.append(f'(nothing: {type(e).__name__})')
    return done
