"""SQL written by hand (`hand/*.sql`), made into scripts for `hand/sqlrun.c`: the layout around it is that of hopctl's
own stores."""
import subprocess

from .measuring import Failed
from .workload import VERSIONS


def build(sources, folder):
    """Compiles the runner."""
    program = folder / "sqlrun"
    done = subprocess.run(["cc", "-O2", "-o", program, sources / "hand" / "sqlrun.c", "-lsqlite3"], capture_output=True,
                          text=True)
    if done.returncode:
        raise Failed(f"the runner of hand-written SQL does not build (it needs cc and SQLite's header):\n{done.stderr}")
    return program


def write(sources, workload, folder):
    """Writes every script: hop1 … hop3, bare1 and bare2 (without the indexes of a store between), fused, views."""
    folder.mkdir(exist_ok=True)
    layouts = [workload.layout(version) for version in VERSIONS]
    for name, version in (("hop1", 1), ("hop2", 2), ("hop3", 3), ("fused", 3), ("views", 3)):
        statements = _statements((sources / "hand" / f"{name}.sql").read_text())
        (folder / f"{name}.txt").write_text(_script(layouts[version], statements))
        if name in ("hop1", "hop2"):
            (folder / name.replace("hop", "bare")).with_suffix(".txt").write_text(_script(layouts[version], statements,
                indexed=False))
    _group(folder)
    return folder


def _statements(text):
    """Directive and statement of each part of a file."""
    parts, directive, lines = [], None, []
    for line in [*text.splitlines(), "-- end"]:
        words = line.split()
        if line.startswith("-- ") and words[1] in ("by", "once", "index", "end") and len(words) <= 3:
            if directive:
                parts.append((directive, " ".join(" ".join(lines).split()).rstrip(";")))
            directive, lines = words[1:], []
        elif not line.startswith("--"):
            lines.append(line)
    return parts


def _script(layout, statements, indexed=True):
    lines = [f"T {sql}" for sql in layout.tables]
    lines += [f"T INSERT INTO Z_METADATA SELECT {layout.version}, Z_UUID, x'{layout.plist.hex()}' FROM src.Z_METADATA"]
    lines += [f"T INSERT INTO Z_MODELCACHE VALUES (x'{content.hex()}')" for content in layout.model or ()]
    indexes = dict(layout.indexes)
    for (word, *name), sql in statements:
        if word == "index":
            lines.append(f"I {indexes.pop(name[0])}")
        elif word == "by":
            lines.append(f"C {name[0]}|{sql}")
        else:
            lines.append(f"T {sql}")
    lines += [f"I {sql}" for sql in indexes.values()] if indexed else []
    lines += [f"T INSERT INTO Z_PRIMARYKEY SELECT {number}, '{entity}', {parent}, (SELECT coalesce(max(Z_PK), 0) FROM "
              f"main.Z{entity.upper()})"
              for number, entity, parent in layout.entities]
    return "\n".join(line.replace("\n", " ") for line in lines) + "\n"


def _group(folder):
    """The other way to make customers: all names at once, sorted, and the unique index behind them. It cannot be
    chunked."""
    lines = (folder / "fused.txt").read_text().splitlines()
    index = next(line for line in lines if "UNIQUE" in line)
    names = next(line for line in lines if "OR IGNORE" in line)
    at = lines.index(names)
    grouped = ("T INSERT INTO ZCUSTOMER (Z_ENT, Z_OPT, ZNAME) SELECT 2, 1, ZCUSTOMERNAME FROM src.ZORDER WHERE "
               "ZSTATUS <> 19"
               " GROUP BY ZCUSTOMERNAME")
    lines[at - 1:at + 1] = [grouped, index]
    (folder / "grouped.txt").write_text("\n".join(lines) + "\n")
