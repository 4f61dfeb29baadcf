// A folder with a model and the data of one test; removed at the end.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import StoreVerification
import SystemPackage
import Testing

@testable import StoreExchange

final class Room {
  let path: FilePath
  let schema: StoreSchema

  /// A room for stores of the model in a body of XML.
  init(_ body: String) throws {
    path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-exchange-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    let model = try ModelReader.read(
      contents: Array("<?xml version=\"1.0\"?><model>\(body)</model>".utf8), name: "Test"
    ).model
    schema = StoreSchema(model: model, frameworkVersion: 1344)
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  /// Writes a file.
  @discardableResult
  func file(_ name: String, _ text: String) throws -> FilePath {
    try file(name, Array(text.utf8))
  }

  @discardableResult
  func file(_ name: String, _ bytes: [UInt8]) throws -> FilePath {
    let file = path.pushing(FilePath(name))
    try FileManager.default.createDirectory(
      atPath: file.removingLastComponent().string, withIntermediateDirectories: true)
    try Data(bytes).write(to: URL(filePath: file.string))
    return file
  }

  /// The names of the files in the folder.
  var names: [String] { (try? FileManager.default.contentsOfDirectory(atPath: path.string)) ?? [] }

  func location(_ name: String) -> StoreLocation { StoreLocation(database: path.appending(name)) }

  /// Imports data, and verifies the store.
  @discardableResult
  func load(
    _ data: FilePath, as name: String = "store.sqlite", mapping: FilePath? = nil, files: FilePath? = nil,
    rows: ImportRowsRule = .fail
  ) throws -> StoreImport.Imported {
    var work = StoreImport(data: data)
    (work.mapping, work.files, work.rows) = (mapping, files, rows)
    let location = location(name)
    let imported = try work.make(
      FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)), at: location.database,
      external: { name, bytes in
        try FileManager.default.createDirectory(
          atPath: location.externalDataDirectory.string, withIntermediateDirectories: true)
        let file = location.externalDataDirectory.appending(name.text).string
        guard let bytes else { return try FileManager.default.removeItem(atPath: file) }
        try Data(bytes).write(to: URL(filePath: file))
      }, progress: { _, _ in })
    let failed = try StoreReader.withUnchangedStore(at: location) { reader in
      try StoreVerifier(depth: .full).checks(
        of: reader, schema: schema, isExact: true, external: ExternalDataDirectory(of: location))
    }.filter { !$0.passed }
    #expect(failed.isEmpty, "\(failed)")
    return imported
  }

  /// Runs an import that must fail, and returns the lines of its reasons.
  func failure(_ data: FilePath, mapping: FilePath? = nil, rows: ImportRowsRule = .fail) throws -> [String] {
    do {
      try load(data, as: "failed-\(UUID().uuidString).sqlite", mapping: mapping, rows: rows)
    } catch let error as HopdError {
      return (error.reasons.isEmpty ? [error] : error.reasons).map { error in
        error.headline.replacing(path.string + "/", with: "")
      }
    }
    Issue.record("the import succeeded")
    return []
  }

  /// The lines of a store's dump.
  func lines(_ name: String = "store.sqlite") throws -> [String] {
    final class Sink { var bytes: [UInt8] = [] }
    let sink = Sink()
    let location = location(name)
    try StoreReader.withUnchangedStore(at: location) { reader in
      _ = try StoreDump(
        reader: reader, schema: schema, external: ExternalDataDirectory(of: location), binary: .base64, isExact: true
      ).write { sink.bytes += $0 }
    }
    return String(decoding: sink.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
  }

  /// Exports a store to a database; returns a connection to it, and the warnings.
  func database(
    _ name: String = "store.sqlite", options: ExportOptions = ExportOptions(), entities: [String] = [],
    predicate: String? = nil
  ) throws -> (connection: Connection, written: SQLiteExport.Written) {
    let target = try file("out-\(UUID().uuidString).db", "")
    let location = location(name)
    let written = try StoreReader.withUnchangedStore(at: location, attachedAs: "source") { reader in
      let selection = try StoreSelection(entities: entities, predicate: predicate, in: reader, schema: schema)
      let clean = try CleanSchema(of: schema, in: reader, selection: selection, options: options)
      return try SQLiteExport(
        of: clean, in: reader, options: options, external: ExternalDataDirectory(of: location)
      ).write(to: target, progress: ExchangeProgress(total: 0) { _, _ in true })
    }
    let connection = try Connection(path: target, access: .readWrite)
    try connection.execute("PRAGMA ignore_check_constraints = OFF")
    #expect(try connection.text("PRAGMA integrity_check") == "ok")
    #expect(try connection.rows("PRAGMA foreign_key_check") { $0.text(at: 0) ?? "" }.isEmpty)
    return (connection, written)
  }

  /// Exports a store as CSV into a folder.
  func csv(_ name: String = "store.sqlite", options: ExportOptions = ExportOptions()) throws -> (
    folder: FilePath, written: CSVExport.Written
  ) {
    let folder = path.appending("csv-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    let location = location(name)
    let written = try StoreReader.withUnchangedStore(at: location, attachedAs: "source") { reader in
      let clean = try CleanSchema(of: schema, in: reader, selection: .all, options: options)
      return try CSVExport(of: clean, in: reader, options: options, external: ExternalDataDirectory(of: location))
        .write(to: folder, progress: ExchangeProgress(total: 0) { _, _ in true })
    }
    return (folder, written)
  }

  func text(_ file: FilePath) throws -> String {
    String(decoding: try Data(contentsOf: URL(filePath: file.string)), as: UTF8.self)
  }
}

/// Plants with their families, and gardens that have them in an order.
let gardenModel = """
  <entity name='Family'>
    <attribute name='name' attributeType='String'/>
    <relationship name='plants' optional='YES' toMany='YES' destinationEntity='Plant' inverseName='family'
      inverseEntity='Plant'/>
    <uniquenessConstraints><uniquenessConstraint><constraint value='name'/></uniquenessConstraint>
    </uniquenessConstraints>
  </entity>
  <entity name='Plant'>
    <attribute name='name' attributeType='String' minValueString='2'/>
    <attribute name='height' optional='YES' attributeType='Double'/>
    <attribute name='year' optional='YES' attributeType='Integer 16' defaultValueString='1900'/>
    <attribute name='hardy' optional='YES' attributeType='Boolean'/>
    <attribute name='seen' optional='YES' attributeType='Date'/>
    <attribute name='tag' optional='YES' attributeType='UUID'/>
    <attribute name='notes' optional='YES' attributeType='Transformable'/>
    <attribute name='picture' optional='YES' attributeType='Binary' allowsExternalBinaryDataStorage='YES'/>
    <relationship name='family' optional='YES' maxCount='1' destinationEntity='Family' inverseName='plants'
      inverseEntity='Family'/>
    <relationship name='gardens' optional='YES' toMany='YES' destinationEntity='Garden' inverseName='plants'
      inverseEntity='Garden'/>
    <relationship name='label' optional='YES' maxCount='1' destinationEntity='Label' inverseName='plant'
      inverseEntity='Label'/>
  </entity>
  <entity name='Tree' parentEntity='Plant'><attribute name='rings' attributeType='Integer 32'/></entity>
  <entity name='Garden'>
    <attribute name='name' attributeType='String'/>
    <relationship name='plants' optional='YES' toMany='YES' ordered='YES' destinationEntity='Plant'
      inverseName='gardens' inverseEntity='Plant'/>
  </entity>
  <entity name='Label'>
    <attribute name='text' optional='YES' attributeType='String'/>
    <relationship name='plant' optional='YES' maxCount='1' destinationEntity='Plant' inverseName='label'
      inverseEntity='Plant'/>
  </entity>
  """
