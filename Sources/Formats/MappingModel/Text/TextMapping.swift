// A text mapping, `.hopmap.toml`, as its file contains it (docs/decisions/0019): every key checked, every expression
// parsed, no model inspected yet. The catalog reads its versions, finds their models, and has it resolved
// (TextMappingResolver).

import Diagnostics
import Expressions
import ManagedObjectModel
import PropertyLists
import SystemPackage
import TOMLDocuments

/// One `.hopmap.toml` file.
package struct TextMapping: Sendable {
  /// The end of the name of a text mapping.
  package static let fileNameEnd = ".hopmap.toml"

  /// The file.
  package let path: FilePath
  /// `[mapping] model`: the model that has these versions, needed if several models do; nil for any.
  package let model: String?
  /// `[mapping] source` and `destination`: names of versions.
  package let sourceVersion: String
  package let destinationVersion: String
  /// `[[entity]]` in the order of the file, which is the order of execution.
  let entities: [TextEntityMapping]

  /// File name without `.hopmap.toml`.
  package var name: String {
    let name = path.lastComponent?.string ?? ""
    return name.hasSuffix(Self.fileNameEnd) ? String(name.dropLast(Self.fileNameEnd.count)) : name
  }

  /// Reads a file; throws one error with every mistake in `reasons`.
  package static func read(at file: FilePath) throws(HopdError) -> TextMapping {
    guard let text = try TOMLFile.text(of: file, called: "text mapping", code: .textMappingInvalid) else {
      throw HopdError(.notFound, "the text mapping does not exist", at: Place(file: file))
    }
    return try TextMapping(text: text, file: file)
  }

  /// Reads a text; `file` is the path for errors.
  package init(text: String, file: FilePath) throws(HopdError) {
    var reader = TextMappingReader()
    let root: TOMLNode
    do throws(HopdError) {
      root = try TOMLNode(toml: text, file: file, code: .textMappingInvalid)
    } catch {
      var failure = error
      failure.hint = "write it as TOML 1.0 says; `hopctl mapping infer` and `mapping show --text` write good ones"
      throw failure
    }
    let header = reader.header(root)
    entities = reader.entities(root)
    try reader.mistakes.check(file)
    path = file
    model = header.model
    sourceVersion = header.source
    destinationVersion = header.destination
  }
}

extension TextMapping: MappingFile {
  package var form: MappingForm { .text }
  package var sourceEntities: Set<String> { Set(entities.compactMap(\.source?.value)) }

  package func fit(source version: MappableVersion) -> MappingFit { fit(sourceVersion, version) }
  package func fit(destination version: MappableVersion) -> MappingFit { fit(destinationVersion, version) }

  /// A person wrote the names, so they decide; other mismatches are reported when the mapping is loaded.
  private func fit(_ name: String, _ version: MappableVersion) -> MappingFit {
    name == version.model.name && model.map { $0 == version.modelName } ?? true ? .exact : .unrelated
  }

  package func outlines(
    source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> [MappingOutline] { entities.map(\.outline) }

  package func load(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) throws(HopdError) -> LoadedMapping {
    LoadedMapping(mapping: try resolved(source: source, destination: destination, beside: others))
  }
}

/// A value with the place where it was written.
struct Located<Value: Sendable>: Sendable {
  let value: Value
  let place: Place
}

/// One `[[entity]]`.
struct TextEntityMapping: Sendable {
  let place: Place
  let name: Located<String>?
  let source: Located<String>?
  let destination: Located<String>?
  var filter: Located<SourceFilter>?
  let policy: String?
  let userInfo: [String: PropertyListValue]
  /// `copy`; nil if the file does not contain it.
  let copies: Bool?
  var skipped: [Located<String>]
  /// By destination name, sorted.
  var attributes: [(name: String, value: Located<ExpressionNode>)]
  /// The same; an expression may also name source objects, and then means the objects made of them.
  var relationships: [(name: String, value: Located<PropertyValue>)]
  var grouping: Located<TextGrouping>?

  /// The facts about it that look-ups need.
  var outline: MappingOutline {
    let keyCount: Int? = if case .distinctBy(let keys, _)? = grouping?.value { keys.count } else { nil }
    return MappingOutline(name: title, source: source?.value, destination: destination?.value, keyCount: keyCount)
  }

  /// Its name in messages.
  var title: String { Self.title(name: name?.value, source: source?.value, destination: destination?.value) }

  /// Returns the name by Core Data's rule for mappings, as far as the file allows it (docs/formats/mapping-models.md,
  /// "Compiling a source", rule 2).
  static func title(name: String? = nil, source: String?, destination: String?) -> String {
    if let name { return name }
    if let source, let destination { return "\(source)To\(destination)" }
    return source ?? destination ?? "?"
  }
}

/// `distinct_by`, `deduplicate_by`, `expand`.
enum TextGrouping: Sendable {
  case distinctBy([ExpressionNode], keep: KeepRule)
  case deduplicate(by: [ExpressionNode], keep: KeepRule)
  case expand(ExpressionNode)
}

extension HopdError.Code {
  /// A text mapping has a mistake, or does not fit its models.
  package static let textMappingInvalid = HopdError.Code("text-mapping-invalid", exit: .dataError)
}
