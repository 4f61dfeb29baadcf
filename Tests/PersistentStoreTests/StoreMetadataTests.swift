// Metadata of migrated and of fresh stores, by framework version: every combination that a source can have.

import BlockingTests
import Diagnostics
import ManagedObjectModel
import PropertyLists
import SQLite
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct StoreMetadataTests {
  private typealias Key = StoreMetadata.Key
  private static let versions: [Int64] = [
    241, 320, 419, 519, 641, 754, 851, 866, 977, 1048, 1145, 1251, 1327, 1333, 1344, 1347, 1403, 1414, 1448, 1518, 1523,
    1526,
  ]
  private static let old = ManagedObjectModel(
    name: "Old", entities: [Entity(name: "A", attributes: [Attribute(name: "x", type: .string)])])
  private static let new = ManagedObjectModel(
    name: "New", entities: [Entity(name: "A", attributes: [Attribute(name: "y", type: .date)]), Entity(name: "B")])

  /// The possible values of a key in a source, and whether each is correct.
  private static func values(_ right: String) -> [(value: PropertyListValue?, isRight: Bool)] {
    [
      (nil, true), (.string(right), true), (.string("bm9uc2Vuc2U="), false), (.data([1, 2]), false),
      (.integer(3), false),
    ]
  }

  @Test func digestAndChecksumAreTheDestinationsOrAbsentOverEverySource() {
    let (old, new) = (Self.old, Self.new)
    for version in Self.versions {
      for digest in Self.values(old.versionHashesDigest) {
        for checksum in Self.values(old.versionChecksum) {
          var source = StoreMetadata.fresh(uuid: "U", model: old, frameworkVersion: version)
          source.entries[Key.versionHashesDigest] = digest.value
          source.entries[Key.versionChecksum] = checksum.value
          let result = source.migrated(to: new, autoVacuum: 2)
          let hasEither = digest.value != nil || checksum.value != nil
          let wantsDigest = digest.value != nil || (hasEither && version >= 977)
          let wantsChecksum = checksum.value != nil || (hasEither && version >= 1327)
          #expect(result.entries[Key.versionHashesDigest] == (wantsDigest ? .string(new.versionHashesDigest) : nil))
          #expect(result.entries[Key.versionChecksum] == (wantsChecksum ? .string(new.versionChecksum) : nil))
          #expect(result.frameworkVersion == version && result.uuid == "U")
          #expect(result.versionHashes == new.versionHashes)
          let wrong = (digest.isRight ? 0 : 1) + (checksum.isRight ? 0 : 1)
          #expect(
            source.contradictions(autoVacuum: 2).map(\.code) == Array(repeating: .metadataCorrected, count: wrong))
          #expect(result.contradictions(autoVacuum: 2).isEmpty)
        }
      }
    }
  }

  @Test func everythingElseStaysAsItIs() {
    var source = StoreMetadata.fresh(uuid: "U", model: Self.old, frameworkVersion: 1526)
    let kept: [String: PropertyListValue] = [
      Key.maximumFrameworkVersion: .integer(1600), Key.ancillaryHashes: .dictionary(["CHANGE": .data([7])]),
      "com.example.token": .data([1, 2, 3]), "NSSomethingOfTomorrow": .array([.real(1.5)]),
    ]
    source.entries.merge(kept) { $1 }
    let result = source.migrated(to: Self.new, autoVacuum: 2)
    for (key, value) in kept { #expect(result.entries[key] == value, "\(key)") }
    #expect(result.appKeys == ["NSSomethingOfTomorrow", "com.example.token"])
    #expect(Set(result.entries.keys) == Set(source.entries.keys))
  }

  @Test func theVacuumLevelIsThatOfTheFile() {
    let source = StoreMetadata.fresh(uuid: "U", model: Self.old, frameworkVersion: 1344)
    for level in 0...2 as ClosedRange<Int64> {
      #expect(source.migrated(to: Self.new, autoVacuum: level).entries[Key.autoVacuumLevel] == .string("\(level)"))
      #expect(source.contradictions(autoVacuum: level).count == (level == 2 ? 0 : 1))
    }
    var without = source
    without.entries[Key.autoVacuumLevel] = nil
    #expect(without.migrated(to: Self.new, autoVacuum: 2).entries[Key.autoVacuumLevel] == nil)
  }

  @Test func freshStoresHaveTheKeysOfTheirFramework() {
    let always: Set<String> = [
      Key.frameworkVersion, Key.versionHashes, Key.versionHashesVersion, Key.versionIdentifiers, Key.storeType,
      Key.autoVacuumLevel,
    ]
    for version in Self.versions {
      let more: Set<String> =
        switch version {
        case ..<977: []
        case ..<1327: [Key.versionHashesDigest]
        case ..<1518: [Key.versionHashesDigest, Key.versionChecksum]
        default: [Key.versionHashesDigest, Key.versionChecksum, Key.maximumFrameworkVersion]
        }
      let fresh = StoreMetadata.fresh(uuid: "U", model: Self.old, frameworkVersion: version)
      #expect(Set(fresh.entries.keys) == always.union(more), "\(version)")
      #expect(fresh.entries[Key.maximumFrameworkVersion] == (version < 1518 ? nil : .integer(version)))
    }
  }

  @Test func numbersThatWereNeverSeenFollowTheNearestBelow() {
    for version in Self.versions {
      #expect(FrameworkVersion.remark(on: version) == nil)
      #expect(FrameworkVersion.followed(for: version) == version)
    }
    let pairs: [(Int64, Int64)] = [
      (1, 241), (500, 479), (700, 641), (900, 866), (1300, 1251), (1326, 1251), (1400, 1347), (1420, 1414),
      (1500, 1448), (2000, 1526),
    ]
    for (version, followed) in pairs {
      #expect(FrameworkVersion.followed(for: version) == followed)
      let remark = FrameworkVersion.remark(on: version)
      #expect(remark?.message.contains("\(version)") == true && remark?.message.contains("\(followed)") == true)
      // The layout does the same.
      let model = Self.new
      #expect(
        StoreSchema(model: model, frameworkVersion: version).createStatements
          == StoreSchema(model: model, frameworkVersion: followed).createStatements)
    }
  }

  @Test func theFileOfAFreshStoreIsThatOfItsFramework() throws {
    let folder = try Folder()
    for (version, page, format, log) in [(241, 2048, 1, 1), (320, 4096, 4, 1), (519, 4096, 4, 2), (1344, 4096, 4, 2)]
      as [(Int64, Int, UInt8, UInt8)]
    {
      let location = try folder.store(Self.old, rows: 3, framework: version)
      let descriptor = try FileDescriptor.open(location.database, .readOnly)
      var header = [UInt8](repeating: 0, count: 100)
      let read = try descriptor.closeAfter { try header.withUnsafeMutableBytes { try descriptor.read(into: $0) } }
      #expect(read == 100)
      #expect(Int(header[16]) << 8 | Int(header[17]) == page, "\(version)")
      #expect(header[47] == format && header[18] == log && header[19] == log, "\(version)")
    }
  }
}

extension StoreMetadata {
  /// Keys that are not Core Data's own.
  fileprivate var appKeys: [String] {
    let known: Set<String> = [
      Key.frameworkVersion, Key.versionHashes, Key.versionHashesVersion, Key.versionIdentifiers,
      Key.versionHashesDigest, Key.versionChecksum, Key.storeType, Key.autoVacuumLevel, Key.deferredMigration,
      Key.ancillaryHashes, Key.maximumFrameworkVersion,
    ]
    return entries.keys.filter { !known.contains($0) }.sorted()
  }
}
