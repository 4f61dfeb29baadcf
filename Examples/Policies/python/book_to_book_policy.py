#!/usr/bin/env python3
"""MHWBookToBookPolicy, as Objective-C code of a well-known article on Core Data migrations has it, in Python for hopd.

It serves two hops and learns from the mapping's user info which one it is in: in the first, a book's author name
becomes an Author that books share; in the second, a book's file URL becomes a File that belongs to the book and to a
user.
"""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class MHWBookToBookPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        version = mapping.user_info.get("modelVersion")
        if version not in ("2", "3"):
            return super().create_destination_instances(source, mapping, manager)
        # The class made a new object. The standard one has the source's primary key, so that what an app kept of the
        # old book means the new one.
        book = manager.insert_standard_instance(source)
        for name in source.attribute_names:
            if name in book and source[name] is not None:
                book[name] = source[name]
        if version == "2":
            self.add_author(source["authorName"], book, manager)
        else:
            self.add_files(source, book, manager)

    def add_author(self, name, book, manager):
        if name is None:
            return
        authors = manager.table("authors")
        author = authors[name]
        if author is None:
            author = manager.insert_new_object("Author")
            author["name"] = name
            authors[name] = author
        author.add([book], "books")

    def add_files(self, source, book, manager):
        for source_user in source["users"]:
            file = manager.insert_new_object("File")
            file["fileURL"] = source["fileURL"]
            file["book"] = book
            users = manager.fetch("User", "userId == %@", source_user["userId"])
            file["user"] = users[-1] if users else None


if __name__ == "__main__":
    run(MHWBookToBookPolicy)
