#!/usr/bin/env python3
"""reachtoy - a program with hopctl's command line that behaves as the name of a model says: the controls of
tools/reach.

  reachtoy.py setup DIR               writes the models
  reachtoy.py create|migrate|verify … what tools/reach calls

Good and Copies complete everything. Refused refuses its second hop, Narrow where a number is above 1, Full where there
is a row, Required too but as Core Data does, Policy for want of a program. Crash dies of a signal, Internal ends with
70, Hang does not end, Mute prints no JSON, Empty reports success without a result: these are failures, and so is
Broken, whose result `verify` refuses. Odd has a version that makes `create` refuse the whole bundle, and one without
entities.
"""
import json
import os
import plistlib
import re
import signal
import sqlite3
import sys
import time
from pathlib import Path

NAMES = ('Good', 'Copies', 'Refused', 'Narrow', 'Full', 'Required', 'Policy', 'Odd', 'Crash', 'Internal', 'Hang',
         'Mute', 'Empty', 'Broken')
CONTENTS = '''<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0" userDefinedModelVersionIdentifier="">
    <entity name="Thing" syncable="YES"><attribute name="size" attributeType="Integer 64"/></entity>
</model>
'''


def setup(folder):
    for name in NAMES:
        bundle = folder / name / f'{name}.xcdatamodeld'
        for version in (name, f'{name} 2', f'{name} 10'):
            (bundle / f'{version}.xcdatamodel').mkdir(parents=True)
            (bundle / f'{version}.xcdatamodel/contents').write_text(CONTENTS)
        # A current version that the natural order would put elsewhere.
        current = f'{name} 2' if name == 'Copies' else f'{name} 10'
        (bundle / '.xccurrentversion').write_bytes(plistlib.dumps({'_XCCurrentVersionName': f'{current}.xcdatamodel'}))
    bare = folder / 'Odd/Odd.xcdatamodeld/Odd 3.xcdatamodel'
    bare.mkdir()
    (bare / 'contents').write_text(re.sub('<entity.*', '', CONTENTS))
    (folder / 'Policy/Policy 2 to 10.xcmappingmodel').mkdir()


def end(status, **found):
    print(json.dumps(found))
    sys.exit(status)


def refuse(code, message, **more):
    end(65, error={'code': code, 'message': message, 'hint': 'none', **more})


def create(store, option):
    bundle, version = Path(option['--models'][0]), option['--model-version'][0]
    if version == 'Odd 2' and bundle.suffix == '.xcdatamodeld':
        refuse('model-invalid', 'a version cannot be used')
    with sqlite3.connect(store) as c:
        c.execute('CREATE TABLE ZTHING (Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, ZSIZE INTEGER)')
        c.execute('CREATE TABLE VERSION (NAME)')
        c.execute('INSERT INTO VERSION VALUES (?)', (version,))
        c.executemany('INSERT INTO ZTHING VALUES (?, 1, ?)', [(n + 1, 1 << n) for n in range(int(option['--rows'][0]))])
    end(0, rows=option['--rows'][0])


def migrate(store, option):
    output, to = Path(option['--output'][0]), option['--to'][0]
    c = sqlite3.connect(store)
    version, = c.execute('SELECT NAME FROM VERSION').fetchone()
    rows, largest = c.execute('SELECT count(*), coalesce(max(ZSIZE), 0) FROM ZTHING').fetchone()
    c.close()
    last = to.endswith(' 10')
    kind = to.split()[0] if last else 'Good'
    hop = f'{version} → {to}'
    if kind == 'Refused':
        refuse('model-invalid', 'versions cannot be used', hop=hop, reasons=[
            {'code': 'not-inferable', 'message': f'“{version}” has 3 things too many', 'entity': 'Thing',
             'property': 'size', 'hint': 'none'}])
    if kind == 'Narrow' and largest > 1:
        refuse('not-inferable', f'{rows} rows do not fit', hop=hop, entity='Thing', property='size')
    if kind == 'Full' and rows:
        refuse('not-inferable', f'{rows} rows are in the way', hop=hop, entity='Thing')
    if kind == 'Required' and rows:
        refuse('missing-required-value', f'{rows} rows have no value for it (Core Data would fail with 1570)', hop=hop,
               entity='Thing', property='size')
    if kind == 'Policy':
        assert any('.xcmappingmodel' in m for m in option['--mappings'])
        refuse('policy-not-bound', 'no program stands in for the policy App.ThingPolicy', hop=hop)
    if kind == 'Crash':
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == 'Internal':
        end(70, error={'code': 'internal-error', 'message': 'a bug', 'hint': 'report it'})
    if kind == 'Hang':
        time.sleep(600)
    if kind == 'Mute':
        sys.exit(0)
    if kind != 'Empty':
        output.write_bytes(Path(store).read_bytes() + (b'broken' if kind == 'Broken' else b''))
    end(0, hops=[hop], result='migrated')


def verify(store, option):
    if Path(store).read_bytes().endswith(b'broken'):
        refuse('verification-failed', 'the store is broken')
    end(0, ok=True)


def main(words):
    if words[0] == 'setup':
        return setup(Path(words[1]))
    option, rest = {}, iter(words[2:])
    for word in rest:
        if word != '--json':
            option.setdefault(word, []).append(next(rest))
    {'create': create, 'migrate': migrate, 'verify': verify}[words[0]](words[1], option)


if __name__ == '__main__':
    main(sys.argv[1:])
