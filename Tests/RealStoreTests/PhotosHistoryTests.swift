// Persistent history across Apple's own migrations: the Photos store of one library under macOS 10.15.1, 15.4.1 and
// 26.1. The file of 26.1 without its log is what Core Data made of the store of 15.4.1 with its log.

import FoundationEssentials
import ManagedObjectModel
import MappingModel
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.enabled(if: PhotosStores.isAvailable, "no stores of Photos beside the fixtures"))
struct PhotosHistoryTests {
  /// A row of ACHANGE.
  private struct Change {
    let entity: Int64
    let object: [Int64]
    let columns: [UInt8]?
    let tombstones: [SQLiteValue]
  }

  /// A store with its model and its changes.
  private struct Store {
    let reader: StoreReader
    let schema: StoreSchema
    let layout: HistoryLayout
    let changes: [Int64: Change]
  }

  /// Runs the body with a copy of the store of a version.
  private func withStore<Result>(
    _ version: String, log: Bool = true, _ body: (Store) throws -> Result
  ) throws -> Result {
    let path = try #require(PhotosStores.path(version))
    let copy = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-photos-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: copy.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: copy.string) }
    for suffix in log ? ["", "-wal"] : [""] where Fixtures.exists(FilePath(path.string + suffix)) {
      try FileManager.default.copyItem(
        atPath: path.string + suffix, toPath: copy.appending("store" + suffix).string)
    }
    return try StoreReader.withUnchangedStore(at: StoreLocation(database: copy.appending("store"))) { reader in
      let model = try #require(try reader.cachedModel(name: "macOS \(version)")?.model)
      let layout = try #require(try HistoryLayout.read(from: reader).layout)
      let tombstones = (0..<layout.tombstoneCount).map { ", ZTOMBSTONE\($0)" }.joined()
      let changes = try reader.connection.rows(
        "SELECT Z_PK, ZENTITY, ZENTITYPK, ZTRANSACTIONID, ZCHANGETYPE, ZCOLUMNS\(tombstones) FROM ACHANGE"
      ) { row in
        (
          row.integer(at: 0),
          Change(
            entity: row.integer(at: 1), object: (2...4).map { row.integer(at: $0) }, columns: row.blob(at: 5),
            tombstones: (6..<row.columnCount).map { row.value(at: $0) })
        )
      }
      return try body(
        Store(
          reader: reader,
          schema: try reader.layout(of: model, frameworkVersion: try reader.metadata().frameworkVersion),
          layout: layout, changes: Dictionary(uniqueKeysWithValues: changes)))
    }
  }

  /// Returns the positions whose order Core Data alone knows.
  private func unordered(_ columns: HistoryColumns) -> Set<Int> {
    Set(columns.bits.indices.filter { columns.bits[$0].group.isUnordered })
  }

  /// Every update has a value of the computed length, and every bit of it is one of a property.
  @Test(arguments: PhotosStores.versions)
  func everyBitIsThatOfAProperty(version: String) throws {
    try withStore(version) { store in
      var orderKeys = 0
      for (key, change) in store.changes {
        guard let value = change.columns else { continue }
        let name = try #require(store.schema.entityName(of: change.entity))
        let columns = try #require(HistoryColumns(of: name, in: store.schema))
        let positions = columns.positions(in: value)
        #expect(columns.doubt == nil && value.count == columns.byteCount, "\(key): \(name)")
        #expect(
          columns.value(settingPositions: positions) == value, "\(key): \(name) has a bit behind its last property")
        orderKeys += positions.count { columns.bits[$0].group == .orderKey }
      }
      #expect(orderKeys > 0)
    }
  }

  /// The columns for the values of deleted objects are as many as the model asks for.
  @Test(arguments: PhotosStores.versions)
  func tombstonesAreThoseOfTheWidestEntity(version: String) throws {
    try withStore(version) { store in
      #expect(store.layout.tombstoneCount == HistoryLayout.tombstoneCount(of: store.schema.model))
      for (key, change) in store.changes {
        let name = try #require(store.schema.entityName(of: change.entity))
        let count = HistoryLayout.tombstoneAttributes(of: name, in: store.schema.model).count
        #expect(change.tombstones.dropFirst(count).allSatisfy { $0 == .null }, "\(key): \(name)")
      }
    }
  }

  /// What is planned for the store of 15.4.1 is what Core Data did with it.
  @Test func theHopTo26IsApples() throws {
    try withStore("15.4.1") { before in
      try withStore("26.1", log: false) { after in
        let versions = ModelCatalog(bundles: [
          ModelBundle(
            name: "Photos", path: "/Photos.momd", versions: [before.schema.model, after.schema.model],
            currentVersionName: after.schema.model.name)
        ]).versions
        let path = MigrationPath(
          sourceSchema: before.schema,
          edges: [
            MigrationGraph.Edge(
              source: try #require(versions.first), destination: try #require(versions.last),
              mapping: try MappingInference.infer(from: before.schema.model, to: after.schema.model))
          ])
        let plan = try HistoryContinuation(
          reader: before.reader, layout: before.layout, path: path, final: after.schema)
        #expect(plan.findings.errors.isEmpty && plan.warnings.isEmpty)
        #expect(plan.carry.removed.isEmpty && plan.removedChanges == 0)
        #expect(Set(before.changes.keys) == Set(after.changes.keys))
        var (exact, wide) = (0, 0)
        for (key, old) in before.changes {
          let new = try #require(after.changes[key])
          #expect(plan.carry.numbers[old.entity] ?? old.entity == new.entity, "\(key)")
          #expect(old.object == new.object, "\(key)")
          let moves = plan.carry.tombstones[old.entity] ?? Array(old.tombstones.indices)
          #expect(moves.map { $0.map { old.tombstones[$0] } ?? .null } == new.tombstones, "\(key)")
          guard let change = plan.carry.columns[old.entity], let value = old.columns else {
            #expect(old.columns == new.columns, "\(key)")
            continue
          }
          let apples = try #require(new.columns)
          let (found, wanted) = (change.value(of: value), change.destination.positions(in: apples))
          let all = Set(change.destination.positions(in: found))
          #expect(found.count == apples.count && all.isSuperset(of: wanted), "\(key)")
          #expect(all.subtracting(wanted).isSubset(of: unordered(change.destination)), "\(key)")
          if found == apples { exact += 1 } else { wide += 1 }
        }
        #expect(exact == 630 && wide == 59)
        let mark = try #require(plan.carry.mark)
        let author = try after.reader.connection.rows(
          "SELECT s.ZNAME FROM ATRANSACTION AS t JOIN ATRANSACTIONSTRING AS s ON s.Z_PK = t.ZAUTHORTS WHERE t.Z_PK = ?",
          [.integer(mark.transaction)]
        ) { $0.text(at: 0) }
        #expect(author == [mark.author])
      }
    }
  }

  /// Eleven migrations later the changes of 10.15.1 name what they named, by name, but for renamed and removed
  /// properties; changes of removed entities are gone, and no transaction is.
  @Test func theChangesOf2019AreNamedTheSameIn15() throws {
    try withStore("10.15.1") { before in
      try withStore("15.4.1") { after in
        var (compared, ordered, gone) = (0, 0, Set<String>())
        for (key, old) in before.changes {
          let name = try #require(before.schema.entityName(of: old.entity))
          guard let new = after.changes[key], new.object == old.object else {
            if after.changes[key] == nil { gone.insert(name) }
            continue
          }
          guard let value = old.columns, let apples = new.columns, after.schema.number(of: name) == new.entity else {
            continue
          }
          let columns = try #require(HistoryColumns(of: name, in: before.schema))
          let later = try #require(HistoryColumns(of: name, in: after.schema))
          let named = columns.positions(in: value).map { columns.bits[$0] }
          let wanted = later.bits.indices.filter { place in named.contains { $0.sets(later.bits[place]) } }
          let strange = Set(wanted).symmetricDifference(later.positions(in: apples)).subtracting(unordered(later))
          #expect(strange.isEmpty, "\(key): \(name) \(strange.map { later.bits[$0] })")
          compared += 1
          if named.contains(where: { $0.group == .orderKey }) { ordered += 1 }
        }
        #expect(compared > 300 && ordered > 0)
        #expect(gone.isSuperset(of: ["MomentList", "UniformTypeIdentifier"]))
        #expect(gone.isDisjoint(with: ["Person", "Asset", "AdditionalAssetAttributes"]))
        let transactions = try [before, after].map { store in
          Set(try store.reader.connection.rows("SELECT Z_PK FROM ATRANSACTION") { $0.integer(at: 0) })
        }
        #expect(transactions[0].isSubset(of: transactions[1]))
      }
    }
  }
}

/// The stores.
enum PhotosStores {
  static let versions = ["10.15.1", "15.4.1", "26.1"]
  static let isAvailable = versions.allSatisfy { path($0).map(Fixtures.exists) == true }

  static func path(_ version: String) -> FilePath? {
    Fixtures.root?.removingLastComponent().appending("field/stores/photos/Photos-\(version).sqlite")
  }
}
