// Public apps whose source is known at the commit of a store that SwiftData made: every hash that is derived from the
// source must equal the hash in the store. The sources are read out of clones, which are not part of the project: the
// folder that HOPD_SOURCES names has them as OWNER+NAME/repo. What is absent is skipped, and told.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationPlanning
import PersistentStore
import PolicyHost
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

/// The pairs of the fixtures.
struct KnownPair: Decodable, CustomStringConvertible {
  enum Roots: Decodable {
    case schema(String)
    case classes([String])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let name = try? container.decode(String.self) {
        self = .schema(name)
      } else {
        self = .classes(try container.decode([String].self))
      }
    }

    /// As `--schema` takes it.
    var word: String {
      switch self {
      case .schema(let name): name
      case .classes(let names): names.joined(separator: ",")
      }
    }
  }

  struct Source: Decodable {
    let commit: String
    let paths: [String]
    let roots: Roots
  }

  struct Store: Decodable {
    let blob: String?
    /// A digest over all hashes that the app's repository has instead of a store.
    let value: String?
  }

  struct List: Decodable { let pairs: [KnownPair] }

  let repository: String
  let source: Source
  let hashes: [String: String]
  let checksum: String?
  let store: Store
  let framework: Int64?

  var description: String { "\(repository) \(source.commit.prefix(8))" }

  static let package = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()

  static func folder(_ variable: String, beside name: String) -> FilePath {
    if let named = getenv(variable).map({ String(cString: $0) }), !named.isEmpty { return FilePath(named) }
    return package.removingLastComponent().appending(name)
  }

  static let all: [KnownPair] = {
    let file = folder("HOPD_FIXTURES", beside: "shared/fixtures").appending("swiftdata-source/pairs.json")
    guard let data = try? Data(contentsOf: URL(filePath: file.string)) else { return [] }
    return (try? JSONDecoder().decode(List.self, from: data))?.pairs ?? []
  }()

  var clone: FilePath {
    Self.folder("HOPD_SOURCES", beside: ".mirror").appending(repository.replacing("/", with: "+")).appending("repo")
  }

  /// Runs git in the clone.
  func git(_ words: [String]) -> [UInt8]? {
    let environment = ["PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"]
    let answer = ProgramOutput.of(["git", "-C", clone.string] + words, environment: environment)
    return answer?.status == 0 ? answer?.output : nil
  }

  /// The source of the target that has the models, at the commit; nil without the clone.
  func target() throws -> SourceTarget? {
    guard git(["cat-file", "-e", source.commit]) != nil else { return nil }
    let top = source.paths.first?.split(separator: "/").dropLast().first.map(String.init) ?? ""
    return try GitSource(repository: clone, folder: top).target(at: source.commit, choice: SourceChoice())
  }
}

@Suite(.serialized) struct PairTests {
  @Test(
    .enabled(if: TestReader.program != nil, TestReader.absence),
    arguments: KnownPair.all)
  func everyHashOfTheStoreIsDerived(_ pair: KnownPair) throws {
    guard let target = try pair.target() else {
      print("➜ skipped: no clone of \(pair.repository) in \(pair.clone)")
      return
    }
    let models = try SourceModels(target, schema: pair.source.roots.word)
    let derived = try #require(models.versions.first?.derived)
    #expect(derived.refusals.isEmpty, "\(derived.refusals.map(\.description).joined(separator: "\n"))")
    let hashes = (derived.model?.versionHashes ?? [:]).mapValues(\.description)
    let wrong = Set(pair.hashes.keys).union(hashes.keys).filter { pair.hashes[$0] != hashes[$0] }.sorted()
    print(
      "\(pair): \(pair.hashes.count - wrong.count) of \(pair.hashes.count) entities equal, \(target.files.count) files")
    #expect(wrong.isEmpty)
    if let checksum = pair.checksum { #expect(derived.model?.versionChecksum == checksum) }
    if let model = derived.model {
      if let recorded = pair.store.value {
        var known = PinnedHashes()
        known.add("\"\(recorded)\"".utf8, of: "manifest.json")
        #expect(known.place(of: model) == "manifest.json:1")
      }
      try compare(model, with: pair)
    }
  }

  /// What is in no hash: the model that the store holds makes the same tables and indexes.
  private func compare(_ model: ManagedObjectModel, with pair: KnownPair) throws {
    guard let blob = pair.store.blob, let bytes = pair.git(["cat-file", "blob", blob]) else { return }
    let path = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-pair-\(UUID().uuidString).store")
    try Data(bytes).write(to: URL(filePath: path.string))
    defer { try? FileManager.default.removeItem(atPath: path.string) }
    let held = try #require(StoreModels.bundle(ofStoreAt: path).versions.first)
    let framework = pair.framework ?? 1344
    #expect(
      StoreSchema(model: model, frameworkVersion: framework).createStatements
        == StoreSchema(model: held, frameworkVersion: framework).createStatements)
    for entity in model.entities {
      let other = try #require(held.entity(named: entity.name))
      #expect(entity.relationships.map(\.deleteRule) == other.relationships.map(\.deleteRule))
      #expect(entity.attributes.map(\.renamingIdentifier) == other.attributes.map(\.renamingIdentifier))
      #expect(entity.attributes.map(\.customClassName) == other.attributes.map(\.customClassName))
      #expect(entity.attributes.map(\.valueTransformerName) == other.attributes.map(\.valueTransformerName))
    }
  }
}
