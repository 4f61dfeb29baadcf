#!/usr/bin/env python3
from hopd_policy import EntityMigrationPolicy, run

class BookToBookPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        book = manager.insert_standard_instance(source)     # like super
        name = source["authorName"]
        if name is None:
            return
        authors = manager.table("authors")                  # kept until the hop ends
        author = authors[name]
        if author is None:
            author = manager.insert_new_object("Author")
            author["name"] = name
            authors[name] = author
        book["author"] = author                             # also updates Author.books

run(BookToBookPolicy)
