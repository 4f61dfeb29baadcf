// What leaves a store comes back: random models of every shape, filled with samples, exported and imported again. The
// dump of the new store is that of the old one, by either path. HOPD_SHAPES sets how many models are tried.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import PersistentStore
import SQLite
import StoreExchange
import StoreVerification
import SystemPackage
import Testing

@Suite struct ExchangeRoundTripTests {
  private static let count =
    getenv("HOPD_SHAPES").flatMap { UInt64(String(cString: $0)) }
    ?? (getenv("HOPD_TESTS").map { String(cString: $0) } == "full" ? 500 : 60)
  private static let frameworks: [Int64] = [419, 519, 637, 754, 836, 866, 977, 1044, 1251, 1344]

  @Test("An export of every shape of store becomes the same store again") func everyShapeComesBack() throws {
    var objects: Int64 = 0
    var skipped = 0
    for seed in 1...Self.count {
      let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-trip-\(UUID().uuidString)")
      try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder.string) }
      do {
        objects += try tryShape(seed, in: folder)
      } catch let error as HopdError where error.code == .cannotFill || error.code == .layoutUnsupported {
        skipped += 1
      }
    }
    #expect(skipped * 10 < Int(Self.count))
    #expect(objects > Int64(Self.count) * 10)
  }

  private func tryShape(_ seed: UInt64, in folder: FilePath) throws -> Int64 {
    let shapes = RandomShapes(seed: seed)
    let model = shapes.model("V1")
    let framework = Self.frameworks[Int(seed % UInt64(Self.frameworks.count))]
    let schema = StoreSchema(
      model: model, frameworkVersion: framework, naming: JoinTableNaming(shapes.namingEnds))
    let original = StoreLocation(database: folder.appending("original.sqlite"))
    try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: seed)).make(at: original.database, rows: 40, seed: seed)
    let wanted = try dump(original, schema)
    let what = "seed \(seed), framework \(framework)"

    let lines = folder.appending("original.ndjson")
    try Data(wanted).write(to: URL(filePath: lines.string))
    let again = try imported(lines, schema, as: folder.appending("lines.sqlite"))
    try same(try dump(again.location, schema), wanted, "\(what), lines")

    let csv = folder.appending("csv")
    try FileManager.default.createDirectory(atPath: csv.string, withIntermediateDirectories: true)
    try StoreReader.withUnchangedStore(at: original, attachedAs: "source") { reader in
      let clean = try CleanSchema(of: schema, in: reader, selection: .all, options: ExportOptions())
      #expect(clean.missingParts.isEmpty)
      let written = try CSVExport(of: clean, in: reader, options: ExportOptions(), external: nil)
        .write(to: csv, progress: ExchangeProgress(total: 0) { _, _ in true })
      #expect(written.count == again.imported.objects, "\(what)")
    }
    let table = try imported(csv, schema, as: folder.appending("csv.sqlite"))
    try same(try dump(table.location, schema), wanted, "\(what), CSV")

    let database = folder.appending("clean.db")
    try Data().write(to: URL(filePath: database.string))
    try StoreReader.withUnchangedStore(at: original, attachedAs: "source") { reader in
      let clean = try CleanSchema(of: schema, in: reader, selection: .all, options: ExportOptions())
      _ = try SQLiteExport(of: clean, in: reader, options: ExportOptions(), external: nil)
        .write(to: database, progress: ExchangeProgress(total: 0) { _, _ in true })
    }
    let clean = try imported(database, schema, as: folder.appending("clean.sqlite"))
    try same(try dump(clean.location, schema), wanted, "\(what), SQLite")
    return again.imported.objects
  }

  private func imported(
    _ data: FilePath, _ schema: StoreSchema, as path: FilePath
  ) throws -> (location: StoreLocation, imported: StoreImport.Imported) {
    var work = StoreImport(data: data)
    // Samples know nothing of the rules that a model has for rows.
    work.rows = .keep
    let imported = try work.make(
      FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 7)), at: path, external: { _, _ in },
      progress: { _, _ in })
    let location = StoreLocation(database: path)
    let failed = try StoreReader.withUnchangedStore(at: location) { reader in
      try StoreVerifier(depth: .full).checks(of: reader, schema: schema, isExact: true)
    }.filter { !$0.passed }
    #expect(failed.isEmpty, "\(data): \(failed)")
    return (location, imported)
  }

  private func dump(_ location: StoreLocation, _ schema: StoreSchema) throws -> [UInt8] {
    final class Sink { var bytes: [UInt8] = [] }
    let sink = Sink()
    try StoreReader.withUnchangedStore(at: location) { reader in
      _ = try StoreDump(reader: reader, schema: schema, binary: .base64, isExact: true).write { sink.bytes += $0 }
    }
    return sink.bytes
  }

  private func same(_ found: [UInt8], _ wanted: [UInt8], _ what: String) throws {
    guard found != wanted else { return }
    let pairs = zip(found.split(separator: 0x0a), wanted.split(separator: 0x0a))
    guard let pair = pairs.first(where: { $0 != $1 }) else {
      Issue.record("\(what): \(found.count) and \(wanted.count) bytes")
      return
    }
    Issue.record(
      "\(what): \(String(decoding: pair.0, as: UTF8.self)) is not \(String(decoding: pair.1, as: UTF8.self))")
  }
}
