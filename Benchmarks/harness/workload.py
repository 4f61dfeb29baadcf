"""The workload: four versions of a model, its mapping models, source stores of any size, and the layout of each
version."""
import re
import shutil
import sqlite3
import subprocess
import sys

from .measuring import Failed, run

VERSIONS = ("Workload", "Workload 2", "Workload 3", "Workload 4")


class Workload:
    def __init__(self, sources, hopctl, folder):
        self.sources, self.hopctl, self.folder = sources, hopctl, folder
        self.models = sources / "Workload" / "Workload.xcdatamodeld"
        self.mappings = sources / "Workload" / "Mappings"
        (folder / "state").mkdir(parents=True, exist_ok=True)

    # What hopctl is asked

    def command(self, verb, store, *options, models=None):
        words = [self.hopctl, verb, store, "--models", models or self.models, *options]
        return words if verb == "create" else words + ["--mappings", self.mappings]

    def migration(self, source, destination, version=VERSIONS[-1], options=(), models=None):
        """The command that writes a migrated copy."""
        return self.command("migrate", source, "--to", version, "--output", destination, "--state-directory",
                            self.folder / "state", "--json", *options, models=models)

    def replacement(self, store, options=(), models=None):
        """The command that replaces the store."""
        return self.command("migrate", store, "--to", VERSIONS[-1], "--state-directory", self.folder / "state",
                            "--backup", "none",
                            "--json", *options, models=models)

    # Stores

    def empty(self, version, path, models=None):
        remove(path)
        run(self.command("create", path, "--model-version", version, "--quiet", models=models))
        return path

    def source(self, objects, path=None, models=None, options=()):
        """A store of the first version with so many objects, in rollback mode like every new copy."""
        path = path or self.folder / f"source-{objects}.sqlite"
        self.empty(VERSIONS[0], path, models)
        run([sys.executable, self.sources / "Workload" / "fill.py", path, "--objects", objects, *options])
        return path

    def advanced(self, source, version):
        """The store of a later version made from a source."""
        path = source.with_name(f"{source.stem}-{version[-1]}.sqlite")
        remove(path)
        run(self.migration(source, path, version))
        return path

    def layout(self, version):
        return Layout(self.empty(version, self.folder / "layout.sqlite"))

    def logged(self, source, hot):
        """A copy in WAL mode; `hot` leaves the newest changes of a tenth of the orders in the log, as a killed app
        does."""
        path = source.with_name(f"{source.stem}-{'hot' if hot else 'wal'}.sqlite")
        remove(path)
        shutil.copyfile(source, path)
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode = WAL")
        if not hot:
            db.close()
            return path
        db.execute("PRAGMA wal_autocheckpoint = 0")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("UPDATE ZORDER SET ZQUANTITY = ZQUANTITY + 1 WHERE Z_PK % 10 = 0")
        crashed = path.with_name(path.stem + "-crashed.sqlite")
        remove(crashed)
        for suffix in ("", "-wal"):
            shutil.copyfile(f"{path}{suffix}", f"{crashed}{suffix}")
        db.close()
        remove(path)
        return crashed


class Layout:
    """Tables, indexes and metadata of an empty store."""

    def __init__(self, path):
        db = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
        rows = db.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL "
                          "AND name NOT LIKE 'sqlite%'").fetchall()
        self.tables = [sql for kind, _, sql in rows if kind == "table"]
        self.indexes = {name: sql for kind, name, sql in rows if kind == "index"}
        self.entities = db.execute("SELECT Z_ENT, Z_NAME, Z_SUPER FROM Z_PRIMARYKEY ORDER BY Z_ENT").fetchall()
        self.version, self.plist = db.execute("SELECT Z_VERSION, Z_PLIST FROM Z_METADATA").fetchone()
        self.model = db.execute("SELECT Z_CONTENT FROM Z_MODELCACHE").fetchone()
        db.close()
        if len(self.tables) < 4 or not self.plist:
            raise Failed(f"{path} is no empty store")


def remove(path):
    """Removes a store and everything beside it."""
    for suffix in ("", "-wal", "-shm", "-journal", ".1", ".2"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    shutil.rmtree(path.with_name(f".{path.stem}_SUPPORT"), ignore_errors=True)
