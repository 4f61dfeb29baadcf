#!/usr/bin/env python3
"""EntryPolicy: a photo becomes a file in a folder, and the entry keeps its name; a thumbnail becomes an object.

    policy.py FOLDER
"""

import hashlib
import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, PolicyError, run

KINDS = ((b"\xff\xd8\xff", ".jpg"), (b"\x89PNG", ".png"))


def kept(data, folder):
    """Writes a file once, complete or not at all, and gives its name, which its content decides.

    A migration that fails, is interrupted or is done again leaves the same files, and never a wrong one.
    """
    kind = next((end for begin, end in KINDS if data.startswith(begin)), ".bin")
    name = hashlib.sha256(data).hexdigest()[:16] + kind
    path = os.path.join(folder, name)
    if not os.path.exists(path):
        with open(path + ".new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(path + ".new", path)
    return name


class EntryPolicy(EntityMigrationPolicy):
    def begin(self, mapping, manager):
        self.folder = sys.argv[1] if len(sys.argv) > 1 else ""
        if not os.path.isabs(self.folder) or not os.path.isdir(self.folder):
            raise PolicyError("the policy needs a folder: EntryPolicy=\"policy.py /srv/diary/photos\"")

    def create_destination_instances(self, source, mapping, manager):
        entry = manager.insert_standard_instance(source)
        if source["photo"]:
            entry["photoName"] = kept(source["photo"], self.folder)
        if source["thumbnail"]:
            preview = manager.insert_new_object("Preview")
            preview["data"] = source["thumbnail"]
            entry["preview"] = preview

    def end(self, mapping, manager):
        # The names of the files last as long as the files.
        folder = os.open(self.folder, os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)


run(EntryPolicy)
