#!/usr/bin/env python3
"""Two policies of LoopKit's carbohydrate store. What an app's policy reads from its own bundle comes from the command
line:

    loopkit_policies.py --provenance com.example.Loop
"""

import argparse
import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run

CREATE, UPDATE, DELETE = 0, 1, 2
arguments = argparse.Namespace(provenance="")


def value(source, name):
    """A value of the source, None where this version of its entity has no such property."""
    return source[name] if name in source else None


def keep_external_identifier(source, carbs):
    external = value(source, "externalID")
    if external is not None and carbs["syncIdentifier"] is None:
        carbs["syncIdentifier"] = external
        carbs["syncVersion"] = 1


class CachedCarbObjectv3EntityMigrationPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        carbs = manager.insert_standard_instance(source)
        if carbs["createdByCurrentApp"]:
            carbs["provenanceIdentifier"] = arguments.provenance
            if carbs["syncIdentifier"] is not None and (carbs["syncVersion"] or 0) > 1:
                carbs["operation"] = UPDATE
        keep_external_identifier(source, carbs)


class DeletedCarbObjectv3EntityMigrationPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        carbs = manager.insert_new_object("CachedCarbObject")
        carbs["createdByCurrentApp"] = False
        for name in ("startDate", "uuid", "syncIdentifier", "syncVersion"):
            if name in source:
                carbs[name] = source[name]
        carbs["operation"] = DELETE
        counter = value(source, "modificationCounter")
        if counter is not None:
            carbs["anchorKey"] = counter
        keep_external_identifier(source, carbs)
        manager.associate(source, carbs, mapping)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--provenance", required=True, help="bundle identifier of the app")
    arguments = parser.parse_args()
    run(CachedCarbObjectv3EntityMigrationPolicy, DeletedCarbObjectv3EntityMigrationPolicy)
