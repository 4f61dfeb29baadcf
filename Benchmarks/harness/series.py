"""The runs: competitors take turns over one source, and what each leaves is compared with what the first left."""
import dataclasses
import os

from . import contents, measuring, workload
from .measuring import Failed


@dataclasses.dataclass
class Section:
    """A table of results. `base` is the competitor that the others are set against."""
    name: str
    title: str
    objects: int
    bytes: int
    base: str
    samples: dict = dataclasses.field(default_factory=dict)
    titles: dict = dataclasses.field(default_factory=dict)
    compared: dict = dataclasses.field(default_factory=dict)
    notes: list = dataclasses.field(default_factory=list)
    failures: list = dataclasses.field(default_factory=list)
    # Of the result that the others are compared with.
    indexes: int = 0
    files: dict = dataclasses.field(default_factory=dict, repr=False)


class Runner:
    """Runs sections in a folder and tells how it goes."""

    def __init__(self, folder, tell):
        self.folder, self.tell = folder, tell
        self.environment = dict(os.environ, TMPDIR=str(folder), SQLITE_TMPDIR=str(folder))

    def section(self, name, title, source, objects, competitors, base, rounds, before=None, compares=True):
        """A B C C B A …; the result of the first is kept and every other one's compared with it, once."""
        section = Section(name, title, objects, self._bytes(source), base)
        reference = self.folder / "reference.sqlite"
        for competitor in [one for one in competitors if one.limit < objects]:
            section.notes.append(f"{competitor.title}: left out above {competitor.limit:,} objects")
        taking_part = [one for one in competitors if one.limit >= objects]
        measuring.warm(source)
        for number in range(rounds):
            for competitor in self._turn(taking_part, number):
                destination = self.folder / f"{competitor.key}.sqlite"
                workload.remove(destination)
                try:
                    if competitor.prepare:
                        competitor.prepare(source, destination)
                    measuring.settle()
                    note = before(source) if before else None
                    sample = measuring.run(competitor.command(source, destination), self.environment)
                    if note and note not in section.notes:
                        section.notes.append(note)
                    section.samples.setdefault(competitor.key, []).append(sample)
                    section.titles[competitor.key] = competitor.title
                    self.tell(f"  {number + 1}/{rounds} {competitor.title}: {sample.wall:.3f} s")
                    if number == 0 and compares:
                        self._compare(section, competitor, destination, reference)
                except Failed as error:
                    self._fail(section, competitor, error)
                    taking_part.remove(competitor)
                finally:
                    workload.remove(destination)
        workload.remove(reference)
        return section

    @staticmethod
    def _turn(competitors, number):
        """The order of a round: there and back, so that not always the same one comes after the one that leaves most to
        be written and freed."""
        return list(competitors) if number % 2 == 0 else list(reversed(competitors))

    def _compare(self, section, competitor, destination, reference):
        if not reference.exists():
            os.replace(destination, reference)
            log = destination.with_name(destination.name + "-wal")
            if log.exists():
                os.replace(log, reference.with_name(reference.name + "-wal"))
            section.compared[competitor.key] = "what the others are compared with"
            section.indexes, section.files = contents.indexes(reference), contents.files(destination)
            return
        try:
            section.compared[competitor.key] = contents.compare(reference, destination, competitor.strict)
            if contents.files(destination) != section.files:
                raise contents.Differs("the files beside the store")
            found = contents.indexes(destination)
            if found != section.indexes:
                section.notes.append(f"{competitor.title} leaves {found} of {section.indexes} indexes")
        except contents.Differs as error:
            self._fail(section, competitor, f"other contents: {error}")
            section.compared[competitor.key] = "DIFFERS"

    def _fail(self, section, competitor, error):
        section.failures.append(f"{competitor.title}: {error}")
        section.titles[competitor.key] = competitor.title
        self.tell(f"  FAILED {competitor.title}: {error}")

    @staticmethod
    def _bytes(source):
        log = source.with_name(source.name + "-wal")
        return source.stat().st_size + (log.stat().st_size if log.exists() else 0)
