"""Entity migration policies for hopd: Core Data's hooks in Python.

    from hopd_policy import EntityMigrationPolicy, run

    class BookToBookPolicy(EntityMigrationPolicy):
        def create_destination_instances(self, source, mapping, manager):
            book = manager.insert_standard_instance(source)
            book["title"] = source["title"].strip()

    run(BookToBookPolicy)

FUNCTION($entityPolicy, "authorOf:manager:", $source, $manager) calls a method that is written as `authorOf_manager`. It
returns a value, an object, or a list of objects. Every change that hooks and methods make is in the store, or an error
reports it.

See docs/POLICIES.md of hopd for the rest. The module needs only the standard library.
"""

from ._manager import MigrationManager
from ._objects import EntityMapping, ManagedObject, StageDescription
from ._policy import CustomMigrationStage, EntityMigrationPolicy, run
from ._tables import PolicyTable
from ._values import URI, Date, ObjectID, PolicyError, Transformable

__all__ = [
    "CustomMigrationStage",
    "Date",
    "EntityMapping",
    "EntityMigrationPolicy",
    "ManagedObject",
    "MigrationManager",
    "ObjectID",
    "PolicyError",
    "PolicyTable",
    "StageDescription",
    "Transformable",
    "URI",
    "run",
]
