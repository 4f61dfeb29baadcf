"""Running one command and saying what it used; competitors take turns, so that a machine's mood meets all of them."""
import dataclasses
import json
import os
import statistics
import subprocess
import tempfile
import time


class Failed(Exception):
    """A command that ended otherwise than it had to."""


@dataclasses.dataclass
class Sample:
    """One run. `said` is the JSON object that the command printed, if it printed one."""
    wall: float
    cpu: float
    peak: int
    said: dict

    @property
    def stages(self):
        """Seconds of hopctl by stage; nothing for others."""
        return self.said.get("stages") or {}

    @property
    def work(self):
        """Seconds of the migration alone: without hopctl's plan (with its check of the source) and verification, which
        others do not have."""
        return self.wall - self.stages.get("plan", 0) - self.stages.get("verify", 0)


def run(command, environment=None, timeout=3600):
    """Runs a command to its end. Time is that of the whole process; memory is what it says itself, else what wait4
    says."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        start = time.monotonic()
        process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=output,
                                   stderr=errors,
                                   env=environment)
        timer = _Deadline(process, timeout)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        timer.cancel()
        output.seek(0)
        errors.seek(0)
        text = output.read().decode(errors="replace")
        if process.returncode != 0:
            tail = (text + errors.read().decode(errors="replace")).strip()[-1500:]
            raise Failed(f"{' '.join(map(str, command[:3]))} … ended with {process.returncode}:\n{tail}")
    said = _object(text)
    peak = said.get("peak") or said.get("peakMemory") or usage.ru_maxrss * 1024
    return Sample(wall, usage.ru_utime + usage.ru_stime, peak, said)


def _object(text):
    """The one JSON object in what a command printed: all of it, or its last line."""
    for candidate in (text, (text.strip().splitlines() or [""])[-1]):
        try:
            said = json.loads(candidate)
        except ValueError:
            continue
        if isinstance(said, dict):
            return said
    return {}


class _Deadline:
    def __init__(self, process, seconds):
        import threading
        self.timer = threading.Timer(seconds, process.kill)
        self.timer.daemon = True
        self.timer.start()

    def cancel(self):
        self.timer.cancel()


def median(samples, key=lambda sample: sample.wall):
    return statistics.median(key(sample) for sample in samples)


def ratios(samples, base, key=lambda sample: sample.wall, base_key=lambda sample: sample.wall):
    """Median, least and greatest ratio of the pairs of rounds; None where one side was not run."""
    pairs = [key(one) / base_key(other) for one, other in zip(samples, base) if base_key(other) > 0]
    return (statistics.median(pairs), min(pairs), max(pairs)) if pairs else None


def warm(path):
    """Reads a file once, so that the first to run does not read it from the disk for the others."""
    with open(path, "rb", buffering=0) as file:
        while file.read(1 << 24):
            pass


def settle():
    """What the last one wrote is not the next one's to wait for."""
    os.sync()


def cool(path, programs):
    """Puts a file out of the page cache and says how. Programs stay in: that they are loaded is not the question."""
    os.sync()
    try:
        with open("/proc/sys/vm/drop_caches", "w") as control:
            control.write("1\n")
        for program in programs:
            warm(program)
        return "all of the page cache dropped (/proc/sys/vm/drop_caches)"
    except OSError:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
        return "only the source put out of the page cache (posix_fadvise)"
