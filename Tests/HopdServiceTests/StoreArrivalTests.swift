// A store whose log has not arrived yet waits, and continues by itself when it has.

import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import PersistentStore
import SystemPackage
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct StoreArrivalTests {
  /// A store of one entity; `mode` is the journal mode in its header: 2 for a write-ahead log.
  private func store(_ place: DaemonTests.Place, mode: UInt8) throws -> StoreLocation {
    let model = ManagedObjectModel(
      name: "A",
      entities: [Entity(name: "Person", attributes: [Attribute(name: "name", type: .string, isOptional: true)])])
    let path = FilePath(place.store("a.sqlite"))
    let schema = StoreSchema(model: model, frameworkVersion: 1344, naming: JoinTableNaming([]))
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)).make(at: path, rows: 4, seed: 1)
    for suffix in ["-wal", "-shm"] { unlink(path.string + suffix) }
    let descriptor = open(path.string, O_WRONLY)
    defer { close(descriptor) }
    #expect(pwrite(descriptor, [mode, mode], 2, 18) == 2)
    return StoreLocation(database: path)
  }

  private func refusal(_ location: StoreLocation) -> HopdError? {
    do {
      try StoreArrival.requireComplete(location)
      return nil
    } catch { return error }
  }

  @Test func theIndexOfALogWithoutTheLogIsTheMiddleOfACopy() throws {
    let place = try DaemonTests.Place()
    let location = try store(place, mode: 2)
    #expect(refusal(location) == nil)
    try place.write("stores/a.sqlite-shm", "index")
    let error = try #require(refusal(location))
    #expect(error.code == .storeIncomplete && error.hint?.contains("a.sqlite-wal") == true)
    // It is deferred like a store in use, and not refused.
    #expect(JobOutcome(MigrationFailure(stage: .lock, error: error)) == .busy(code: "store-incomplete"))
    try place.write("stores/a.sqlite-wal", "log")
    #expect(refusal(location) == nil)
  }

  @Test func inRollbackModeAnIndexSaysNothing() throws {
    let place = try DaemonTests.Place()
    let location = try store(place, mode: 1)
    try place.write("stores/a.sqlite-shm", "index")
    #expect(refusal(location) == nil)
  }
}
