// Where an entity or a property is in the `contents` file of a version: annotations of a review point there.

import Diagnostics
import ManagedObjectModel
import PropertyLists
import SystemPackage

/// Lines of a source model.
package struct ModelPlaces: Sendable {
  private struct Key: Hashable {
    let entity: String
    let property: String?
  }

  /// The file; that of the version, or the bundle where it is not a source.
  package let file: FilePath
  private let lines: [Key: Int]

  /// Reads the lines of a version; a model that is not a source, or cannot be read, has none.
  package init(bundle: FilePath, version: String) {
    let source =
      bundle.extension == "xcdatamodeld"
      ? bundle.appending("\(version).xcdatamodel").appending("contents")
      : bundle.extension == "xcdatamodel" ? bundle.appending("contents") : nil
    guard let source, let bytes = try? ModelFiles.bytes(of: source, limit: 64 << 20) else {
      file = bundle
      lines = [:]
      return
    }
    file = source
    lines = ModelPlaces.lines(String(decoding: bytes, as: UTF8.self))
  }

  /// The line of a property, of its entity where it has none, or 1.
  package func line(entity: String?, property: String?) -> Int {
    guard let entity else { return 1 }
    return lines[Key(entity: entity, property: property)] ?? lines[Key(entity: entity, property: nil)] ?? 1
  }

  /// A plain search for the elements: the reader of models has judged the file already, and a wrong line does no harm.
  private static func lines(_ text: String) -> [Key: Int] {
    var found: [Key: Int] = [:]
    var entity: String?
    var line = 1
    var rest = text.utf8[...]
    while let byte = rest.first {
      rest = rest.dropFirst()
      if byte == 0x0a { line += 1 }
      guard byte == UInt8(ascii: "<") else { continue }
      let start = line
      let end = rest.firstIndex(of: UInt8(ascii: ">")) ?? rest.endIndex
      let tag = String(Substring(rest[..<end]))
      line += tag.utf8.count { $0 == 0x0a }
      rest = rest[end...]
      let element = tag.prefix { $0.isLetter }
      guard let name = name(in: tag) else { continue }
      switch element {
      case "entity":
        entity = name
        found[Key(entity: name, property: nil)] = start
      case "attribute", "relationship", "fetchedProperty":
        if let entity { found[Key(entity: entity, property: name)] = start }
      default: break
      }
    }
    return found
  }

  /// A text without the entities of XML.
  private static func plain(_ text: String) -> String {
    guard text.contains("&") else { return text }
    var text = text
    let entities: [(String, String)] = [
      ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&"),
    ]
    for (entity, character) in entities { text = text.replacing(entity, with: character) }
    return text
  }

  /// The value of `name` in a tag.
  private static func name(in tag: String) -> String? {
    for quote in ["\"", "'"] {
      for space in [" ", "\n", "\t"] {
        let mark: String = space + "name=" + quote
        guard let found = tag.ranges(of: mark).first else { continue }
        let end = Character(quote)
        return plain(String(tag[found.upperBound...].prefix { $0 != end }))
      }
    }
    return nil
  }
}

/// A finding with the place in the files of the repository.
package struct PlacedFinding: Sendable {
  package let finding: CheckFinding
  package let model: String
  /// As a path of the repository where that is possible.
  package let path: String
  package let line: Int
  package let level: Level

  /// How much it weighs.
  package enum Level: String, Sendable {
    /// The check is red because of it.
    case error
    /// It stops no store, and is perhaps not meant.
    case warning
    /// It concerns rare rows only.
    case note
  }

  /// All findings of a report, each where it is to be mended: in the version that a hop leads to.
  ///
  /// `root` is taken off the paths.
  package static func all(_ report: CheckReport, below root: FilePath) -> [PlacedFinding] {
    report.models.flatMap { model -> [PlacedFinding] in
      var places: [String: ModelPlaces] = [:]
      func placed(_ finding: CheckFinding, _ level: Level) -> PlacedFinding {
        let error = finding.error
        if let file = error.place.file, let line = error.place.line {
          return PlacedFinding(
            finding: finding, model: model.name, path: relative(file, root), line: line, level: level)
        }
        let version = version(of: error, in: model)
        let known = places[version] ?? ModelPlaces(bundle: model.path, version: version)
        places[version] = known
        return PlacedFinding(
          finding: finding, model: model.name, path: relative(known.file, root),
          line: known.line(entity: error.place.entity, property: error.place.property), level: level)
      }
      return (model.problems + model.findings).map { placed($0, .error) }
        + model.warnings.map { placed($0, .warning) } + model.extremes.map { placed($0, .note) }
    }
  }

  /// The version to mend: where the hop leads, or the one whose folder is named.
  private static func version(of error: HopdError, in model: ModelCheck) -> String {
    if let hop = model.hops.first(where: { $0.title == error.place.hop }) { return hop.step.destination }
    let folder = error.place.file?.components.last { $0.extension == "xcdatamodel" }
    if let folder { return folder.stem }
    return model.target ?? ""
  }

  private static func relative(_ path: FilePath, _ root: FilePath) -> String {
    var path = path.lexicallyNormalized()
    let root = root.lexicallyNormalized()
    if path.isAbsolute, path.starts(with: root), path != root { _ = path.removePrefix(root) }
    return path.string
  }
}
