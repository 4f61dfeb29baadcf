// Files with syntax errors. An error may hide any declaration, and the parser continues with a guess, so nothing is
// derived from such a file. A file that has nothing to do with the models is left alone.

import Diagnostics
import SystemPackage

extension SourceTarget {
  /// Throws if a file with a syntax error may declare a model, a version or a migration plan.
  func requireParsed() throws(HopdError) {
    for file in facts.indices where facts[file].mayDeclareModels == true { try requireParsed(file) }
  }

  /// Throws if a file has a syntax error.
  func requireParsed(_ file: Int) throws(HopdError) {
    let errors = (facts[file].faults ?? []).map { fault in
      HopdError(.sourceUnclear, "syntax error: \(fault.message)", at: place(of: fault, in: file), hint: Self.remedy)
    }
    guard let first = errors.first else { return }
    guard errors.count > 1 else { throw first }
    throw HopdError(
      .sourceUnclear, "the file has syntax errors, the first one: \(facts[file].faults?.first?.message ?? "")",
      at: first.place, hint: Self.remedy, reasons: errors.map { HopdError($0.code, $0.message, at: $0.place) })
  }

  private static let remedy =
    "correct it and compile the app; hopctl reads the syntax of Swift 6.3"

  /// A remark on files with syntax errors that declare nothing of the models.
  var unparsedFiles: HopdError? {
    let files = facts.indices.filter { facts[$0].faults != nil && facts[$0].mayDeclareModels != true }
    guard let first = files.first, let fault = facts[first].faults?.first else { return nil }
    return HopdError(
      .schemaChosen,
      "\(files.count) \(files.count == 1 ? "file has a syntax error" : "files have syntax errors") and no model: "
        + "\(fault.message). Nothing is taken from such a file", at: place(of: fault, in: first))
  }
}
