// A real chain run through the whole pipeline with policy programs, and its result as `hopctl dump` prints it, for
// `PolicyProgramChainTests`.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import PolicyHost
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// One object of a dump.
struct DumpedThing: Decodable, Hashable {
  /// A value of an attribute.
  enum Value: Decodable, Hashable {
    case null
    case boolean(Bool)
    case number(Double)
    case text(String)
    case form([String: Value])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let value = try? container.decode(Bool.self) {
        self = .boolean(value)
      } else if let value = try? container.decode(Double.self) {
        self = .number(value)
      } else if let value = try? container.decode(String.self) {
        self = .text(value)
      } else {
        self = .form(try container.decode([String: Value].self))
      }
    }

    /// A text or number as text; nil for any other value.
    var text: String? {
      switch self {
      case .text(let text): text
      case .number(let number): Int64(exactly: number).map { String($0) } ?? String(number)
      default: nil
      }
    }
  }

  /// The objects of a relationship.
  enum Reference: Decodable, Hashable {
    case none
    case one(String)
    case many([String])

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .none
      } else if let id = try? container.decode(String.self) {
        self = .one(id)
      } else {
        self = .many(try container.decode([String].self))
      }
    }

    /// All ids.
    var ids: [String] {
      switch self {
      case .none: []
      case .one(let id): [id]
      case .many(let ids): ids
      }
    }
  }

  let entity: String
  let id: String
  let attributes: [String: Value]
  let relationships: [String: Reference]

  /// Returns an attribute as text.
  func text(_ attribute: String) -> String? { attributes[attribute]?.text }
  /// Returns the ids of the objects of a relationship.
  func ids(_ relationship: String) -> [String] { relationships[relationship]?.ids ?? [] }
}

/// The result of a chain.
struct Dump {
  let text: String
  let things: [DumpedThing]

  init(_ location: StoreLocation, catalog: ModelCatalog) throws {
    let sink = Sink()
    try StoreReader.withUnchangedStore(at: location) { reader in
      let found = try StoreIdentifier.identify(reader: reader, location: location, catalog: catalog, target: .own)
      let version = try #require(found.version)
      let framework = try reader.metadata().frameworkVersion
      let naming = try reader.joinTableNaming(for: version.model, frameworkVersion: framework)
      let schema = StoreSchema(model: version.model, frameworkVersion: framework, naming: naming)
      try StoreDump(reader: reader, schema: schema, external: ExternalDataDirectory(of: location)).write {
        sink.bytes += $0
      }
    }
    text = String(decoding: sink.bytes, as: UTF8.self)
    things = try sink.bytes.split(separator: UInt8(ascii: "\n")).map {
      try JSONDecoder().decode(DumpedThing.self, from: Data($0))
    }
  }

  private final class Sink { var bytes: [UInt8] = [] }

  /// Returns the objects of an entity.
  subscript(_ entity: String) -> [DumpedThing] { things.filter { $0.entity == entity } }

  /// The number of objects of each entity.
  var counts: [String: Int] { things.reduce(into: [:]) { $0[$1.entity, default: 0] += 1 } }

  /// Returns every object without primary keys: it is named by the first attribute of `names` that it has, and its
  /// relationships use such names.
  func content(namedBy names: [String]) throws -> Set<String> {
    var name: [String: String] = [:]
    for thing in things {
      let key = try #require(names.compactMap { thing.text($0) }.first, "\(thing.id) has none of \(names)")
      name[thing.id] = "\(thing.entity) \(key)"
    }
    #expect(Set(name.values).count == things.count, "two objects of one name")
    return Set(
      try things.map { thing in
        let attributes = thing.attributes.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        let relationships = try thing.relationships.sorted { $0.key < $1.key }.map { key, reference in
          "\(key)=\(try reference.ids.map { try #require(name[$0]) }.sorted())"
        }
        return "\(name[thing.id] ?? ""): \(attributes) \(relationships)"
      })
  }
}

/// A chain of the fixtures, copied into its own folder, and the programs that have its policies.
final class ProgramChain {
  private struct Case: Decodable {
    let store: String
    let models: String
    let to: String
  }

  let catalog: ModelCatalog
  private let folder: FilePath
  private let target: String
  private let store: FilePath
  private let bindings: [String: PolicyBinding]

  /// `mappings` nil: the fixture's.
  init(_ name: String, mappings: [FilePath]? = nil, policies: [String: [String]] = [:]) throws {
    let fixture = try #require(Fixtures.root).appending("chains").appending(name)
    let facts = try Fixtures.json(Case.self, at: fixture.appending("case.json"))
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-programs-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    let source = fixture.appending(facts.store).removingLastComponent()
    for file in Fixtures.names(in: source) where file != "ORIGIN" {
      try FileManager.default.copyItem(atPath: source.appending(file).string, toPath: folder.appending(file).string)
    }
    var catalog = try ModelCatalog.load([fixture.appending(facts.models)])
    try catalog.loadMappings(mappings ?? [fixture.appending("mappings")], beside: [])
    self.catalog = catalog
    target = facts.to
    store = folder.appending(fixture.appending(facts.store).lastComponent?.string ?? "")
    bindings = policies.mapValues { PolicyBinding(command: $0) }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  /// Migrates along the chain up to a version in chunks of three rows, as a copy; the programs' output goes to
  /// `observer`.
  func migrated(to version: String? = nil, observer: @escaping (MigrationEvent) -> Void = { _ in }) throws -> Dump {
    let output = folder.appending("\(UUID().uuidString).sqlite")
    var request = MigrationRequest(
      location: CanonicalStoreLocation(unresolved: store), catalog: catalog, target: .named(version ?? target),
      output: output,
      settings: MigrationSettings(verification: .full), stateDirectory: folder.appending("state"), job: "ab12")
    request.engine.chunkRowsMax = 3
    let bindings = bindings
    request.policies = { isStopped, lines in PolicyPrograms(bindings, isStopped: isStopped, observer: lines) }
    #expect(try MigrationPipeline().run(request, stop: StopSignal(), observer: observer).result == .migrated)
    return try Dump(StoreLocation(database: output), catalog: catalog)
  }
}

/// Programs that have policies.
enum ChainPrograms {
  private static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
  /// The interpreter itself: a version manager's shim needs an environment that policies do not get.
  static let interpreter: String? = ["/usr/bin/python3", "/usr/local/bin/python3"].first { access($0, X_OK) == 0 }

  /// Returns the command of an example in Python.
  static func python(_ name: String, _ arguments: String...) throws -> [String] {
    [try #require(interpreter), root.appending("Examples/Policies/python").appending(name).string] + arguments
  }

  /// Returns the command of the example in Swift, which is built beside the tests.
  static func swift() throws -> [String] {
    var buffer = [CChar](repeating: 0, count: 4096)
    try #require(readlink("/proc/self/exe", &buffer, buffer.count - 1) > 0)
    let own = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let folders = ([own] + CommandLine.arguments).map { FilePath($0).removingLastComponent() }
    let path = folders.map { $0.appending("BookToBookPolicy") }.first { access($0.string, X_OK) == 0 }
    return [try #require(path?.string, "BookToBookPolicy is not built beside the tests")]
  }

  /// Whether a policy may be a program of this build. A sanitizer's shadow memory does not fit into the memory limit of
  /// a policy; `tools/sanitize` sets the variable.
  static let runsSwift = getenv("HOPD_SANITIZER") == nil

  /// Returns text mappings of a chain that replace its policies.
  static func textMappings(_ chain: String) -> FilePath { root.appending("Tests/ChainMappings").appending(chain) }
}
