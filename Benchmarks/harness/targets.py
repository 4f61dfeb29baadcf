"""What is wanted, beside what was measured. Nothing here is typed: a row without its figures says so."""
import dataclasses

from . import measuring


@dataclasses.dataclass
class Target:
    what: str
    wanted: str
    measured: str
    # None where it was not measured.
    met: bool | None
    remark: str = ""


def _work(sample):
    return sample.work


class Judge:
    """Looks the figures up that targets speak of."""

    def __init__(self, results):
        self.results, self.rows = results, []

    def section(self, *needed):
        """The largest of the size sections in which all of them took part, but not above a million objects if there is
        a smaller."""
        able = [section for section in self.results["sizes"] if all(key in section.samples for key in needed)]
        return max((one for one in able if one.objects <= 1_000_000), key=lambda one: one.objects,
                   default=able[0] if able else None)

    def at_most(self, what, bound, key, base, base_title):
        """Of hopctl's run only the migration, since the other side has neither plan nor verification; the whole is told
        beside it."""
        section = self.section(key, base)
        if not section:
            return self.missing(what, f"≤ {bound} ×")
        value, low, high = measuring.ratios(section.samples[key], section.samples[base], key=_work)
        whole = measuring.ratios(section.samples[key], section.samples[base])[0]
        self.rows.append(Target(what, f"≤ {bound} ×", f"{value:.2f} × [{low:.2f}–{high:.2f}]", value <= bound,
                                f"{section.objects:,} objects, against {base_title}; with plan and verification "
                                f"{whole:.2f} ×"))

    def faster(self, what, bound, peer, key, peer_title):
        section = self.section(key, peer)
        if not section:
            return self.missing(what, f"≥ {bound} × faster")
        value, low, high = measuring.ratios(section.samples[peer], section.samples[key])
        self.rows.append(Target(what, f"≥ {bound} × faster", f"{value:.1f} × [{low:.1f}–{high:.1f}]", value >= bound,
                                f"{section.objects:,} objects, whole runs, against {peer_title}"))

    def verification(self, what, bound, key):
        section = self.section(key)
        samples = [sample for sample in section.samples[key] if sample.stages.get("migrate")] if section else []
        if not samples:
            return self.missing(what, f"≤ {bound} ×")
        value, low, high = measuring.ratios(samples, samples, lambda one: one.stages["verify"],
                                            lambda one: one.stages["migrate"])
        self.rows.append(Target(what, f"≤ {bound} ×", f"{value:.2f} × [{low:.2f}–{high:.2f}]", value <= bound,
                                f"{section.objects:,} objects"))

    def memory(self, what, bound):
        sections = self.results["sizes"] + self.results.get("growth", [])
        peaks = [(max(sample.peak for sample in samples), section.objects) for section in sections
                 for key, samples in section.samples.items() if key.startswith("hopctl") and section.objects >= 10_000]
        if not peaks:
            return self.missing(what, f"≤ {bound} MiB")
        peak, objects = max(peaks)
        sizes = sorted({size for _, size in peaks})
        self.rows.append(Target(what, f"≤ {bound} MiB", f"{peak / 2**20:.1f} MiB at {objects:,}", peak <= bound * 2**20,
                                f"every run of {sizes[0]:,} to {sizes[-1]:,} objects"))

    def figure(self, what, bound, value, unit, remark="", least=False):
        wanted = f"{'≥' if least else '≤'} {bound:,} {unit}"
        if value is None:
            return self.missing(what, wanted)
        met = value >= bound if least else value <= bound
        self.rows.append(Target(what, wanted, f"{value:,.0f} {unit}" if value >= 1000 else f"{value:.3g} {unit}", met,
                                remark))

    def missing(self, what, wanted):
        self.rows.append(Target(what, wanted, "not measured", None))


def judge(results):
    """Every target, from the results of a run."""
    it = Judge(results)
    it.at_most("three hops, chunked, with checkpoints", 1.10, "hopctl", "hand-bare",
               "the same SQL by hand in one transaction per hop")
    it.at_most("three hops with bare stores between", 0.75, "hopctl", "hand", "three hops by hand with indexes")
    it.verification("quick verification on top", 0.25, "hopctl")
    it.memory("peak resident set of hopctl migrate", 64)
    it.faster("against Alembic batch", 1.3, "alembic", "hopctl", "Alembic batch")
    it.faster("against Django", 40, "django", "hopctl", "Django's migrations")
    small = _figures(results, "small-stores", dict)
    it.figure("many small stores, against the floor", 3, small.get("median", {}).get("ratio"), "×",
              f"{small['stores']:,} stores of {small['bytes']:,} bytes, {small['jobs']} jobs" if small else "")
    policies = _figures(results, "policies", list)
    for language in ("Swift", "Python"):
        rates = [row.get("instances/s") or row.get("instancesPerSecond") for row in policies
                 if language.lower()[:2] in _language(row)]
        it.figure(f"policies out of process, {language}", 30_000, min((rate for rate in rates if rate), default=None),
                  "instances/s",
                  "the slowest row", least=True)
    idle = _figures(results, "idle", list)
    few = [row["residentMiB"] for row in idle if row["stores"] <= 1000]
    many = [row for row in idle if row["stores"] >= 100_000]
    it.figure("hopd idle, resident", 16, max(few, default=None), "MiB", "up to 1,000 stores watched")
    it.figure("hopd with 100,000 stores watched, resident", 64, max((row["residentMiB"] for row in many), default=None),
              "MiB")
    it.figure("hopd with 100,000 stores watched, processor", 0.1, max((row["idleCpuPerMinute"] for row in many),
                                                                      default=None), "s per minute")
    start = results.get("start")
    it.figure("hopctl identify, from start to end", 15, start["seconds"] * 1000 if start else None, "ms",
              "median of 20 runs")
    return it.rows


def _figures(results, name, kind):
    """What a program of its own measured; nothing where it failed or was not run."""
    outside = results["outside"].get(name)
    figures = outside.figures if outside and not outside.failure else None
    return figures if isinstance(figures, kind) else kind()


def _language(row):
    """Words of a row of policies that name the language: `Python, default creation` or `values.py`."""
    name = str(row.get("language") or row.get("policy")).lower()
    return {"py" if "py" in name else "", "sw" if "swift" in name else ""}
