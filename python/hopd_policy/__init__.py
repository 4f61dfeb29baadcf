"""Entity migration policies for hopd: Core Data's hooks in Python.

    from hopd_policy import EntityMigrationPolicy, run

    class BookToBookPolicy(EntityMigrationPolicy):
        def create_destination_instances(self, source, mapping, manager):
            book = manager.insert_standard_instance(source)
            book["title"] = source["title"].strip()

    run(BookToBookPolicy)

Methods that FUNCTION($entityPolicy, "authorOf:manager:", $source, $manager) calls are written as `authorOf_manager`.
They give a value, an object, or a list of objects. What a policy does in hooks and methods is in the store or in an
error.

docs/POLICIES.md of hopd tells the rest. Nothing but the standard library is needed.
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
