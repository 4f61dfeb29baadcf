// A run that is held between its chunks or inside long statements, and then continues; or stops at once.

import Diagnostics
import Dispatch
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPlanning
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@testable import MigrationPipeline

@Suite struct HoldTests {
  private final class World {
    let folder: FilePath
    let store: FilePath
    var request: MigrationRequest

    init(copies: Bool) throws {
      folder = FilePath("/tmp/hopd-hold-\(UInt64.random(in: 0 ... .max))")
      store = folder.appending("a.sqlite")
      try FileManager.default.createDirectory(
        atPath: folder.appending("state").string, withIntermediateDirectories: true)
      let shapes = RandomShapes(seed: 7)
      let versions = [shapes.model("V1"), shapes.model("V2", modifier: "again")]
      let schema = StoreSchema(
        model: versions[0], frameworkVersion: 1344, naming: JoinTableNaming(shapes.namingEnds))
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)).make(at: store, rows: 400, seed: 7)
      request = MigrationRequest(
        location: CanonicalStoreLocation(unresolved: store),
        catalog: ModelCatalog(bundles: [
          ModelBundle(name: "Shape", path: "/Shape.xcdatamodeld", versions: versions, currentVersionName: "V2")
        ]), stateDirectory: folder.appending("state"), job: "ab12")
      request.engine.altering = copies ? .wherePossible : .never
      request.engine.chunkRowsMax = 20
    }

    deinit { try? FileManager.default.removeItem(atPath: folder.string) }
  }

  @Test(arguments: [false, true]) func aRunHaltsInItsMiddleAndGoesOn(_ copies: Bool) throws {
    let world = try World(copies: copies)
    let stop = StopSignal()
    let holder = Holder(stop)
    var (seen, beats, isHeld) = (0, 0, false)
    let report = try MigrationPipeline().run(world.request, stop: stop) { event in
      switch event {
      case .progress:
        seen += 1
        // From the third chunk on, or when the store is copied: held for two seconds, by another thread's clock.
        if seen == (copies ? 1 : 3) {
          isHeld = true
          holder.hold(for: 2)
        }
      case .alive where isHeld && stop.isPaused: beats += 1
      default: break
      }
    }
    #expect(report.result == .migrated && report.seconds > 1.9 && !report.wasResumed)
    // The watchdog is notified during the hold.
    #expect(beats >= 2)
    #expect(report.rows.values.reduce(0, +) > 0)
  }

  @Test func aStopEndsAHaltAtOnceAndTheNextRunGoesOn() throws {
    let world = try World(copies: false)
    let (parent, start) = (StopSignal(), ContinuousClock.now)
    let stop = StopSignal(parent: parent)
    let holder = Holder(parent)
    var seen = 0
    let error = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(world.request, stop: stop) { event in
        guard case .progress = event else { return }
        seen += 1
        if seen == 5 {
          stop.pause(true)
          holder.stop(after: 1)
        }
      }
    }
    #expect(error?.error.code == .interrupted)
    #expect(ContinuousClock.now - start < .seconds(5))
    #expect(try MigrationPipeline().run(world.request, stop: StopSignal()) { _ in }.wasResumed)
  }

  @Test func aReplacementThatHasBegunDoesNotHalt() throws {
    let world = try World(copies: false)
    let stop = StopSignal()
    let report = try MigrationPipeline().run(world.request, stop: stop) { event in
      if case .replacing = event { stop.pause(true) }
    }
    #expect(report.result == .migrated)
  }

  /// Another thread that ends a test's hold.
  private final class Holder: Sendable {
    private let signal: StopSignal

    init(_ signal: StopSignal) { self.signal = signal }

    func hold(for seconds: UInt32) {
      signal.pause(true)
      later(seconds) { $0.pause(false) }
    }

    func stop(after seconds: UInt32) { later(seconds) { $0.stop() } }

    private func later(_ seconds: UInt32, _ body: @escaping @Sendable (StopSignal) -> Void) {
      let signal = signal
      // A separate thread: held runs block those of the tasks.
      DispatchQueue(label: "hold").asyncAfter(deadline: .now() + .seconds(Int(seconds))) { body(signal) }
    }
  }
}
