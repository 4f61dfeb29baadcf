// Values of XML stores as columns store them (docs/formats/xml-stores.md, "Values").

import ManagedObjectModel
import PropertyLists
import SQLite

/// The text of an attribute, with the type that the file gives it.
struct XMLStoreValue {
  private let text: String
  private let type: String

  init(_ text: String, ofType type: String) {
    self.text = text
    self.type = type
  }

  /// The value for the column of an attribute; nil if the text or its type is not of the attribute's type.
  func stored(as attribute: Attribute) -> SQLiteValue? {
    let word = XMLStoreText.trimmed(text)
    switch (attribute.type, type) {
    case (.string, "string"): return .text(XMLStoreText.unescaped(text))
    case (.integer16, "int16"): return Int16(word).map { .integer(Int64($0)) }
    case (.integer32, "int32"): return Int32(word).map { .integer(Int64($0)) }
    case (.integer64, "int64"): return Int64(word).map { .integer($0) }
    case (.boolean, "bool"): return ["0": 0, "1": 1][word].map { .integer($0) }
    case (.date, "date"), (.double, "double"), (.float, "float"):
      guard let number = Double(word), number.isFinite else { return nil }
      return (attribute.type == .date ? number : attribute.type.real(number)).map { .real($0) }
    case (.decimal, "decimal"):
      // SQLite converts the text to a number if that is exact.
      return word.wholeMatch(of: /-?[0-9]+(\.[0-9]+)?/) == nil ? nil : .text(word)
    case (.binary, "binary"): return Base64.decode(text.utf8).map { attribute.stored($0) }
    case (.uuid, "uuid"): return UUIDText.bytes(of: word).map { .blob($0) }
    case (.uri, "uri"): return .text(XMLStoreText.unescaped(word))
    // Only an archive is what the column of a transformable has, too.
    case (.transformable, "transformable"), (.transformable, "binary"):
      guard let bytes = Base64.decode(text.utf8), bytes.starts(with: Array("bplist00".utf8)) else { return nil }
      return .blob(bytes)
    default: return nil
    }
  }
}
