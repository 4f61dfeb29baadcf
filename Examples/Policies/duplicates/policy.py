#!/usr/bin/env python3
"""PersonPolicy: persons of one e-mail address become one, and each gives what the others lack; the newest is right."""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


def is_newer(date, other):
    return date is not None and (other is None or other < date)


class PersonPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        email = (source["email"] or "").strip().casefold() or None
        people = manager.table("people")
        person = people[email] if email else None
        if person is None:
            person = manager.insert_standard_instance(source)
            person["email"] = email
            if email:
                people[email] = person
            return
        # What pointed to the duplicate now finds the one that stays.
        manager.associate(source, person)
        newer = is_newer(source["changed"], person["changed"])
        for name in ("name", "city"):
            if source[name] is not None and (newer or person[name] is None):
                person[name] = source[name]
        if newer:
            person["changed"] = source["changed"]


run(PersonPolicy)
