// Finds the line of an entity or a property in the `contents` file of a version, for annotations of a review.

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

  /// The version's file; the bundle if it is not a source.
  package let file: FilePath
  private let lines: [Key: Int]

  /// Reads the lines of a version; a model that is not a source, or cannot be read, has no lines.
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

  /// Returns the line of a property; without one, the line of its entity; else 1.
  package func line(entity: String?, property: String?) -> Int {
    guard let entity else { return 1 }
    return lines[Key(entity: entity, property: property)] ?? lines[Key(entity: entity, property: nil)] ?? 1
  }

  /// Finds the elements by a plain search: the reader of models has already checked the file, and a wrong line does no
  /// harm.
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

  /// Returns the text without the entities of XML.
  private static func plain(_ text: String) -> String {
    guard text.contains("&") else { return text }
    var text = text
    let entities: [(String, String)] = [
      ("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&"),
    ]
    for (entity, character) in entities { text = text.replacing(entity, with: character) }
    return text
  }

  /// Returns the value of `name` in a tag.
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

/// A finding with its place in the files of the repository.
package struct PlacedFinding: Sendable {
  package let finding: CheckFinding
  package let model: String
  /// Relative to the repository, if possible.
  package let path: String
  package let line: Int
  package let level: Level

  /// The severity of a finding.
  package enum Level: String, Sendable {
    /// The check fails because of it.
    case error
    /// It stops no store, but may be unintended.
    case warning
    /// It affects only rare rows.
    case note
  }

  /// Returns all findings of a report, each at the version that must be corrected: the destination of its hop.
  ///
  /// The prefix `root` is removed from the paths.
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
        if let entity = error.place.entity,
          let place = model.origin?.place(version: version, entity: entity, property: error.place.property),
          let file = place.file
        {
          return PlacedFinding(
            finding: finding, model: model.name, path: relative(file, root), line: place.line ?? 1, level: level)
        }
        let known = places[version] ?? ModelPlaces(bundle: model.path, version: version)
        places[version] = known
        return PlacedFinding(
          finding: finding, model: model.name, path: relative(known.file, root),
          line: known.line(entity: error.place.entity, property: error.place.property), level: level)
      }
      return (model.problems + model.findings).map { placed($0, .error) }
        + (model.warnings + model.drops).map { placed($0, .warning) } + model.extremes.map { placed($0, .note) }
    }
  }

  /// Returns the version to correct: the destination of the hop, or the version whose folder is named.
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
