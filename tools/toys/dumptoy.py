#!/usr/bin/env python3
"""dumptoy - a store and programs that dump it, right and wrong: the controls of tools/dump-compare.

  dumptoy.py setup DIR                makes DIR/toy.sqlite, DIR/empty.sqlite and DIR/Toy.xcdatamodel
  dumptoy.py list                     names the faults
  dumptoy.py FAULT dump STORE …       what tools/dump-compare calls; the fault `none` is the right dump

Store and dump are written by hand, each for itself. One object of each kind of value and relationship is enough: a
fault changes one thing, as little as it can be changed.
"""
import copy
import hashlib
import json
import sqlite3
import sys
from pathlib import Path

CONTENTS = '''<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
    <entity name="Book">
        <attribute name="added" attributeType="Date"/>
        <attribute name="cover" attributeType="Binary" allowsExternalBinaryDataStorage="YES"/>
        <attribute name="extra" attributeType="Transformable"/>
        <attribute name="identifier" attributeType="UUID"/>
        <attribute name="large" attributeType="Binary"/>
        <attribute name="link" attributeType="URI"/>
        <attribute name="pages" attributeType="Integer 64"/>
        <attribute name="place" attributeType="Composite" composite="Place"/>
        <attribute name="price" attributeType="Decimal"/>
        <attribute name="read" attributeType="Boolean"/>
        <attribute name="shown" attributeType="String" transient="YES"/>
        <attribute name="title" attributeType="String"/>
        <attribute name="weight" attributeType="Double"/>
        <attribute name="year" attributeType="Integer 32"/>
        <relationship name="author" destinationEntity="Person" maxCount="1" inverseName="books"/>
        <relationship name="chapters" destinationEntity="Chapter" toMany="YES" ordered="YES" inverseName="book"/>
        <relationship name="next" destinationEntity="Book" maxCount="1"/>
        <relationship name="notes" destinationEntity="Tag" toMany="YES" ordered="YES"/>
        <relationship name="related" destinationEntity="Book" toMany="YES" inverseName="related"/>
        <relationship name="tags" destinationEntity="Tag" toMany="YES" ordered="YES" inverseName="books"/>
    </entity>
    <entity name="Chapter">
        <attribute name="title" attributeType="String"/>
        <relationship name="book" destinationEntity="Book" maxCount="1" inverseName="chapters"/>
    </entity>
    <entity name="Person">
        <relationship name="books" destinationEntity="Book" toMany="YES" inverseName="author"/>
    </entity>
    <entity name="Tag">
        <relationship name="books" destinationEntity="Book" toMany="YES" inverseName="tags"/>
    </entity>
    <entity name="Writer" parentEntity="Person"><attribute name="prize" attributeType="Float"/></entity>
    <composite name="Place">
        <attribute name="room" attributeType="String"/>
        <attribute name="shelf" attributeType="Integer 16"/>
    </composite>
</model>
'''
FILE, EXTERNAL, LARGE = '5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33', bytes(range(200)), b'x' * 65
SQL = f'''
CREATE TABLE Z_PRIMARYKEY (Z_ENT INTEGER PRIMARY KEY, Z_NAME VARCHAR, Z_SUPER INTEGER, Z_MAX INTEGER);
INSERT INTO Z_PRIMARYKEY VALUES (1, 'Book', 0, 0), (2, 'Chapter', 0, 0), (3, 'Person', 0, 0), (4, 'Writer', 3, 0),
    (5, 'Tag', 0, 0);
CREATE TABLE ZBOOK (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPAGES INTEGER, ZREAD INTEGER,
    ZSHELF INTEGER, ZYEAR INTEGER, ZAUTHOR INTEGER, Z3_AUTHOR INTEGER, ZNEXT INTEGER, ZADDED TIMESTAMP, ZWEIGHT FLOAT,
    ZPRICE DECIMAL, ZLINK VARCHAR, ZROOM VARCHAR, ZTITLE VARCHAR, ZIDENTIFIER BLOB, ZEXTRA BLOB, ZCOVER BLOB,
    ZLARGE BLOB);
CREATE TABLE ZCHAPTER (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZBOOK INTEGER, Z_FOK_BOOK INTEGER,
    ZTITLE VARCHAR);
CREATE TABLE ZPERSON (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZPRIZE FLOAT);
CREATE TABLE ZTAG (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, Z1NOTES INTEGER, Z_FOK_1NOTES INTEGER);
CREATE TABLE Z_1TAGS (Z_1BOOKS INTEGER, Z_5TAGS1 INTEGER, Z_FOK_5TAGS1 INTEGER, PRIMARY KEY (Z_1BOOKS, Z_5TAGS1));
CREATE TABLE Z_1RELATED (Z_1RELATED INTEGER, REFLEXIVE INTEGER, PRIMARY KEY (Z_1RELATED, REFLEXIVE));
-- rows
INSERT INTO ZBOOK VALUES (1, 1, 1, 9007199254740993, 1, 4, 1999, 2, 4, 2, 600000000.123456, 0.1, 12.5,
    'https://a.example/', 'north', 'a "b"' || char(0) || 'c', X'000102030405060708090A0B0C0D0E0F', X'00FF',
    X'02{FILE.encode().hex()}00', X'{LARGE.hex()}');
INSERT INTO ZBOOK (Z_PK, Z_ENT, ZCOVER) VALUES (2, 1, X'01');
INSERT INTO ZCHAPTER VALUES (1, 2, 1, 1, 4096, 'second'), (2, 2, 1, 1, 2048, 'first'), (3, 2, 1, NULL, NULL, NULL);
INSERT INTO ZPERSON VALUES (1, 3, 1, NULL), (2, 4, 1, 1e999);
INSERT INTO ZTAG VALUES (1, 5, 1, 1, 4096), (2, 5, 1, 1, 2048);
INSERT INTO Z_1TAGS VALUES (1, 1, 4096), (1, 2, 2048), (2, 2, 2048);
INSERT INTO Z_1RELATED VALUES (1, 2);
'''


def line(identifier, attributes, relationships):
    return {'entity': identifier.split('/')[0], 'id': identifier, 'attributes': attributes,
            'relationships': relationships}


def digest(data):
    return {'bytes': len(data), 'digest': hashlib.sha256(data).hexdigest()}


RIGHT = [
    line('Book/p1', {
        'added': '2020-01-06T10:40:00.123456001Z', 'cover': digest(EXTERNAL), 'extra': 'AP8=',
        'identifier': '00010203-0405-0607-0809-0A0B0C0D0E0F', 'large': digest(LARGE), 'link': 'https://a.example/',
        'pages': 9007199254740993, 'place': {'room': 'north', 'shelf': 4}, 'price': '12.5', 'read': True,
        'title': 'a "b"\0c', 'weight': 0.1, 'year': 1999,
    }, {'author': 'Writer/p2', 'chapters': ['Chapter/p2', 'Chapter/p1'], 'next': 'Book/p2',
        'notes': ['Tag/p2', 'Tag/p1'], 'related': ['Book/p2'], 'tags': ['Tag/p2', 'Tag/p1']}),
    line('Book/p2', {
        'added': None, 'cover': '', 'extra': None, 'identifier': None, 'large': None, 'link': None, 'pages': None,
        'place': None, 'price': None, 'read': None, 'title': None, 'weight': None, 'year': None,
    }, {'author': None, 'chapters': [], 'next': None, 'notes': [], 'related': ['Book/p1'], 'tags': ['Tag/p2']}),
    line('Chapter/p1', {'title': 'second'}, {'book': 'Book/p1'}),
    line('Chapter/p2', {'title': 'first'}, {'book': 'Book/p1'}),
    line('Chapter/p3', {'title': None}, {'book': None}),
    line('Person/p1', {}, {'books': []}),
    line('Writer/p2', {'prize': 'Infinity'}, {'books': ['Book/p1']}),
    line('Tag/p1', {}, {'books': ['Book/p1']}),
    line('Tag/p2', {}, {'books': ['Book/p1', 'Book/p2']}),
]


def changed(part, name, value, number=0):
    def fault(lines):
        lines[number][part][name] = value
    return fault


def value(name, wrong, number=0):
    return changed('attributes', name, wrong, number)


def members(name, wrong, number=0):
    return changed('relationships', name, wrong, number)


FAULTS = {
    'none': lambda lines: None,
    'date': value('added', '2020-01-06T10:40:00.123457Z'),
    'external-file': value('cover', digest(EXTERNAL[:-1] + b'\0')),
    'transformable': value('extra', 'AP4='),
    'uuid': value('identifier', '00010203-0405-0607-0809-0A0B0C0D0E0E'),
    'binary': value('large', digest(b'x' * 64 + b'y')),
    'uri': value('link', 'https://a.example'),
    'integer-as-float': value('pages', 9007199254740992),
    'composite-element': value('place', {'room': 'north', 'shelf': 5}),
    'composite-lost': value('place', None),
    'decimal': value('price', '12.50000001'),
    'boolean-as-number': value('read', 1),
    'text-cut-at-nul': value('title', 'a "b"'),
    'integer': value('year', 2000),
    'last-bit-of-double': value('weight', 0.10000000000000002),
    'infinity': value('prize', None, 6),
    'empty-as-null': value('cover', None, 1),
    'null-as-false': value('read', False, 1),
    'attribute-lost': lambda lines: lines[0]['attributes'].pop('title'),
    'attribute-more': value('shown', None),
    'entity-of-to-one': members('author', 'Person/p2'),
    'key-of-to-one': members('next', 'Book/p1'),
    'to-one-lost': members('author', None),
    'to-one-of-null': members('book', 'Book/p1', 4),
    'pair-lost': members('tags', ['Tag/p2']),
    'pair-lost-at-the-other-end': members('books', ['Book/p1'], 8),
    'pair-more': members('tags', ['Tag/p2', 'Tag/p1'], 1),
    'pair-twice': members('tags', ['Tag/p2', 'Tag/p1', 'Tag/p1']),
    'pair-from-one-side': members('related', [], 1),
    'order-of-many-to-many': members('tags', ['Tag/p1', 'Tag/p2']),
    'order-of-to-many': members('chapters', ['Chapter/p1', 'Chapter/p2']),
    'order-without-inverse': members('notes', ['Tag/p1', 'Tag/p2']),
    'member-lost': members('chapters', ['Chapter/p2']),
    'relationship-lost': lambda lines: lines[0]['relationships'].pop('next'),
    'row-lost': lambda lines: lines.pop(4),
    'row-more': lambda lines: lines.append(line('Tag/p3', {}, {'books': []})),
    'row-twice': lambda lines: lines.append(copy.deepcopy(lines[3])),
    'entity-of-row': lambda lines: lines[6].update(line('Person/p2', {}, {'books': ['Book/p1']})),
}


def setup(folder):
    (folder / 'Toy.xcdatamodel').mkdir(parents=True)
    (folder / 'Toy.xcdatamodel/contents').write_text(CONTENTS)
    external = folder / '.toy_SUPPORT/_EXTERNAL_DATA'
    external.mkdir(parents=True)
    (external / FILE).write_bytes(EXTERNAL)
    tables, rows = SQL.split('-- rows')
    for name, script in (('toy', tables + rows), ('empty', tables)):
        connection = sqlite3.connect(folder / f'{name}.sqlite')
        connection.executescript(script)
        connection.commit()
        connection.close()


def main():
    if sys.argv[1] == 'setup':
        setup(Path(sys.argv[2]))
    elif sys.argv[1] == 'list':
        print('\n'.join(FAULTS))
    elif sys.argv[2] == 'dump':
        lines = [] if Path(sys.argv[3]).name == 'empty.sqlite' else copy.deepcopy(RIGHT)
        FAULTS[sys.argv[1]](lines)
        for one in lines:
            print(json.dumps(one))


main()
