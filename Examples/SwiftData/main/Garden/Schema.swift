import Foundation
import SwiftData

/// Plants and waterings as they were before places.
enum SchemaV1: VersionedSchema {
  static let versionIdentifier = Schema.Version(1, 0, 0)
  static var models: [any PersistentModel.Type] { [Plant.self, Watering.self, Tool.self] }

  @Model
  final class Plant {
    @Attribute(originalName: "title") var name: String
    var planted: Date?
    var room: String?
    @Relationship(deleteRule: .cascade, inverse: \Watering.plant) var waterings: [Watering]

    init(name: String) {
      self.name = name
      waterings = []
    }
  }

  @Model
  final class Watering {
    var day: Date
    var liters: Double
    var plant: Plant?

    init(day: Date, liters: Double) {
      self.day = day
      self.liters = liters
    }
  }
}

enum SchemaV2: VersionedSchema {
  static let versionIdentifier = Schema.Version(2, 0, 0)
  static var models: [any PersistentModel.Type] { [Plant.self, Watering.self, Place.self, Tool.self] }
}

enum GardenPlan: SchemaMigrationPlan {
  static var schemas: [any VersionedSchema.Type] { [SchemaV1.self, SchemaV2.self] }
  static var stages: [MigrationStage] { [namesAndPlaces] }

  /// Names become unique, and each room becomes a place.
  static let namesAndPlaces = MigrationStage.custom(
    fromVersion: SchemaV1.self, toVersion: SchemaV2.self,
    willMigrate: { context in
      var first: [String: SchemaV1.Plant] = [:]
      for plant in try context.fetch(FetchDescriptor<SchemaV1.Plant>()) {
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
