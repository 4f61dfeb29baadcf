import SwiftData
import SwiftUI

@main
struct GardenApp: App {
  var body: some Scene {
    WindowGroup { Text("Garden") }.modelContainer(for: SchemaV1.models)
  }
}
