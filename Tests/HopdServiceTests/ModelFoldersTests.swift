// Models that change on the disk while the daemon runs.

import Diagnostics
import Glibc
import ManagedObjectModel
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import Synchronization
import SystemPackage
import SystemdSupport
import Testing

@testable import HopdService

@Suite struct ModelFoldersTests {
  /// A daemon with a model of several versions; a store is current if its model is the catalog's last.
  private final class World: Sendable {
    let place: DaemonTests.Place
    /// Versions that the last look was given.
    let seen = Mutex<[String]>([])
    let inspections = Mutex(0)

    init() throws {
      place = try DaemonTests.Place()
      mkdir(place.root.appending("Zoo.xcdatamodeld").string, 0o755)
      try place.write(
        "hopd.toml",
        """
        [[watch]]
        name = "w"
        directory = "\(place.root.appending("stores"))"
        models = ["\(place.root.appending("Zoo.xcdatamodeld"))"]
        settle = "100ms"
        rescan = "1s"
        """)
      try version("Zoo", attributes: 1)
      try place.write("stores/a.sqlite", "x")
    }

    func contents(_ attributes: Int) -> String {
      """
      <?xml version="1.0" encoding="UTF-8" standalone="yes"?>
      <model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
        <entity name="Animal">\((0..<attributes).map {
          "<attribute name=\"name\($0)\" optional=\"YES\" attributeType=\"String\"/>" }.joined())</entity>
      </model>
      """
    }

    /// Writes a version as an app's build does: all of it, then the mark of the current one.
    func version(_ name: String, attributes: Int) throws {
      mkdir(place.root.appending("Zoo.xcdatamodeld/\(name).xcdatamodel").string, 0o755)
      try place.write("Zoo.xcdatamodeld/\(name).xcdatamodel/contents", contents(attributes))
      try place.write(
        "Zoo.xcdatamodeld/.xccurrentversion",
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <plist version="1.0"><dict><key>_XCCurrentVersionName</key><string>\(name).xcdatamodel</string></dict></plist>
        """)
    }

    var coordinator: DaemonCoordinator {
      get throws {
        try place.coordinator(
          FakeWork(onInspect: { [self] request in
            seen.withLock { $0 = request.catalog.versions.map(\.model.name) }
            inspections.withLock { $0 += 1 }
            return .failure(
              MigrationFailure(
                stage: .identify, error: HopdError(.notFound, "of no known version", at: Place(file: "x"))))
          }))
      }
    }
  }

  @Test func aNewVersionIsNoticedWithoutAReloadAndRefusedStoresAreTriedAgain() async throws {
    let world = try World()
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("refused") { world.seen.withLock { $0 } == ["Zoo"] }
      try world.version("Zoo 2", attributes: 2)
      try await eventually("looked at again") { world.seen.withLock { $0 } == ["Zoo", "Zoo 2"] }
      let entry = try #require(world.place.log.all(.modelsChanged).first)
      #expect(entry[.watch] == "w" && entry.text.contains("new: Zoo 2"))
      #expect(world.place.log.all(.modelsChanged).count == 1 && world.place.log.all(.configurationReloaded).isEmpty)
    }
  }

  @Test func halfABundleIsNotTakenAndABrokenOneIsReportedOnce() async throws {
    let world = try World()
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("looked at") { world.inspections.withLock { $0 } == 1 }
      // A slow writer: for a while only half of the file exists.
      let whole = world.contents(3)
      mkdir(world.place.root.appending("Zoo.xcdatamodeld/Zoo 3.xcdatamodel").string, 0o755)
      try world.place.write("Zoo.xcdatamodeld/Zoo 3.xcdatamodel/contents", String(whole.prefix(whole.count / 2)))
      try await eventually("told") { !world.place.log.all(.modelsRefused).isEmpty }
      let entry = try #require(world.place.log.all(.modelsRefused).first)
      #expect(entry[.watch] == "w" && entry.text.contains("the old ones remain in use"))
      // Rescans find it as it was, and say nothing more.
      try await Task.sleep(for: .milliseconds(2500))
      #expect(world.place.log.all(.modelsRefused).count == 1 && world.inspections.withLock { $0 } == 1)
      try world.place.write("Zoo.xcdatamodeld/Zoo 3.xcdatamodel/contents", whole)
      try await eventually("taken") { world.seen.withLock { $0 } == ["Zoo", "Zoo 3"] }
      #expect(world.place.log.all(.modelsChanged).count == 1)
    }
  }

  @Test func whatIsWrittenAgainAsItWasIsNoChange() async throws {
    let world = try World()
    try await DaemonTests().running(world.place, try world.coordinator) {
      try await eventually("looked at") { world.inspections.withLock { $0 } == 1 }
      try world.version("Zoo", attributes: 1)
      try await Task.sleep(for: .milliseconds(1500))
      #expect(world.inspections.withLock { $0 } == 1 && world.place.log.all(.modelsChanged).isEmpty)
    }
  }
}
