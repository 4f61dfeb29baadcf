import Foundation
import SwiftData

@Model
final class Plant {
  @Attribute(.unique, originalName: "title") var name: String
  var planted: Date?
  var light: Int = 3
  var room: String?
  var place: Place?
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

@Model
final class Place {
  @Attribute(.unique) var name: String
  @Relationship(inverse: \Plant.place) var plants: [Plant]

  init(name: String) {
    self.name = name
    plants = []
  }
}

@Model
final class Tool {
  var name: String

  init(name: String) { self.name = name }
}
