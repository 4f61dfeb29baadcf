import SwiftData
import SwiftUI

@main
struct GardenApp: App {
  let container: ModelContainer

  init() {
    do {
      container = try ModelContainer(
        for: Schema(versionedSchema: SchemaV2.self), migrationPlan: GardenPlan.self)
    } catch {
      fatalError("The garden cannot be opened: \(error)")
    }
  }

  var body: some Scene {
    WindowGroup { Text("Garden") }.modelContainer(container)
  }
}
