// A store that a command makes: after a kill at any moment the same command can be run again.

import Diagnostics
import DurableFiles
import FoundationEssentials
import PersistentStore
import StoreReplacement
import SystemPackage
import Testing

@testable import StoreExchange

struct NewStoreTests {
  private let name = ExternalFileName(Array("12345678-1234-4234-A234-123456789ABC".utf8))
  private let files = LinuxFileSystem()

  private func location(_ room: Room) throws -> CanonicalStoreLocation {
    try CanonicalStoreLocation(resolving: room.path.appending("new.sqlite"))
  }

  /// Begins a store with an external file; a value that is not discarded is a killed command.
  private func begin(_ room: Room, job: String = "ab12") throws -> NewStore {
    let store = try NewStore(at: try location(room), job: job)
    try files.createFile(store.hidden.database, [1, 2, 3], mode: 0o600)
    try store.change(try #require(name), to: [4, 5])
    return store
  }

  private func retry(_ room: Room) throws {
    let store = try begin(room, job: "cd34")
    try store.commit()
    store.discard()
    let place = try location(room)
    #expect(try files.read(place.externalDataDirectory.appending(try #require(name).text), limit: 9) == [4, 5])
    #expect(Set(room.names) == ["new.sqlite", ".new_SUPPORT"])
  }

  @Test("A killed command leaves nothing under the store's names, and the next one removes what it left")
  func killed() throws {
    let room = try Room("<entity name='A'/>")
    _ = try begin(room)
    #expect(room.names.allSatisfy { $0.contains(".hop-") }, "\(room.names)")
    try retry(room)
  }

  @Test("A kill between the two renames leaves external files that the next command removes") func renamed() throws {
    let room = try Room("<entity name='A'/>")
    let store = try begin(room)
    let place = try location(room)
    // The store cannot get its name, and discarding is what a killed command does not do.
    try files.createFile(place.database, [9], mode: 0o600)
    #expect(throws: HopdError.self) { try store.commit() }
    try files.unlink(place.database)
    #expect(try files.status(place.supportDirectory) != nil)
    _ = consume store
    try retry(room)
  }

  @Test("External files of others stay, and the name is taken") func others() throws {
    let room = try Room("<entity name='A'/>")
    _ = try begin(room)
    let place = try location(room)
    try files.makeDirectory(place.supportDirectory, mode: 0o700)
    #expect(throws: HopdError.self) { _ = try NewStore(at: place, job: "cd34") }
    #expect(try files.status(place.supportDirectory) != nil)
  }

  @Test("A command that runs is not disturbed") func running() throws {
    let room = try Room("<entity name='A'/>")
    let store = try begin(room)
    let error = #expect(throws: HopdError.self) { _ = try NewStore(at: try location(room), job: "cd34") }
    #expect(error?.code == .lockedByOther)
    try store.commit()
    store.discard()
    #expect(Set(room.names) == ["new.sqlite", ".new_SUPPORT"])
  }

  @Test("A command that fails leaves nothing") func discarded() throws {
    let room = try Room("<entity name='A'/>")
    try begin(room).discard()
    #expect(room.names.isEmpty, "\(room.names)")
  }
}
