#!/usr/bin/env python3
from hopd_policy import CustomMigrationStage, run


class MergeTrips(CustomMigrationStage):
    """Before the hop: of the trips of one name the first stays, and gets the stops of the others."""

    def will_migrate(self, stage, manager):
        first = manager.table("first")                      # on hopd's disk, and there in did_migrate, too
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
    """After the hop: every trip with a name gets its slug."""

    def did_migrate(self, stage, manager):
        for trip in manager.each("Trip", "name != nil"):
            trip["slug"] = "-".join(trip["name"].lower().split())


run(MergeTrips, FillSlugs)
