// The stages of trips.py in Swift.

import MigrationPolicy

/// Before the hop: merges trips with the same name into the first, which gets all stops.
final class MergeTrips: CustomMigrationStage {
  override func willMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    let first = manager.table("first")  // on disk; didMigrate can read it too
    try manager.forEach("Trip", where: "name != nil") { trip in
      let name = try trip.value(forKey: "name")
      if try first.value(for: name).isNull {
        try first.setValue(.integer(trip.objectID.key), for: name)
        return
      }
      let kept = try manager.fetch("Trip", where: "name == %@", name, limit: 1)[0]
      for stop in try trip.objects(forKey: "stops") { try stop.setValue(kept, forKey: "trip") }
      try manager.delete(trip)
    }
  }
}

/// After the hop: sets the slug of every trip with a name.
final class FillSlugs: CustomMigrationStage {
  override func didMigrate(_ stage: StageDescription, manager: MigrationManager) throws {
    try manager.forEach("Trip", where: "name != nil") { trip in
      let words = try (trip.string(forKey: "name") ?? "").lowercased().split(separator: " ")
      try trip.setValue(.string(words.joined(separator: "-")), forKey: "slug")
    }
  }
}

PolicyProgram.run(stages: ["MergeTrips": MergeTrips.self, "FillSlugs": FillSlugs.self])
