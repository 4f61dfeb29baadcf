"""The stores that tools/soak works on, and what each must be before and after: made once, by hopctl create and plain
SQLite.

A fixture is a folder that crashtest.py and powercut.py copy to $ROOT: stores/a.sqlite, state/, models/ and the template
of a configuration that hopctl and hopd both read. Beside it lies what tools/store-whole compares with.

journal  rollback | wal (the last rows are only in a -wal that no checkpoint has folded in)
data     plain | files (external storage: values in files beside the store, one column of which becomes plain again)
path     hops     three hops that write all rows, a checkpoint every few rows
         altered  three hops that only add columns: a copy of the store is altered, and altered again
         tables   three hops that add an entity, drop a column and rename an entity: a copy, some tables of which stay,
                  some get other numbers and columns, and some are written
         mapped   three hops, the middle one by a mapping model
         added    no hop: hopctl import --into adds the rows of CSV files, with values in files if the store has some
         lacking  no hop: hopctl migrate --repair makes a table, an index and a column that the store lacks
         behind   the same, and then the hops of tables
"""
import base64, hashlib, json, os, re, shutil, sqlite3, subprocess

JOURNALS = ('rollback', 'wal')
DATA = ('plain', 'files')
PATHS = ('hops', 'altered', 'tables', 'mapped')
MODES = ('rename', 'in-place')
ADDED = 'added'         # of hopctl import alone
# Paths of hopctl migrate --repair alone, and how their stores lose objects.
REPAIRED = {
    'lacking': "DROP TABLE ZTAG; DELETE FROM Z_2TAGS; DROP INDEX ZPLANT_ZBED_INDEX; "
               "ALTER TABLE ZBED DROP COLUMN ZLABEL",
    'behind': "DROP TABLE ZCRATE; DELETE FROM Z_1PARTS; DROP INDEX ZPART_ZSHELF_INDEX; "
              "ALTER TABLE ZSHELF DROP COLUMN ZCODE",
}


def entity(name, *properties, was=''):
    return (f'<entity name="{name}" syncable="YES"' + (f' elementID="{was}"' if was else '') + '>' + ''.join(properties)
            + '</entity>')


def attribute(name, kind, default=None, files=False, was=''):
    rest = ' optional="YES"' if default is None else f' defaultValueString="{default}"'
    return (f'<attribute name="{name}" attributeType="{kind}"{rest}' + (' allowsExternalBinaryDataStorage="YES"'
                                                                        if files else '')
            + (f' elementID="{was}"' if was else '') + '/>')


def relation(name, to, inverse, many=False):
    return (f'<relationship name="{name}" optional="YES" '
            f'{"toMany=" + chr(34) + "YES" + chr(34) if many else "maxCount=" + chr(34) + "1" + chr(34)}'
            f' deletionRule="Nullify" destinationEntity="{to}" inverseName="{inverse}" inverseEntity="{to}"/>')


def vault():
    """Four versions that rearrange rows: renamed, added, dropped; files of external storage kept, and taken into their
    column."""
    def item(holder, *more):
        return entity('Item', attribute('title', 'String', ''), attribute('photo', 'Binary', files=True),
                      relation('holder', holder, 'items'), *more)
    holder = lambda name, **more: entity(name, attribute('label', 'String', ''),
                                         relation('items', 'Item', 'holder', many=True), **more)
    badge = entity('Badge', attribute('text', 'String'))
    thumb = lambda files: attribute('thumb', 'Binary', files=files)
    return [
        [holder('Folder'), item('Folder', attribute('note', 'String'), thumb(True), attribute('size', 'Integer 64'))],
        [holder('Folder'), item('Folder', attribute('remark', 'String', was='note'), thumb(True),
                                attribute('rating', 'Integer 16', 3))],
        [holder('Folder'), badge, item('Folder', attribute('remark', 'String', was='note'), thumb(False),
                                       attribute('rating', 'Integer 16', 3))],
        [holder('Box', was='Folder'), badge, item('Box', attribute('remark', 'String', was='note'), thumb(False),
                                                  attribute('rating', 'Integer 16', 3))],
    ]


def album(files):
    """Four versions to which only columns come."""
    picture = [attribute('caption', 'String'), attribute('image', 'Binary', files=files)]
    frame = [attribute('width', 'Integer 32', 0)]
    more = [(picture, attribute('stars', 'Integer 16', 2)), (picture, attribute('place', 'String')),
            (frame, attribute('colour', 'String', 'black'))]
    versions = [[entity('Frame', *frame), entity('Picture', *picture)]]
    for where, what in more:
        where.append(what)
        versions.append([entity('Frame', *frame), entity('Picture', *picture)])
    return versions


def depot(files):
    """Four versions of which each changes few tables: an entity in the middle of the alphabet, which moves the numbers
    of those behind it; columns more and one less; an entity with another name."""
    def versions(shelf, *more, part=(), shelves=(), was=''):
        crate = entity('Crate', attribute('label', 'String', ''), relation('parts', 'Part', 'crates', many=True))
        return [crate, *more,
                entity('Part', attribute('name', 'String', ''), attribute('photo', 'Binary', files=files),
                       relation('crates', 'Crate', 'parts', many=True), relation('shelf', shelf, 'parts'), *part),
                entity(shelf, attribute('code', 'Integer 32', 7), relation('parts', 'Part', 'shelf', many=True),
                       *shelves, was=was)]
    invoice, weight = entity('Invoice', attribute('total', 'Double', 0)), attribute('weight', 'Double', 1)
    colour, remark = attribute('colour', 'String'), attribute('remark', 'String')
    return [versions('Shelf', shelves=[remark]), versions('Shelf', invoice, part=[weight], shelves=[remark]),
            versions('Shelf', invoice, part=[weight, colour]),
            versions('Stand', invoice, part=[weight, colour], was='Shelf')]


def ledger(files):
    """Four versions of one entity that loses a column in each hop, so that each hop writes all rows; and a value that
    leaves its file."""
    def version(*lost, thumb):
        rest = [attribute(name, 'String') for name in ('first', 'second', 'third') if name not in lost]
        return [entity('Entry', attribute('name', 'String', ''), attribute('photo', 'Binary', files=files),
                       attribute('thumb', 'Binary', files=thumb), relation('parent', 'Entry', 'children'),
                       relation('children', 'Entry', 'parent', many=True), *rest)]
    return [version(thumb=files), version('first', thumb=files), version('first', 'second', thumb=False),
            version('first', 'second', 'third', thumb=False)]


def nursery(files):
    """One version, to which an import adds objects, to-ones and pairs, and of which a store lacks objects."""
    return [[
        entity('Bed', attribute('label', 'String', ''), relation('plants', 'Plant', 'bed', many=True)),
        entity('Plant', attribute('name', 'String', ''), attribute('height', 'Double'),
               attribute('photo', 'Binary', files=files), relation('bed', 'Bed', 'plants'),
               relation('tags', 'Tag', 'plants', many=True)),
        entity('Tag', attribute('text', 'String', ''), relation('plants', 'Plant', 'tags', many=True))]]


IMPORT = """
[[import]]
entity = "Plant"
from = "plants.csv"
key = "name"
[import.columns]
name = "name"
height = "height"
photo = "photo"
[import.relationships]
bed = "bed"
tags = { column = "tags", separator = ";" }
[[import]]
entity = "Bed"
from = "plants.csv"
distinct_by = "bed"
[import.columns]
label = "bed"
[[import]]
entity = "Tag"
from = "tags.csv"
key = "text"
[import.columns]
text = "text"
"""


def write_rows(to, files):
    """The files of an import; two of the photos are too large for a column."""
    os.mkdir(to)
    photo = lambda n: base64.b64encode(bytes([n]) * (150_000 if files and n < 2 else 20)).decode()
    with open(f'{to}/plants.csv', 'w') as f:
        f.write('name,height,photo,bed,tags\n')
        f.writelines(f'plant {n},{n}.5,{photo(n)},bed {n % 4},red;tall\n' for n in range(60))
    with open(f'{to}/tags.csv', 'w') as f:
        f.write('text\nred\ntall\n')
    with open(f'{to}/import.hopimport.toml', 'w') as f:
        f.write(IMPORT)


def write_model(to, name, versions):
    bundle = f'{to}/{name}.xcdatamodeld'
    names = [name] + [f'{name} {n}' for n in range(2, len(versions) + 1)]
    for n, entities in zip(names, versions):
        os.makedirs(f'{bundle}/{n}.xcdatamodel')
        with open(f'{bundle}/{n}.xcdatamodel/contents', 'w') as f:
            f.write('<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n<model '
                    'type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0"'
                    ' minimumToolsVersion="Automatic" sourceLanguage="Swift" userDefinedModelVersionIdentifier="">'
                    + ''.join(entities) + '</model>\n')
    with open(f'{bundle}/.xccurrentversion', 'w') as f:
        f.write('<?xml version="1.0" encoding="UTF-8"?>\n<plist version="1.0"><dict><key>_XCCurrentVersionName</key>'
                f'<string>{names[-1]}.xcdatamodel</string></dict></plist>\n')


CONFIGURATION = '''# What both programs are told; @ROOT@ is replaced for each run.
[daemon]
log_level = "debug"
jobs = 1
memory_limit = "1MiB"

[[watch]]
name = "soak"
directory = "@ROOT@/stores"
models = ["@ROOT@/models"]
settle = "1ms"
rescan = "1s"

[watch.migration]
chunk_rows_max = 11
{replace}retry = {{ attempts = 1, backoff = "1s", max = "1s" }}
'''


class Unusable(Exception):
    """The fixture cannot be made; nothing is proved."""


def say(*command, **more):
    p = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **more)
    if p.returncode:
        raise Unusable(f"{' '.join(command)}: exit {p.returncode}\n{p.stdout.decode(errors='replace')[-1500:]}")
    return p.stdout.decode(errors='replace')


def content(store):
    return say('sh', '-c', 'sqlite3 -batch -noheader "$1" ".timeout 5000" "PRAGMA integrity_check" .dump 2>&1 | '
                           'sha256sum | cut -d" " -f1', 'sh', store).strip()


class Fixture:
    """One store with its models; `folder` is copied to $ROOT, `expected` is for store-whole."""

    def __init__(self, out, examples, journal, data, path, mode, rows, seed):
        self.name = '-'.join((journal, data, path, mode))
        self.folder, self.expected = f'{out}/fixtures/{self.name}', f'{out}/expected/{self.name}'
        self.examples, self.journal, self.data, self.path, self.mode, self.rows, self.seed = (
            examples, journal, data, path, mode, rows, seed)

    # Further stores of the same models, for a program that migrates all of a folder; before a.sqlite in its order.
    OTHERS = ('0', '1')

    # What a worker does to its copy before anything else.
    SETUP = 'sed "s#@ROOT@#$ROOT#g" "$ROOT/hopd.toml.in" >"$ROOT/hopd.toml"'

    def make(self):
        for d in (self.folder, self.expected):
            shutil.rmtree(d, ignore_errors=True)
            os.makedirs(d)
        for d in ('stores', 'state', 'models'):
            os.mkdir(f'{self.folder}/{d}')
        model = self.models()
        store = f'{self.folder}/stores/a.sqlite'
        say('hopctl', 'create', store, '--models', f'{self.folder}/models', '--model-version', model, '--rows',
            str(self.rows), '--seed', str(self.seed))
        if self.path in REPAIRED:
            db = sqlite3.connect(store)
            db.executescript(REPAIRED[self.path])
            db.close()
        with open(f'{self.folder}/hopd.toml.in', 'w') as f:
            f.write(CONFIGURATION.format(replace='replace = "in-place"\n' if self.mode == 'in-place' else ''))
        self.keep_log(store)
        self.expect()
        if (self.data, self.path) == ('plain', 'hops'):
            self.make_others(model)
        return self

    def addition(self, root):
        """The command of an import into the store."""
        more = ' --replace in-place' if self.mode == 'in-place' else ''
        return (f'hopctl import "{root}/data" --models "{root}/models" --into "{root}/stores/a.sqlite" '
                f'--state-directory "{root}/state" --no-progress{more}')

    def make_others(self, model):
        """Makes the further stores, with other rows, and what each must be: migrated alone, by a process of its own."""
        os.mkdir(f'{self.folder}/others')
        for number, name in enumerate(self.OTHERS, 1):
            other = Fixture.__new__(Fixture)
            other.__dict__ = {**self.__dict__, 'folder': f'{self.expected}/{name}.alone',
                              'expected': f'{self.expected}/{name}'}
            os.mkdir(other.expected)
            shutil.copytree(self.folder, other.folder, ignore=shutil.ignore_patterns('a.sqlite*', 'others'))
            store = f'{other.folder}/stores/a.sqlite'
            say('hopctl', 'create', store, '--models', f'{self.folder}/models', '--model-version', model, '--rows',
                str(self.rows + 7 * number), '--seed', str(self.seed + number))
            other.keep_log(store)
            # Copied together: SQLite takes the name of a log from that of its database.
            for side in ('', '-wal'):
                if os.path.exists(store + side):
                    shutil.copyfile(store + side, f'{self.folder}/others/{name}.sqlite{side}')
            other.expect()
            shutil.rmtree(other.folder)

    def migrate(self, root, *options):
        """What an undisturbed migration prints."""
        repair = ['--repair'] if self.path in REPAIRED else []
        return say('hopctl', 'migrate', f'{root}/stores/a.sqlite', '--config', f'{root}/hopd.toml',
                   '--state-directory', f'{root}/state', *repair, *options)

    def require_way(self, root):
        """Hops alter files, or write all rows, where the path says so."""
        if self.path in REPAIRED:
            made = {o['kind'] for o in json.loads(self.migrate(root, '--dry-run', '--json'))['repaired']}
            if made != {'table', 'index', 'column'}:
                raise Unusable(f'{self.name}: repairs {made}')
            return
        told = json.loads(say('hopctl', 'plan', f'{root}/stores/a.sqlite', '--config', f'{root}/hopd.toml', '--json'))
        hops = told['execution']
        writes = [h for h in hops if h['action'] == 'write']
        tables = {t['action'] for h in hops for t in h.get('tables', [])}
        is_right = {'hops': len(writes) == len(hops), 'mapped': bool(writes), 'altered': not writes,
                    'tables': not writes and {'kept', 'altered', 'written'} <= tables}
        if not is_right[self.path]:
            raise Unusable(f"{self.name}: {[(h['action'], h['reason']) for h in hops]}")

    def models(self):
        """Writes the models; the name of the first version."""
        to = f'{self.folder}/models'
        if self.path in (ADDED, 'lacking'):
            if self.path == ADDED:
                write_rows(f'{self.folder}/data', self.data == 'files')
            write_model(to, 'Nursery', nursery(self.data == 'files'))
            return 'Nursery'
        if self.path in ('tables', 'behind'):
            write_model(to, 'Depot', depot(self.data == 'files'))
            return 'Depot'
        if self.path == 'hops':
            write_model(to, 'Ledger', ledger(self.data == 'files'))
            return 'Ledger'
        if self.path == 'altered':
            write_model(to, 'Album', album(self.data == 'files'))
            return 'Album'
        if self.data == 'files':
            name = 'Vault'
            write_model(to, name, vault())
        else:
            name = 'Library'
            shutil.copytree(f'{self.examples}/Library/Library.xcdatamodeld', f'{to}/Library.xcdatamodeld')
        if self.path == 'mapped':
            say('hopctl', 'mapping', 'infer', f'{to}/{name}.xcdatamodeld', f'{name} 2', f'{name} 3', '--output',
                f'{to}/middle.hopmap.toml')
        return name

    def keep_log(self, store):
        """Sets the journal mode; in WAL mode the last rows are only in the log, as a writer that was killed leaves
        it."""
        db = sqlite3.connect(store, isolation_level=None)
        if self.journal == 'rollback':
            db.execute('PRAGMA journal_mode=DELETE')
            db.close()
            return
        db.execute('PRAGMA journal_mode=WAL')
        db.execute('PRAGMA wal_checkpoint(TRUNCATE)')
        db.execute('PRAGMA wal_autocheckpoint=0')
        table, column = {'Album': ('ZPICTURE', 'ZCAPTION'), 'Depot': ('ZPART', 'ZNAME'),
                         'Ledger': ('ZENTRY', 'ZNAME'), 'Nursery': ('ZPLANT', 'ZNAME'), 'Vault': ('ZITEM', 'ZTITLE'),
                         'Library': ('ZBOOK', 'ZTITLE')}[
            re.search(r'(\w+)\.xcdatamodeld', ' '.join(os.listdir(f'{self.folder}/models'))).group(1)]
        db.execute(f"UPDATE {table} SET {column} = 'title ' || Z_PK")
        for side in ('', '-wal'):
            shutil.copyfile(store + side, store + side + '.copy')
        db.close()
        for side in ('', '-wal'):
            os.replace(store + side + '.copy', store + side)
        if os.path.getsize(store + '-wal') == 0:
            raise Unusable('the WAL fixture has no log')

    def expect(self):
        """What the store holds before, and after an undisturbed migration or import on a copy."""
        names = self.write_files(self.folder, 'files')
        if bool(names) != (self.data == 'files'):
            raise Unusable(f'{self.name}: {len(names)} files of external storage')
        copy = f'{self.expected}/copy'
        facts = {}
        for when in ('old', 'new'):
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(self.folder, copy)
            if when == 'new' and self.path == ADDED:
                say('sh', '-c', self.addition(copy))
                self.write_files(copy, 'newfiles')
            elif when == 'new':
                say('sh', '-c', self.SETUP, env={**os.environ, 'ROOT': copy})
                self.require_way(copy)
                told = self.migrate(copy, '--json')
                self.told = told[told.find('{"'):]
                if self.path in REPAIRED:
                    say('hopctl', 'verify', f'{copy}/stores/a.sqlite', '--config', f'{copy}/hopd.toml', '--verify',
                        'full')
            facts[when] = content(f'{copy}/stores/a.sqlite')
        shutil.rmtree(copy)
        if facts['old'] == facts['new']:
            raise Unusable(f'{self.name}: the migration changes nothing')
        facts['journal'] = 'wal' if self.journal == 'wal' else 'delete'
        for k, v in facts.items():
            with open(f'{self.expected}/{k}', 'w') as f:
                f.write(v + '\n')

    def write_files(self, folder, name):
        """Writes the digests of the store's files of external storage; their names."""
        x = f'{folder}/stores/.a_SUPPORT/_EXTERNAL_DATA'
        names = sorted(os.listdir(x)) if os.path.isdir(x) else []
        with open(f'{self.expected}/{name}', 'w') as f:
            for n in names:
                f.write(f"{hashlib.sha256(open(f'{x}/{n}', 'rb').read()).hexdigest()}  {n}\n")
        return names
