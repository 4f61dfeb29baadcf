// Models as short XML texts: `read("<entity name='A'/>")` reads one inside a model.

import Diagnostics
import ManagedObjectModel

/// The model in a body of XML.
func read(_ body: String, attributes: String = "") throws -> ManagedObjectModel {
  try readWithWarnings(body, attributes: attributes).model
}

/// The model in a body of XML, with its warnings.
func readWithWarnings(
  _ body: String, attributes: String = ""
) throws -> (model: ManagedObjectModel, warnings: [ModelWarning]) {
  try ModelReader.read(
    contents: Array("<?xml version=\"1.0\"?>\n<model \(attributes)>\n\(body)\n</model>".utf8), name: "Test")
}

/// The error of reading a body of XML; nil if it is read.
func failure(_ body: String) -> HopdError? {
  do {
    _ = try read(body)
    return nil
  } catch {
    return error as? HopdError
  }
}
