// config/hopd.toml against the list of keys: a key that is not shown to operators does not exist for them, and a
// default that is shown must be the default.

import SystemPackage
import TOMLDocuments
import Testing

@testable import HopdConfiguration

@Suite struct SampleFileTests {
  private static let file = Repository.root.appending("config/hopd.toml")

  /// The sample with the `#` of every commented-out line removed: lines that begin with `#` and no space after it.
  private static func uncommented() throws -> String {
    try Repository.read(file).split(separator: "\n", omittingEmptySubsequences: false)
      .map { $0.hasPrefix("#") && !$0.hasPrefix("# ") ? $0.dropFirst() : $0 }.joined(separator: "\n")
  }

  @Test func showsEveryKeyAndNoOther() throws {
    let node = try TOMLNode(toml: try Self.uncommented(), file: Self.file, code: .configurationInvalid)
    let known = ConfigurationKey.all.map(\.path)
    let shown = Self.paths(in: node, below: []).filter { path in !known.contains { $0.hasPrefix(path + ".") } }
    #expect(Set(shown) == Set(known))
  }

  @Test func uncommentedItIsTheDefaults() throws {
    let node = try TOMLNode(toml: try Self.uncommented(), file: Self.file, code: .configurationInvalid)
    let minimal = try TOMLNode(
      toml: """
        [[watch]]
        name = "library"
        directory = "/srv/library/stores"
        models = ["/srv/library/models/Library.xcdatamodeld"]
        """, file: "minimal.toml", code: .configurationInvalid)
    #expect(try Self.configuration(node) == Self.configuration(minimal))
  }

  @Test func asItIsShippedItIsValidAndNotConfigured() throws {
    let loaded = try ConfigurationLoader.load(file: Self.file)
    #expect(!loaded.configuration.isConfigured)
    #expect(loaded.warnings.isEmpty)
  }

  /// The dotted paths of all keys in a tree; the elements of an array are not part of them.
  private static func paths(in node: TOMLNode, below path: [String]) -> [String] {
    switch node.value {
    case .table(let entries):
      entries.flatMap { key, entry in
        [(path + [key]).joined(separator: ".")] + paths(in: entry, below: path + [key])
      }
    case .array(let elements): elements.flatMap { paths(in: $0, below: path) }
    default: []
    }
  }

  private static func configuration(_ node: TOMLNode) throws -> Configuration {
    var reader = ConfigurationReader()
    guard case .table(var entries) = node.value, case .array(let watches)? = entries.removeValue(forKey: "watch")?.value
    else {
      Issue.record("no watch in the text")
      throw CancellationError()
    }
    var root = node
    root.value = .table(entries)
    let configuration = reader.read(root, watches: watches)
    #expect(reader.errors.isEmpty)
    #expect(reader.warnings.isEmpty)
    return configuration
  }
}
