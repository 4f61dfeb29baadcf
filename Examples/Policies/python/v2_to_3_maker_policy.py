#!/usr/bin/env python3
"""V2to3MakerPolicy: the text Car.maker becomes a Maker that cars share. Cars of all subentities meet in one table of
makers."""

import os
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, run


class V2to3MakerPolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        super().create_destination_instances(source, mapping, manager)
        [car] = manager.destination_instances(mapping.name, source)
        name = source["maker"]
        if name is None:
            return
        makers = manager.table("makers")
        maker = makers[name]
        if maker is None:
            maker = manager.insert_new_object("Maker")
            maker["name"] = name
            makers[name] = maker
        maker.add([car], "cars")


if __name__ == "__main__":
    run(V2to3MakerPolicy)
