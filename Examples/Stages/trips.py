#!/usr/bin/env python3
from hopd_policy import CustomMigrationStage, run


class MergeTrips(CustomMigrationStage):
    """Before the hop: merge trips with the same name into the first, which gets all stops."""

    def will_migrate(self, stage, manager):
        first = manager.table("first")                      # on disk; did_migrate can read it too
        for trip in manager.each("Trip", "name != nil"):    # by primary key, a few hundred at a time
            key = first[trip["name"]]
            if key is None:
                first[trip["name"]] = trip.object_id.key
                continue
            kept = manager.fetch("Trip", "name == %@", trip["name"], limit=1)[0]
            for stop in trip["stops"]:
                stop["trip"] = kept
            manager.delete(trip)


class FillSlugs(CustomMigrationStage):
    """After the hop: set the slug of every trip with a name."""

    def did_migrate(self, stage, manager):
        for trip in manager.each("Trip", "name != nil"):
            trip["slug"] = "-".join(trip["name"].lower().split())


run(MergeTrips, FillSlugs)
