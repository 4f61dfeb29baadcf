// Reads a file of stages, `.hopstages.toml`; no model is inspected yet (docs/decisions/0068). An unknown key is an
// error, because a hook with a misspelt name would not run.

import Diagnostics
import ManagedObjectModel
import SystemPackage
import TOMLDocuments

extension HopdError.Code {
  /// A file of stages has a mistake, or its stages do not fit the versions.
  package static let stagesInvalid = HopdError.Code("stages-invalid", exit: .dataError)
}

/// Reads files of stages.
package enum StagesFile {
  /// Returns the stages of a file, in its order; throws one error with every mistake in `reasons`.
  package static func read(at file: FilePath) throws(HopdError) -> [DeclaredStage] {
    guard let text = try TOMLFile.text(of: file, called: "file of stages", code: .stagesInvalid) else {
      throw HopdError(.notFound, "the file of stages does not exist", at: Place(file: file), hint: "check the path")
    }
    return try stages(of: text, file: file)
  }

  /// Returns the stages of a text; `file` is the path for errors.
  package static func stages(of text: String, file: FilePath) throws(HopdError) -> [DeclaredStage] {
    let root = try TOMLNode(toml: text, file: file, code: .stagesInvalid)
    var reader = StagesReader()
    let stages = reader.stages(root)
    let mistakes = reader.mistakes.errors
    if mistakes.count == 1, let only = mistakes.first { throw only }
    guard mistakes.isEmpty else {
      throw HopdError(
        .stagesInvalid, "the file of stages has \(mistakes.count) mistakes", at: Place(file: file), reasons: mistakes)
    }
    return stages
  }
}

/// Reads the tables of one file and collects every mistake.
private struct StagesReader {
  private(set) var mistakes = TextMistakes(.stagesInvalid)

  private static let documentKeys = ["model", "stage"]
  private static let stageKeys = ["from", "to", "will_migrate", "did_migrate"]

  mutating func stages(_ root: TOMLNode) -> [DeclaredStage] {
    guard let top = mistakes.table(root, "", known: Self.documentKeys) else { return [] }
    let model = mistakes.string(top, "model", in: "")?.value
    guard let node = top["stage"], case .array(let elements) = node.value, !elements.isEmpty else {
      mistakes.add(
        "no [[stage]]", at: top["stage"] ?? root, "stage", "write one [[stage]] for each hop with hooks")
      return []
    }
    var stages: [DeclaredStage] = []
    for element in elements {
      guard let stage = stage(element, model: model) else { continue }
      if let other = stages.first(where: { $0.source == stage.source && $0.destination == stage.destination }) {
        mistakes.add(
          "the stage \(stage.title) is declared twice, first in line \(other.place.line ?? 0)", at: element, "stage",
          "put both hooks into one [[stage]]")
      }
      stages.append(stage)
    }
    return stages
  }

  private mutating func stage(_ node: TOMLNode, model: String?) -> DeclaredStage? {
    guard let entries = mistakes.table(node, "stage", known: Self.stageKeys, header: { "[[\($0)]]" }) else {
      return nil
    }
    for key in ["from", "to"] where entries[key] == nil {
      mistakes.add("`\(key)` is not set", at: node, "stage.\(key)", "write \(key) = \"…\", the name of a version")
    }
    var values: [String: String] = [:]
    for key in Self.stageKeys { values[key] = mistakes.string(entries, key, in: "stage")?.value }
    guard let source = values["from"], let destination = values["to"] else { return nil }
    if source == destination {
      mistakes.add(
        "a stage leads from one version to another", at: entries["to"] ?? node, "stage.to",
        "write the name of the version that comes after \(source)")
    }
    return DeclaredStage(
      model: model, source: source, destination: destination, willMigrate: values["will_migrate"],
      didMigrate: values["did_migrate"], place: node.place(key: "stage"))
  }
}
