// External files of an import that was killed: recovery removes them if the store is the old one, and only then.

import DurableFiles
import OtherPrograms
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreReplacement

struct AddedFileListTests {
  private static let old = "00000000-0000-4000-A000-000000000001"
  private static let new = "00000000-0000-4000-A000-000000000002"

  /// Leaves what a killed import does: a staged store, external files and their list.
  private func kill(_ world: TestWorld) throws {
    let version = try Connection(path: world.location.database, access: .immutable).integer("PRAGMA schema_version")
    let area = StagingArea(location: world.location, job: "ab12", files: world.plain)
    _ = try area.create(hop: nil)
    let list = try AddedFileList(in: area, schemaVersion: try #require(version), files: world.plain)
    try list.note(try #require(ExternalFileName(Array(Self.new.utf8))))
    // Noted, and the kill came before it was written.
    try list.note(try #require(ExternalFileName(Array("00000000-0000-4000-A000-000000000003".utf8))))
    try world.plain.createFile(world.location.externalDataDirectory.appending(Self.new), [1], mode: 0o644)
  }

  private func recover(_ world: TestWorld) throws -> [String] {
    let runner = RecoveryRunner(
      files: world.plain, intents: try world.intents(world.plain), lockDirectory: world.locks,
      identify: TestWorld.identify)
    _ = try runner.recover(world.location)
    let names = try world.plain.names(in: world.stores).map(\.string)
    #expect(!names.contains { $0.contains(".hop-") }, "\(names)")
    return try world.plain.names(in: world.location.externalDataDirectory).map(\.string).sorted()
  }

  @Test("An old store keeps its own external files only") func oldStore() throws {
    let world = try TestWorld(.rollback, externalFiles: [Self.old])
    try kill(world)
    #expect(try recover(world) == [Self.old])
  }

  @Test("A store that may be the new one keeps all external files") func newStore() throws {
    let world = try TestWorld(.rollback, externalFiles: [Self.old])
    try kill(world)
    let connection = try Connection.ofApp(world.location.database)
    try connection.execute("CREATE TABLE other(x)")
    _ = consume connection
    #expect(try recover(world) == [Self.old, Self.new])
  }
}
