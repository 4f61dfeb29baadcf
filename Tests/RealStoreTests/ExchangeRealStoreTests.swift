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
      let sound = withoutDanglingPairs(wanted)
      #expect(imported.clearedReferences == missing + sound.dangling, "\(path): \(imported.problems)")
      let found = try StoreReader.withUnchangedStore(at: StoreLocation(database: store)) { try dump($0, schema).bytes }
      guard missing == 0 else { return }
      let pairs = zip(String(decoding: found, as: UTF8.self).split(separator: "\n"), sound.lines)
      for (line, other) in pairs where line != other { Issue.record("\(path): \(line) is not \(other)") }
    }
  }

  /// The lines without members of to-manys that do not exist: pairs of deleted objects stay in stores of Photos.
  private func withoutDanglingPairs(_ bytes: [UInt8]) -> (lines: [Substring], dangling: Int64) {
    let text = String(decoding: bytes, as: UTF8.self)
    let objects = Set(text.matches(of: #/"id":("[^"\\]+/p[0-9]+")/#).map(\.1))
    var dangling: Int64 = 0
    let sound = text.replacing(#/\[("[^"\\]+/p[0-9]+"(?:,"[^"\\]+/p[0-9]+")*)\]/#) { list -> String in
      let members = list.1.split(separator: ",")
      let kept = members.filter { objects.contains($0) }
      dangling += Int64(members.count - kept.count)
      return "[" + kept.joined(separator: ",") + "]"
    }
    return (sound.split(separator: "\n"), dangling)
  }
}
