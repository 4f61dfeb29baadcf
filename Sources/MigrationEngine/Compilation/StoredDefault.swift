// Default values of attributes as SQL.

import ManagedObjectModel
import PersistentStore
import SQLite

/// Default values as a store holds them (docs/formats/store-layout.md, "Values in columns").
package enum StoredDefault {
  /// The SQL literal of a default; nil where it is an object that only the app can store.
  package static func literal(of value: AttributeDefault, for attribute: Attribute) -> String? {
    switch value {
    case .integer(let number): String(number)
    case .boolean(let flag): flag ? "1" : "0"
    case .double(let number), .date(let number): SQLiteValue.real(number).literal
    // Decimal columns have NUMERIC affinity, which turns the text into a number as far as it is one exactly.
    case .decimal(let text): SQLiteValue.text(text).literal
    case .string(let text): SQLiteValue.text(text).literal
    case .uuid(let bytes): SQLiteValue.blob(bytes).literal
    case .binary(let bytes):
      SQLiteValue.blob((attribute.hasExternalForm ? [ExternalDataForm.inlinePrefix] : []) + bytes).literal
    case .archived: nil
    }
  }
}
