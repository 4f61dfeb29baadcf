"""A fleet of small stores for tests, and the judgement on what workers made of it."""

import json
import os
import pathlib
import shutil
import sqlite3
import subprocess
import uuid

TREE = pathlib.Path(__file__).resolve().parent.parent
MODEL = TREE / "Examples/Library/Library.xcdatamodeld"
VERSIONS = ["Library", "Library 2", "Library 3", "Library 4"]


class Failed(Exception):
    pass


def hopctl(program, *words, status=0):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True)
    if done.returncode != status:
        raise Failed(f"hopctl {words[0]}: status {done.returncode}, {done.stderr.strip()}")
    return done.stdout


def objects(program, store):
    lines = hopctl(program, "dump", store, "--models", MODEL).splitlines()
    return sorted(lines)


def make(program, folder, count, dice):
    """The fleet, and what a store of each version holds after a migration without kills."""
    seeds, wanted = {}, {}
    for version in VERSIONS:
        seed = folder / f"seed {version}.sqlite"
        hopctl(program, "create", seed, "--models", MODEL, "--model-version", version, "--rows", 60, "--seed", 11)
        copy = folder / f"wanted {version}.sqlite"
        shutil.copy(seed, copy)
        hopctl(program, "migrate", copy, "--models", MODEL, "--backup", "none", "-q")
        seeds[version], wanted[version] = seed, objects(program, copy)
    stores = {}
    for number in range(count):
        version = dice.choice(VERSIONS)
        store = folder / "fleet" / str(number % 17) / f"tenant {number}.sqlite"
        store.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(seeds[version], store)
        with sqlite3.connect(store) as connection:
            connection.execute("UPDATE Z_METADATA SET Z_UUID = ?", [str(uuid.UUID(int=dice.getrandbits(128))).upper()])
        connection.close()
        stores[store] = version
    return stores, wanted


def judge(program, folder, stores, wanted, shards):
    for store, version in stores.items():
        connection = sqlite3.connect(f"file:{store}?immutable=1", uri=True)
        answer = connection.execute("PRAGMA integrity_check").fetchone()[0]
        connection.close()
        if answer != "ok":
            raise Failed(f"{store}: {answer}")
        if objects(program, store) != wanted[version]:
            raise Failed(f"{store}: other objects than after a migration without kills")
        left = [name for name in os.listdir(store.parent)
                if store.name in name and any(word in name for word in ("staged", "intent", "-journal", "-wal"))]
        if left:
            raise Failed(f"{store}: left beside it: {left}")
    report = json.loads(hopctl(program, "fleet", "report", folder / "results", "--json"))
    behind = sum(version != VERSIONS[-1] for version in stores.values())
    if report["migratedTwice"] or report["failed"] or report["waiting"] or report["withoutResult"]:
        raise Failed(f"the report: {report}")
    if report["migrated"] + report["current"] != len(stores) or report["fleet"] != len(stores):
        raise Failed(f"the report does not add up: {report}")
    if report["migrated"] > behind or len(report["shards"]) != shards:
        raise Failed(f"the report: {report['migrated']} migrated of {behind}")
    return report
