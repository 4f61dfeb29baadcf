// The forms that a binary value with external storage has in its column. Planner, engine, verifier, dump and filler all
// use this file, so that they agree on which values are references.

import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// A value with external storage has neither of the two forms, or its reference is not a plain UUID.
  package static let externalDataMalformed = HopdError.Code("external-data-malformed", exit: .dataError)
  /// A referenced file is not a plain file: a link, a directory, a FIFO.
  package static let externalDataUnsuitable = HopdError.Code("external-data-unsuitable", exit: .dataError)
  /// A referenced file does not exist, and its content is needed.
  package static let externalDataMissing = HopdError.Code("external-data-missing", exit: .dataError)
  /// A referenced file is too large to become a value in a column.
  package static let externalDataTooLarge = HopdError.Code("external-data-too-large", exit: .dataError)
  /// Files to which no value of the migrated store refers any more.
  package static let externalDataUnreferenced = HopdError.Code("external-data-unreferenced", severity: .note)
}

/// Name of an external file: 36 characters of an upper-case UUID (docs/formats/store-layout.md, "External binary
/// data"). No other name is accepted, so none leads out of the directory.
package struct ExternalFileName: Sendable, Hashable {
  /// The 36 characters.
  package let text: String

  /// Creates a name; nil unless the bytes are an upper-case UUID.
  package init?(_ bytes: some Collection<UInt8>) {
    guard bytes.count == 36 else { return nil }
    for (place, byte) in bytes.enumerated() {
      let isDash = place == 8 || place == 13 || place == 18 || place == 23
      let isDigit = (0x30...0x39).contains(byte) || (0x41...0x46).contains(byte)
      guard isDash ? byte == 0x2d : isDigit else { return nil }
    }
    text = String(decoding: bytes, as: UTF8.self)
  }
}

/// The form of a value with external storage, by its first byte (docs/formats/store-layout.md, "External binary data").
package enum ExternalDataForm: Sendable, Hashable {
  /// 01, then this many bytes of content; 01 alone is an empty value.
  case inline(count: Int64)
  /// 02, the name of a file, NUL.
  case reference(ExternalFileName)
  /// Any other value, including an empty one.
  case malformed

  /// Number of bytes of a reference.
  package static let referenceLength = 38
  /// First byte of a value that is in the column itself.
  package static let inlinePrefix: UInt8 = 1
  /// First byte of a reference.
  package static let referencePrefix: UInt8 = 2

  /// The form of a value of `length` bytes; `head` has at least its first 38 bytes, or all.
  package init(head: some RandomAccessCollection<UInt8>, length: Int64) {
    switch head.first {
    case ExternalDataForm.inlinePrefix where length >= 1: self = .inline(count: length - 1)
    case ExternalDataForm.referencePrefix:
      guard length == Int64(ExternalDataForm.referenceLength), head.count >= ExternalDataForm.referenceLength,
        head.dropFirst(ExternalDataForm.referenceLength - 1).first == 0,
        let name = ExternalFileName(head.dropFirst().prefix(36))
      else {
        self = .malformed
        return
      }
      self = .reference(name)
    default: self = .malformed
    }
  }

  /// The form of a whole value.
  package init(_ bytes: [UInt8]) { self.init(head: bytes, length: Int64(bytes.count)) }

  /// Returns the 38 bytes that refer to a file.
  package static func reference(to name: ExternalFileName) -> [UInt8] {
    [referencePrefix] + Array(name.text.utf8) + [0]
  }

  /// Largest file that may become a value in a column: SQLite's own limit for values, a billion bytes, and a quarter of
  /// the memory, because up to three copies of a value exist while its row is written.
  package static func largestValue(memoryLimit: Int64) -> Int64 {
    min(1_000_000_000 - 4096, max(1 << 20, memoryLimit / 4))
  }

  /// SQL for the content of a plain column as an inline value. `||` turns two blobs into text, byte for byte, so the
  /// result is cast back.
  package static func inlineExpression(ofPlain column: SQLExpression) -> SQLExpression {
    "CASE WHEN \(column) IS NOT NULL THEN CAST(X'01' || \(column) AS BLOB) END"
  }

  /// SQL for the plain content of a column with external storage. References, and malformed values, are passed to
  /// `contentFunction`.
  package static func plainExpression(ofExternal column: SQLExpression) -> SQLExpression {
    "CASE WHEN \(column) IS NULL THEN NULL WHEN substr(\(column), 1, 1) = X'01' THEN substr(\(column), 2)"
      + " ELSE \(contentFunction)(\(column)) END"
  }

  /// SQL function from a reference to the content of its file; the caller that runs `plainExpression` registers it.
  package static let contentFunction = SQLExpression.function("hopd_external_content", .readsFiles)
}
