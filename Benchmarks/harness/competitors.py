"""Who takes part, and the command of each: hopctl in its ways, SQL written by hand, and the tools that people use
instead."""
import dataclasses
import os
import subprocess
import sys
import typing

from .workload import VERSIONS

PACKAGES = {"alembic": "1.20.1", "Django": "5.2.19", "sqlite-utils": "4.2.1"}
CHUNKED = ("--chunk", "10000", "--journal", "PERSIST")


@dataclasses.dataclass(frozen=True)
class Competitor:
    key: str
    title: str
    # The command that makes the second path of the first.
    command: typing.Callable
    # Does it leave Core Data's layout, so that all of the result is compared and not only the rows?
    strict: bool = True
    # Runs only over so many objects, unless told otherwise.
    limit: int = sys.maxsize
    # Prepares the destination, outside the time.
    prepare: typing.Callable = None


def hopctl_ways(workload):
    """hopctl as it comes, with full verification, and replacing the store instead of writing a copy."""
    def copy(*options):
        return lambda source, destination: workload.migration(source, destination, options=options)

    def clone(source, destination):
        subprocess.run(["cp", "--reflink=never", str(source), str(destination)], check=True)
        os.sync()

    quick = ("--verify", "quick")
    return [
        Competitor("hopctl", "hopctl", copy(*quick)),
        Competitor("hopctl-full", "hopctl --verify full", copy("--verify", "full")),
        Competitor("hopctl-replace", "hopctl, replacing the store",
                   lambda source, destination: workload.replacement(destination, quick),
                   prepare=clone)]


def by_hand(sqlrun, scripts):
    """SQL for every way to do the three hops, by somebody who needs no plan, no checks and no checkpoints."""
    def run(*names, options=()):
        return lambda source, destination: [sqlrun, source, destination, *[scripts / f"{name}.txt" for name in names],
                                            *options]

    hops, bare = ("hop1", "hop2", "hop3"), ("bare1", "bare2", "hop3")
    return [
        Competitor("hand", "by hand, three hops", run(*hops)),
        Competitor("hand-chunked", "by hand, three hops, chunks of 10,000", run(*hops, options=CHUNKED)),
        Competitor("hand-bare", "by hand, three hops, no indexes between", run(*bare)),
        Competitor("hand-fused", "by hand, fused", run("fused")),
        Competitor("hand-fused-chunked", "by hand, fused, chunks of 10,000", run("fused", options=CHUNKED)),
        Competitor("hand-grouped", "by hand, fused, customers by GROUP BY", run("grouped")),
        Competitor("hand-views", "by hand, nested views, chunks of 10,000", run("views", options=CHUNKED))]


def single_hop(workload, sqlrun, scripts, number):
    """One hop, hopctl beside the hand."""
    return [
        Competitor("hopctl", "hopctl", lambda source, destination: workload.migration(
            source, destination, VERSIONS[number], ("--verify", "quick"))),
        Competitor("hand", "by hand", lambda source, destination: [
            sqlrun, source, destination, scripts / f"hop{number}.txt"])]


class Peers:
    """The tools of others, in a virtual environment of their own; `missing` says why some cannot take part."""

    def __init__(self, sources, folder):
        self.sources, self.folder, self.missing = sources / "peers", folder / "venv", {}
        self.python = self.folder / "bin" / "python"

    def install(self):
        try:
            if not self.python.exists():
                self._try([sys.executable, "-m", "venv", self.folder])
        except (OSError, subprocess.SubprocessError) as error:
            self.missing = dict.fromkeys(PACKAGES, f"no virtual environment: {error}")
            return
        for name, version in PACKAGES.items():
            try:
                if not self._has(name, version):
                    self._try([self.python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                               "--retries", "1",
                               f"{name}=={version}"])
            except (OSError, subprocess.SubprocessError) as error:
                self.missing[name] = f"{version} cannot be installed: {str(error)[-300:]}"

    def _has(self, name, version):
        check = "import importlib.metadata as m, sys; sys.exit(m.version(sys.argv[1]) != sys.argv[2])"
        return subprocess.run([self.python, "-c", check, name, version], capture_output=True).returncode == 0

    def _try(self, command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600)
        if done.returncode:
            raise subprocess.SubprocessError(" ".join((done.stderr or done.stdout).split()))

    def competitors(self, scripts, limit, slow_limit):
        def run(script, *more):
            return lambda source, destination: [self.python, self.sources / script, source, destination, *more]

        plain = Competitor("python", "plain Python script", lambda source, destination: [
            sys.executable, self.sources / "plain_python.py", source, destination, scripts], limit=limit)
        others = [
            ("alembic", Competitor("alembic", f"Alembic {PACKAGES['alembic']} batch", run("alembic_batch.py"), False,
                                   limit)),
            ("sqlite-utils", Competitor("sqlite-utils", f"sqlite-utils {PACKAGES['sqlite-utils']}",
                                        run("sqlite_utils_transform.py"), False, limit)),
            ("Django", Competitor("django", f"Django {PACKAGES['Django']}", run("django_migrations.py"), False,
                                  slow_limit))]
        return [plain] + [competitor for name, competitor in others if name not in self.missing]
