// What was found about forms that are not proven, in a file next to the sources. A person may read and commit it; a
// name or a model that hopd does not know is an error, because the form would stay refused without a word.

import Diagnostics
import ManagedObjectModel
import SwiftDataSource
import SystemPackage
import TOMLDocuments

extension HopdError.Code {
  /// A calibration file has a mistake.
  package static let calibrationInvalid = HopdError.Code("calibration-invalid", exit: .configuration)
}

/// `hop.calibration.toml`.
package enum CalibrationFile {
  package static let name = "hop.calibration.toml"

  /// The file of a folder, or the one beside a file.
  package static func path(besides path: FilePath) throws(HopdError) -> FilePath {
    (try ModelFiles.kind(of: path) == .file ? path.removingLastComponent() : path).appending(name)
  }

  /// Returns what the file of a folder says; nothing where there is none.
  package static func read(besides path: FilePath) throws(HopdError) -> CalibratedForms {
    let file = try self.path(besides: path)
    let text = try TOMLFile.text(of: file, called: "calibration", code: .calibrationInvalid)
    return try text.map { text throws(HopdError) in try parse(text, at: file) } ?? CalibratedForms()
  }

  /// Returns what the text of a file says.
  package static func parse(_ text: String, at file: FilePath) throws(HopdError) -> CalibratedForms {
    let root = try TOMLNode(toml: text, file: file, code: .calibrationInvalid)
    func mistake(_ message: String, _ node: TOMLNode) -> HopdError {
      HopdError(
        .calibrationInvalid, message, at: node.place(key: "form"),
        hint: "create it with `hopctl model calibrate`: [[form]] with name, model and evidence")
    }
    guard case .table(let top) = root.value else { return CalibratedForms() }
    var forms = CalibratedForms()
    for (key, node) in top {
      guard key == "form", case .array(let elements) = node.value else {
        throw mistake("“\(key.printableLine)” is unknown here", node)
      }
      for element in elements {
        guard case .table(let entries) = element.value, case .string(let name)? = entries["name"]?.value,
          case .string(let model)? = entries["model"]?.value
        else { throw mistake("a form has a name and a model", element) }
        forms.found[name] = model
        if case .string(let evidence)? = entries["evidence"]?.value { forms.evidence[name] = evidence }
      }
    }
    return forms
  }

  /// Returns the text of a file.
  package static func text(_ forms: CalibratedForms) -> String {
    var lines = ["# What SwiftData makes of forms that are not proven, as the app's own version hashes show.", ""]
    for (name, model) in forms.found.sorted(by: { $0.key < $1.key }) {
      lines += [
        "[[form]]", "name = \(TOMLText.quoted(name))", "model = \(TOMLText.quoted(model))",
        "evidence = \(TOMLText.quoted(forms.evidence[name] ?? ""))", "",
      ]
    }
    return lines.dropLast().joined(separator: "\n") + "\n"
  }
}
