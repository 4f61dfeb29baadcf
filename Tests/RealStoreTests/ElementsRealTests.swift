// Models in the form of an Xcode before 4.1, made by the editor itself: mapping models keep a copy of both of their
// versions in that form, next to the versions themselves as `contents`. A copy may be of an older state.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import SystemPackage
import Testing

@Suite struct ElementsRealTests {
  private struct Snapshot {
    let title: String
    let version: String
    let bytes: [UInt8]
    /// The versions of that name next to it.
    let sources: [FilePath]
  }

  /// Returns the copies in all mapping models, without duplicates.
  private func snapshots() throws -> [Snapshot] {
    var result: [Snapshot] = []
    var seen: Set<[UInt8]> = []
    for folder in ["chains", "mappings", "reach"].flatMap(Fixtures.cases) {
      let files = below(folder)
      for file in files where file.lastComponent?.string == "xcmapping.xml" {
        let text = String(decoding: try Fixtures.bytes(of: file), as: UTF8.self)
        for side in ["source", "destination"] {
          guard let path = value("\(side)modelpath", in: text), let encoded = value("\(side)modeldata", in: text),
            let data = Data(base64Encoded: encoded, options: .ignoreUnknownCharacters), !data.isEmpty,
            seen.insert(Array(data)).inserted, let version = FilePath(path).lastComponent?.stem
          else { continue }
          let sources = files.filter {
            $0.lastComponent?.string == "contents" && $0.removingLastComponent().stem == version
          }
          result.append(
            Snapshot(title: "\(folder.stem ?? "") \(version)", version: version, bytes: Array(data), sources: sources))
        }
      }
    }
    return result
  }

  private func below(_ folder: FilePath) -> [FilePath] {
    Fixtures.names(in: folder).map { folder.appending($0) }.flatMap { Fixtures.isFolder($0) ? below($0) : [$0] }
  }

  private func value(_ name: String, in text: String) -> String? {
    guard let start = text.firstRange(of: "<attribute name=\"\(name)\" type=") else { return nil }
    let rest = text[start.upperBound...]
    guard let open = rest.firstIndex(of: ">"), let close = rest[open...].firstIndex(of: "<") else { return nil }
    return String(rest[rest.index(after: open)..<close])
  }

  @Test(.enabled(if: Fixtures.isAvailable, Fixtures.absence))
  func everyCopyReadsAndMostAreTheVersionBesideThem() throws {
    var compared = 0
    var equal = 0
    var entities = (compared: 0, equal: 0, same: 0)
    var differences: [String] = []
    for snapshot in try snapshots() {
      let old = try ModelReader.read(elements: snapshot.bytes, name: snapshot.version).model
      var best: (hashes: Int, facts: Int, of: Int, reported: [String])?
      for source in snapshot.sources {
        let new = try ModelReader.read(contents: Fixtures.bytes(of: source), name: snapshot.version).model
        let names = Set(old.entities.map(\.name)).union(new.entities.map(\.name)).sorted()
        let hashes = names.filter { old.versionHashes[$0] == new.versionHashes[$0] }
        let facts = hashes.filter { old.entity(named: $0).map(plain) == new.entity(named: $0).map(plain) }
        let reported = names.filter { !facts.contains($0) }.map {
          "\(snapshot.title).\($0)" + (hashes.contains($0) ? " (not in the hash)" : "")
        }
        if (best?.hashes ?? -1, best?.facts ?? -1) < (hashes.count, facts.count) {
          best = (hashes.count, facts.count, names.count, reported)
        }
      }
      guard let best else { continue }
      compared += 1
      if best.hashes == best.of { equal += 1 }
      entities = (entities.compared + best.of, entities.equal + best.hashes, entities.same + best.facts)
      differences += best.reported
    }
    guard Fixtures.isStandardSet else { return }
    // Seven entities were edited after their mapping model was made; in thirteen others a default, a delete rule or a
    // value transformer was edited, which the hash does not include.
    #expect(compared == 85 && equal == 80, "\(differences)")
    #expect(entities == (337, 330, 317), "\(differences)")
  }

  /// Returns an entity without the parts that the old form cannot express.
  private func plain(_ entity: Entity) -> Entity {
    var entity = entity
    entity.fetchIndexes = []
    entity.fetchedProperties = []
    entity.className = nil
    for index in entity.attributes.indices {
      entity.attributes[index].customClassName = nil
      entity.attributes[index].isIndexed = false
      if entity.attributes[index].type == .date { entity.attributes[index].defaultValue = nil }
    }
    return entity
  }
}
