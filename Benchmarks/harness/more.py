"""The series beside the sizes: sources in WAL mode, external data, growth, a cold cache, and the programs that measure
what is not one migration of one store (many small stores, policies, an idle daemon)."""
import json
import os
import re
import shutil
import subprocess
import sys

from . import measuring, workload
from .competitors import Competitor

GROWTH = (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000)


def wal(bench, objects, rounds):
    """The same rows in rollback mode, in WAL mode with a clean end, and with a log that a killed app left."""
    plain = bench.workload.source(objects)
    sections = []
    for name, title, source in (
            ("wal-none", "rollback journal", plain),
            ("wal-clean", "WAL, closed", bench.workload.logged(plain, hot=False)),
            ("wal-hot", "WAL with a log that was not checkpointed", bench.workload.logged(plain, hot=True))):
        chosen = bench.pick("hopctl", "hand-fused-chunked")
        sections.append(bench.runner.section(name, f"Source: {title}", source, objects, chosen, "hand-fused-chunked",
                                             rounds))
        if source != plain:
            workload.remove(source)
    workload.remove(plain)
    return sections


def external(bench, objects, rounds):
    """Photos of more than a kilobyte in files beside the store: the same model but for one box that is ticked."""
    models = bench.folder / "External.xcdatamodeld"
    shutil.rmtree(models, ignore_errors=True)
    shutil.copytree(bench.workload.models, models)
    for contents in models.glob("*/contents"):
        text, count = re.subn(r'(<attribute name="photo"[^>]*?)/>', r'\1 allowsExternalBinaryDataStorage="YES"/>',
                              contents.read_text())
        assert count == 1, contents
        contents.write_text(text)
    source = bench.workload.source(objects, bench.folder / "external.sqlite", models, ("--external", "1024"))
    files = source.with_name(f".{source.stem}_SUPPORT") / "_EXTERNAL_DATA"

    def copied(from_, to):
        beside = to.with_name(f".{to.stem}_SUPPORT")
        script = 'cp -R "$1" "$2" && sync "$2"/_EXTERNAL_DATA/* && exec "${@:3}"'
        return ["bash", "-c", script, "copied", files.parent, beside, bench.sqlrun, from_, to,
                bench.scripts / "fused.txt",
                "--chunk", "10000", "--journal", "PERSIST"]

    def clone(from_, to):
        shutil.copyfile(from_, to)
        beside = to.with_name(f".{to.stem}_SUPPORT")
        shutil.copytree(files.parent, beside)

    competitors = [
        Competitor("hopctl", "hopctl, writing a copy with its files",
                   lambda from_, to: bench.workload.migration(from_, to, options=("--verify", "quick"), models=models)),
        Competitor("hopctl-replace", "hopctl, replacing the store (files stay where they are)",
                   lambda from_, to: bench.workload.replacement(to, ("--verify", "quick"), models=models),
                   prepare=clone),
        Competitor("hand-external", "by hand, fused, and cp of the files", copied)]
    section = bench.runner.section("external", "External data", source, objects, competitors, "hand-external", rounds)
    names = os.listdir(files)
    size = sum((files / name).stat().st_size for name in names)
    section.notes.append(f"{len(names):,} files of {size / 1e6:.1f} MB beside the store")
    workload.remove(source)
    shutil.rmtree(models)
    return [section]


def growth(bench, largest):
    """One run per size: what counts is that rows per second and the peak do not change with it."""
    sections = []
    for objects in [size for size in GROWTH if size <= largest]:
        source = bench.workload.source(objects)
        chosen = bench.pick("hopctl", "hand-fused-chunked")
        sections.append(bench.runner.section(
            "growth", "Growth", source, objects, chosen, "hand-fused-chunked", 3 if objects < 300_000 else 1,
            compares=False))
        workload.remove(source)
    return sections


def cold(bench, objects, rounds):
    """The source is on the disk and not in memory."""
    source = bench.workload.source(objects)
    chosen = bench.pick("hopctl", "hand", "hand-fused-chunked")
    section = bench.runner.section("cold", "Cold cache", source, objects, chosen, "hand", rounds,
                                   before=lambda path: measuring.cool(path, (bench.hopctl, bench.sqlrun)),
                                   compares=False)
    workload.remove(source)
    return [section]


class Outside:
    """A program of this folder that measures something of its own kind: its table as it prints it, and its figures."""

    def __init__(self, bench, name, words, program=None):
        self.name, self.figures, self.text, self.failure = name, None, "", None
        path = bench.sources / (program or name)
        if not path.exists():
            self.failure = f"no Benchmarks/{path.name} here"
            return
        known, file = path.read_text(), bench.folder / f"{name}.json"
        # A program writes its figures into a file, prints them, or has a table only.
        more = ["--json", file] if "--json FILE" in known else ["--json"] if re.search(
            r'add_argument\("--json"|--json\)', known) else []
        command = [str(word) for word in (path, *words, *more)]
        done = subprocess.run(command, capture_output=True, text=True, env=bench.runner.environment)
        self.text = done.stdout.strip()
        self.figures = _json(file.read_text()) if file.exists() else _json(self.text) or _rows(self.text)
        if more == ["--json"]:
            self.text = ""
        if done.returncode or not self.figures:
            self.failure = ((done.stderr.strip() or self.text)[-600:]
                            or f"ended with {done.returncode} and without figures")


def _json(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


def _rows(text):
    """A table of words with a headline, as dictionaries."""
    lines = [re.split(r"\s{2,}|\s*\|\s*", line.strip(" |")) for line in text.splitlines() if line.strip()]
    rows = [dict(zip(lines[0], cells)) for cells in lines[1:] if len(cells) == len(lines[0])] if lines else []
    return [{name: float(cell) if re.fullmatch(r"[0-9.]+", cell) else cell for name, cell in row.items()}
            for row in rows]


def start_up(bench, rounds=20):
    """How long `hopctl identify` takes from start to end, over a small store."""
    source = bench.workload.source(1000, bench.folder / "identify.sqlite")
    words = [bench.hopctl, "identify", source, "--models", bench.workload.models, "--json"]
    samples = [measuring.run(words) for _ in range(rounds)]
    workload.remove(source)
    return {"seconds": measuring.median(samples), "least": min(sample.wall for sample in samples),
            "peak": max(sample.peak for sample in samples)}
