import Foundation
import SwiftData

enum SchemaV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Plant.self, Watering.self, Place.self, Tool.self] }
}

enum GardenPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] {
    [SchemaV1.self, SchemaV1_1.self, SchemaV1_2.self, SchemaV2.self]
  }
  static var stages: [MigrationStage] {
    [
      .lightweight(fromVersion: SchemaV1.self, toVersion: SchemaV1_1.self),
      .lightweight(fromVersion: SchemaV1_1.self, toVersion: SchemaV1_2.self), namesAndPlaces,
    ]
  }

  /// Names become unique, and each room becomes a place.
  static let namesAndPlaces = MigrationStage.custom(
    fromVersion: SchemaV1_2.self, toVersion: SchemaV2.self,
    willMigrate: { context in
      var first: [String: SchemaV1_2.Plant] = [:]
      for plant in try context.fetch(FetchDescriptor<SchemaV1_2.Plant>()) {
        guard let kept = first[plant.name] else {
          first[plant.name] = plant
          continue
        }
        kept.waterings += plant.waterings
        plant.waterings = []
        context.delete(plant)
      }
      try context.save()
    },
    didMigrate: { context in
      var places: [String: Place] = [:]
      for plant in try context.fetch(FetchDescriptor<Plant>()) {
        guard let room = plant.room else { continue }
        let place = places[room] ?? Place(name: room)
        places[room] = place
        plant.place = place
      }
      try context.save()
    })
}
