import Foundation
import SwiftData

@Model
final class Plant {
  var title: String
  var planted: Date?
  var room: String?
  @Relationship(deleteRule: .cascade, inverse: \Watering.plant) var waterings: [Watering]

  init(title: String) {
    self.title = title
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
final class Tool {
  var name: String

  init(name: String) { self.name = name }
}
