#!/usr/bin/env python3
"""Post2ToPost3MigrationPolicy: a post's content becomes the first of its sections."""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class Post2ToPost3MigrationPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        post = manager.insert_standard_instance(source)
        content = source["content"]
        section = manager.insert_new_object("Section")
        section["body"] = content
        section["title"] = None if content is None else content[:4] + "..."
        section["index"] = 0
        section["post"] = post


if __name__ == "__main__":
    run(Post2ToPost3MigrationPolicy)
