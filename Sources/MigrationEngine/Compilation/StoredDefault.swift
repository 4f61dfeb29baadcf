// Default values of attributes as SQL.

import ManagedObjectModel
import PersistentStore
import SQLite

/// Default values as a store holds them (docs/formats/store-layout.md, "Values in columns").
package enum StoredDefault {
  /// The SQL literal of a default; nil where it is an object that only the app can store.
  package static func literal(of value: AttributeDefault, for attribute: Attribute) -> SQLExpression? {
    switch value {
    case .integer(let number): .integer(number)
    case .boolean(let flag): .integer(flag ? 1 : 0)
    case .double(let number), .date(let number): .value(.real(number))
    // Decimal columns have NUMERIC affinity, which turns the text into a number as far as it is one exactly.
    case .decimal(let text): .value(.text(text))
    case .string(let text): .value(.text(text))
    case .uuid(let bytes): .value(.blob(bytes))
    case .binary(let bytes):
      .value(.blob((attribute.hasExternalForm ? [ExternalDataForm.inlinePrefix] : []) + bytes))
    case .archived: nil
    }
  }
}
