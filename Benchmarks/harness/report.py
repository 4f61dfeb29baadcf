"""Results as tables for people, as Markdown, and as JSON."""
import dataclasses
import os
import platform
import sqlite3
import statistics
import subprocess

from . import measuring

STAGES = ("plan", "migrate", "verify", "replace")


def machine():
    """What the figures depend on."""
    with open("/proc/meminfo") as file:
        memory = int(file.readline().split()[1]) / 2**20
    return {"processors": len(os.sched_getaffinity(0)), "memoryGiB": round(memory, 1), "kernel": platform.release(),
            "sqlite": sqlite3.sqlite_version, "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)}


class Table:
    """Rows of text, printed with aligned columns or as Markdown."""

    def __init__(self, *columns):
        self.columns, self.rows = columns, []

    def add(self, *cells):
        self.rows.append([str(cell) for cell in cells])

    def lines(self, markdown):
        if markdown:
            rows = [self.columns, ["---"] * len(self.columns), *self.rows]
            return ["| " + " | ".join(row) + " |" for row in rows]
        widths = [max(len(row[index]) for row in [self.columns, *self.rows]) for index in range(len(self.columns))]
        return ["  ".join(cell.ljust(width) if index == 0 else cell.rjust(width)
                          for index, (cell, width) in enumerate(zip(row, widths))).rstrip()
                for row in [self.columns, *self.rows]]


def seconds(value):
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio(values):
    return f"{values[0]:.2f} [{values[1]:.2f}–{values[2]:.2f}]" if values else "-"


def section(one, markdown):
    """One table, and one about where hopctl's time goes."""
    base = one.samples.get(one.base, [])
    title = f"{one.title}: {one.objects:,} objects, {one.bytes / 1e6:.1f} MB"
    table = Table("", "seconds", f"× {one.titles.get(one.base, one.base)}" if base else "×", "migration alone",
                  "rows/s", "MB/s", "cpu s",
                  "peak MiB")
    for key, samples in one.samples.items():
        wall = measuring.median(samples)
        alone = ratio(measuring.ratios(samples, base, key=lambda sample: sample.work)) if samples[0].stages else ""
        table.add(one.titles[key], seconds(wall), ratio(measuring.ratios(samples, base)), alone,
                  f"{one.objects / wall:,.0f}",
                  f"{one.bytes / 1e6 / wall:.1f}", seconds(measuring.median(samples, lambda sample: sample.cpu)),
                  f"{max(sample.peak for sample in samples) / 2**20:.1f}")
    lines = [("### " if markdown else "") + title, "", *table.lines(markdown), ""]
    stages = stage_table(one)
    if stages.rows:
        lines += ["Where hopctl's time goes, in seconds:", "", *stages.lines(markdown), ""]
    lines += [f"Contents compared: {_compared(one)}.", ""] if one.compared else []
    for failure in one.failures:
        lines += [f"FAILED {failure}", ""]
    return lines + [line for note in one.notes for line in (note + ".", "")]


def stage_table(one):
    table = Table("", *STAGES, "the rest", "verify : migrate")
    for key, samples in one.samples.items():
        if not samples[0].stages:
            continue
        cells = [statistics.median(sample.stages.get(stage, 0) for sample in samples) for stage in STAGES]
        rest = statistics.median(sample.wall - sum(sample.stages.get(stage, 0) for stage in STAGES)
                                 for sample in samples)
        share = statistics.median(sample.stages.get("verify", 0) / (sample.stages.get("migrate") or 1)
                                  for sample in samples)
        table.add(one.titles[key], *map(seconds, cells), seconds(rest), f"{share:.2f}")
    return table


def _compared(one):
    """What the results have in common, and with how much of it."""
    same = [what for what in one.compared.values() if " rows of " in what]
    loose = [one.titles[key] for key, what in one.compared.items() if " rows of " in what and "layout" not in what]
    differing = [one.titles[key] for key, what in one.compared.items() if what == "DIFFERS"]
    if not same:
        return "DIFFER: " + "; ".join(differing) if differing else "there is only one result"
    rows = same[0].split(",")[0]
    strict = f"{len(same) - len(loose)} of {len(same)} results also in storage classes, layout and Z_PRIMARYKEY"
    words = f"{rows}, each value, as in the result of {one.titles[next(iter(one.compared))]}; {strict}"
    return words + (f" (not {'; '.join(loose)})" if loose else "") + (f"; DIFFER: {'; '.join(differing)}" if differing
                                                                      else "")


def growth(sections, markdown):
    table = Table("objects", "", "seconds", "rows/s", "MB/s", "cpu s", "peak MiB")
    for one in sections:
        for key, samples in one.samples.items():
            wall = measuring.median(samples)
            table.add(f"{one.objects:,}", one.titles[key], seconds(wall), f"{one.objects / wall:,.0f}",
                      f"{one.bytes / 1e6 / wall:.1f}",
                      seconds(measuring.median(samples, lambda sample: sample.cpu)),
                      f"{max(sample.peak for sample in samples) / 2**20:.1f}")
    failures = [line for one in sections for failure in one.failures for line in (f"FAILED {failure}", "")]
    return [("### " if markdown else "") + "Growth", "", *table.lines(markdown), "", *failures]


def outside(one, markdown):
    lines = [("### " if markdown else "") + f"Benchmarks/{one.name}", ""]
    if not one.text and isinstance(one.figures, list) and one.figures:
        table = Table(*one.figures[0])
        for row in one.figures:
            table.add(*row.values())
        lines += [*table.lines(markdown), ""]
    if one.text:
        lines += ["```", one.text, "```", ""] if markdown and not one.text.startswith("|") else [one.text, ""]
    return lines + ([f"FAILED {one.failure}", ""] if one.failure else [])


def targets(rows, markdown):
    table = Table("target", "wanted", "measured", "", "remark")
    for row in rows:
        table.add(row.what, row.wanted, row.measured, {True: "met", False: "MISSED", None: "-"}[row.met], row.remark)
    return [("### " if markdown else "") + "Targets", "", *table.lines(markdown), ""]


def everything(results, rows, markdown=False):
    """The whole report as lines."""
    about = results["machine"]
    lines = [f"{about['processors']} processors, {about['memoryGiB']} GiB, Linux {about['kernel']}, SQLite "
             f"{about['sqlite']} (the module of"
             f" Python {about['python']}), load {about['load']} at the start; {results['command']}", ""]
    for one in [*results["sizes"], *results.get("hops", []), *results.get("wal", []), *results.get("external", []),
                *results.get("cold", [])]:
        lines += section(one, markdown)
    if results.get("growth"):
        lines += growth(results["growth"], markdown)
    for one in results.get("outside", {}).values():
        lines += outside(one, markdown)
    lines += [f"NOT MEASURED {name}: {why}" for name, why in results.get("missing", {}).items()]
    return lines + ([""] if results.get("missing") else []) + targets(rows, markdown)


def plain(value):
    """Results as values that JSON knows."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if hasattr(value, "figures"):
        return {"figures": value.figures, "failure": value.failure}
    return value


def commit(folder):
    """What was measured."""
    done = subprocess.run(["git", "-C", folder, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return done.stdout.strip() or None
