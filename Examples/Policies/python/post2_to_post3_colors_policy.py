#!/usr/bin/env python3
"""Post2ToPost3MigrationPolicy: a post's hex colour becomes a Color of its own, with a fresh identifier."""

import os
import sys
import uuid

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class Post2ToPost3MigrationPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        post = manager.insert_standard_instance(source)
        color = manager.insert_new_object("Color")
        color["colorID"] = str(uuid.uuid4()).upper()
        color["hex"] = source["hexColor"]
        post["color"] = color


if __name__ == "__main__":
    run(Post2ToPost3MigrationPolicy)
