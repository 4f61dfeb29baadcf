#!/usr/bin/env python3
"""PlacePolicy: reads what NSKeyedArchiver has written, and writes numbers and JSON."""

import json
import os
import plistlib
import sys

# Not needed where the module is installed (make install, or pip install ./python).
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../python"))

from hopd_policy import EntityMigrationPolicy, PolicyError, Transformable, run

DEPTH = 50


def unarchived(value):
    """What the keyed archive of a Transformable holds: texts, numbers, data, lists, sets and dictionaries of them."""
    if value is None:
        return None
    try:
        archive = plistlib.loads(value.value)
        objects = archive["$objects"]
        return _object(objects, archive["$top"]["root"], DEPTH)
    except (plistlib.InvalidFileException, KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        # The exception's own text could show what the archive holds.
        raise PolicyError(f"the archive cannot be read: {type(error).__name__}") from None


def _object(objects, reference, depth):
    if depth == 0:
        raise PolicyError(f"the archive is nested deeper than {DEPTH}")
    found = objects[reference.data]
    if found == "$null":
        return None
    if not isinstance(found, dict):
        return found
    name = objects[found["$class"].data]["$classname"]
    if name in ("NSDictionary", "NSMutableDictionary"):
        keys = [_object(objects, one, depth - 1) for one in found["NS.keys"]]
        return dict(zip(keys, [_object(objects, one, depth - 1) for one in found["NS.objects"]]))
    if name in ("NSArray", "NSMutableArray", "NSSet", "NSMutableSet"):
        return [_object(objects, one, depth - 1) for one in found["NS.objects"]]
    if name in ("NSString", "NSMutableString"):
        return found["NS.string"]
    if name in ("NSData", "NSMutableData"):
        return found["NS.data"]
    raise PolicyError(f"the archive holds an object of the class {name}")


class PlacePolicy(EntityMigrationPolicy):
    def create_destination_instances(self, source, mapping, manager):
        place = manager.insert_standard_instance(source)
        coordinate = unarchived(source["coordinate"])
        if coordinate is not None:
            place["latitude"] = float(coordinate["latitude"])
            place["longitude"] = float(coordinate["longitude"])
        labels = unarchived(source["labels"])
        if labels is not None:
            text = json.dumps(labels, ensure_ascii=False, separators=(",", ":"))
            place["labels"] = Transformable(text.encode("utf-8"))


run(PlacePolicy)
