#!/usr/bin/env python3
from hopd_policy import CustomMigrationStage, run


class WillMigrateToSchemaV2(CustomMigrationStage):
    """As willMigrate of the plan: plants of one name become one, which gets all waterings."""

    def will_migrate(self, stage, manager):
        first = manager.table("first")                      # on disk, however many plants there are
        for plant in manager.each("Plant"):
            key = first[plant["name"]]
            if key is None:
                first[plant["name"]] = plant.object_id.key
                continue
            kept = manager.fetch("Plant", "name == %@", plant["name"], limit=1)[0]
            for watering in plant["waterings"]:
                watering["plant"] = kept
            manager.delete(plant)


class DidMigrateToSchemaV2(CustomMigrationStage):
    """As didMigrate of the plan: each room becomes a place."""

    def did_migrate(self, stage, manager):
        for plant in manager.each("Plant", "room != nil"):
            places = manager.fetch("Place", "name == %@", plant["room"], limit=1)
            place = places[0] if places else manager.insert_new_object("Place")
            place["name"] = plant["room"]
            plant["place"] = place


run(WillMigrateToSchemaV2, DidMigrateToSchemaV2)
