// Stores of Apple's apps, exported and made again of the export: every object has its values, keys and relationships.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import SQLite
import StoreExchange
import SystemPackage
import Testing

@Suite(.enabled(if: AppleStores.isAvailable, "no stores of Apple's apps beside the fixtures"))
struct ExchangeRealStoreTests {
  private final class Sink { var bytes: [UInt8] = [] }

  private func dump(_ reader: StoreReader, _ schema: StoreSchema) throws -> (bytes: [UInt8], missing: Int64) {
    let sink = Sink()
    let written = try StoreDump(reader: reader, schema: schema, binary: .base64, isExact: true)
      .write { sink.bytes += $0 }
    return (sink.bytes, written.missingFiles)
  }

  @Test("A store that is made of the export of a real one has the same dump", arguments: AppleStores.paths)
  func storesComeBack(path: FilePath) throws {
    try AppleStoreTests().withCopy(of: path) { reader, model, framework in
      let schema = try reader.layout(of: model, frameworkVersion: framework)
      let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-exchange-\(UUID().uuidString)")
      try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder.string) }
      let (wanted, missing) = try dump(reader, schema)
      let lines = folder.appending("lines.ndjson")
      try Data(wanted).write(to: URL(filePath: lines.string))
      let fresh: FreshStore
      do {
        fresh = try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1))
      } catch {
        // A layout of which a part is not known is not made.
        return
      }
      var work = StoreImport(data: lines)
      work.rows = .keep
      let store = folder.appending("again.sqlite")
      let imported = try work.make(fresh, at: store, external: { _, _ in }, progress: { _, _ in })
      #expect(imported.leftOut == missing, "\(path): \(imported.problems)")
      let found = try StoreReader.withUnchangedStore(at: StoreLocation(database: store)) { try dump($0, schema).bytes }
      guard missing == 0, found != wanted else { return }
      let pairs = zip(found.split(separator: 0x0a), wanted.split(separator: 0x0a))
      guard let pair = pairs.first(where: { $0 != $1 }) else {
        Issue.record("\(path): \(found.count) and \(wanted.count) bytes")
        return
      }
      Issue.record(
        "\(path): \(String(decoding: pair.0, as: UTF8.self)) is not \(String(decoding: pair.1, as: UTF8.self))")
    }
  }
}
