#!/usr/bin/env python3
"""NotePolicy: the words of a note's tagText become tags. A tag that is there, whatever its case, is used again."""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class NotePolicy(EntityMigrationPolicy):
    def begin(self, mapping, manager):
        tags = manager.table("tags")
        for tag in manager.each("Tag"):
            tags.setdefault(tag["name"].casefold(), tag)

    def create_destination_instances(self, source, mapping, manager):
        note = manager.insert_standard_instance(source)
        tags = manager.table("tags")
        found = []
        for word in (source["tagText"] or "").replace(",", " ").split():
            tag = tags[word.casefold()]
            if tag is None:
                tag = manager.insert_new_object("Tag")
                tag["name"] = word
                tags[word.casefold()] = tag
            found.append(tag)
        note["tags"] = found


run(NotePolicy)
