// The content of a `.xcmappingmodel`, before any model was inspected: names, texts and expressions as the author left
// them. Filling the gaps as Xcode's compiler does needs both models and belongs to MappingCompiler.

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists

/// The source form of a mapping model.
struct XcodeMapping: Sendable {
  /// The versions for which it was made.
  var source = VersionPath("")
  var destination = VersionPath("")
  /// The version hashes of its copies of both models; nil where a copy cannot be read.
  var sourceHashes: [String: VersionHash]?
  var destinationHashes: [String: VersionHash]?
  /// Sorted by their numbers.
  var entityMappings: [XcodeEntityMapping] = []
  /// Warnings about parts that were left out.
  var warnings: [HopdError] = []
  /// Parts that cannot be followed.
  var problems: [MappingProblem] = []
}

/// One XDDEVENTITYMAPPING.
struct XcodeEntityMapping: Sendable {
  /// The author's name for it.
  var name: String?
  var source: String?
  var destination: String?
  var policy: String?
  /// Predicate text; nil takes all objects.
  var filter: String?
  var userInfo: [String: PropertyListValue] = [:]
  var attributes: [XcodePropertyMapping] = []
  var relationships: [XcodePropertyMapping] = []
  /// Line in the file, for messages.
  var line: Int
}

/// One XDDEVATTRIBUTEMAPPING or XDDEVRELATIONSHIPMAPPING.
struct XcodePropertyMapping: Sendable {
  var name: String
  /// The archived expression.
  var expression: ExpressionNode?
  /// Whether an expression is generated if none is archived.
  var isGenerated = true
  /// Relationships: the mapping whose objects are looked up, and the source objects.
  var sourceMapping: String?
  var sourceKeyPath: ExpressionNode?
  var line: Int
}

/// The last two components of `sourcemodelpath`, which stay valid when a project is moved
/// (docs/formats/mapping-models.md, "Which versions a mapping joins").
struct VersionPath: Sendable, Hashable, CustomStringConvertible {
  /// Name of the bundle; nil if the version is not in a bundle.
  let bundle: String?
  /// Name of the version.
  let version: String

  init(_ path: String) {
    let parts = path.utf8.split(separator: UInt8(ascii: "/")).suffix(2).map { String(Substring($0)) }
    version = Self.stem(parts.last ?? "", "xcdatamodel")
    bundle =
      parts.count == 2 && (parts.first ?? "").hasSuffix(".xcdatamodeld") ? Self.stem(parts[0], "xcdatamodeld") : nil
  }

  private static func stem(_ name: String, _ suffix: String) -> String {
    name.hasSuffix("." + suffix) ? String(name.dropLast(suffix.count + 1)) : name
  }

  var description: String { bundle.map { "\($0).xcdatamodeld/\(version)" } ?? version }
}
