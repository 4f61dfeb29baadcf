import Foundation
import SwiftData

@Model
final class Plant {
  @Attribute(.unique, originalName: "title") var name: String
  var planted: Date?
  var light: Int
  var room: String?
  var place: Place?
  @Relationship(deleteRule: .cascade, inverse: \Watering.plant) var waterings: [Watering]

  init(name: String, light: Int) {
    self.name = name
    self.light = light
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
  @Relationship var plants: [Plant]

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
