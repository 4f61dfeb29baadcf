// The forms that a binary value with external storage has in its column. The one place that knows them: planner,
// engine, verifier, dump and filler all ask here, so that "what is a reference" has one answer.

import Diagnostics
import ManagedObjectModel
import SQLite

extension HopdError.Code {
  /// A value with external storage has neither of the two forms, or its reference is no plain UUID.
  package static let externalDataMalformed = HopdError.Code("external-data-malformed", exit: .dataError)
  /// What is under a referenced name is not a plain file: a link, a directory, a FIFO.
  package static let externalDataUnsuitable = HopdError.Code("external-data-unsuitable", exit: .dataError)
  /// A referenced file is not there, and its content is needed.
  package static let externalDataMissing = HopdError.Code("external-data-missing", exit: .dataError)
  /// A referenced file is too large to become a value in a column.
  package static let externalDataTooLarge = HopdError.Code("external-data-too-large", exit: .dataError)
  /// Files that nothing in the migrated store refers to any more.
  package static let externalDataUnreferenced = HopdError.Code("external-data-unreferenced", severity: .note)
}

/// Name of an external file: 36 characters of an upper-case UUID (docs/formats/store-layout.md, "External binary
/// data"). Nothing else can be one, so no name leads out of the directory.
package struct ExternalFileName: Sendable, Hashable {
  /// The 36 characters.
  package let text: String

  /// The name, unless it is anything but an upper-case UUID.
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

/// A value with external storage, told by its first byte (docs/formats/store-layout.md, "External binary data").
package enum ExternalDataForm: Sendable, Hashable {
  /// 01, then this many bytes of content; 01 alone is an empty value.
  case inline(count: Int64)
  /// 02, the name of a file, NUL.
  case reference(ExternalFileName)
  /// Anything else, also a value without any byte.
  case malformed

  /// Bytes of a reference.
  package static let referenceLength = 38
  /// First byte of a value that is in the column itself.
  package static let inlinePrefix: UInt8 = 1
  /// First byte of a reference.
  package static let referencePrefix: UInt8 = 2

  /// The form of a value of `length` bytes of which at least the first 38, or all, are in `head`.
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

  /// The 38 bytes that refer to a file.
  package static func reference(to name: ExternalFileName) -> [UInt8] {
    [referencePrefix] + Array(name.text.utf8) + [0]
  }

  /// Largest file that may become a value in a column: SQLite's own limit for values, a billion bytes, and a quarter of
  /// the memory, as a value is there up to three times while its row is written.
  package static func largestValue(memoryLimit: Int64) -> Int64 {
    min(1_000_000_000 - 4096, max(1 << 20, memoryLimit / 4))
  }

  /// SQL: the content of a plain column as an inline value. `||` makes text of two blobs, byte for byte, so the result
  /// is cast back.
  package static func inlineExpression(ofPlain column: SQLExpression) -> SQLExpression {
    "CASE WHEN \(column) IS NOT NULL THEN CAST(X'01' || \(column) AS BLOB) END"
  }

  /// SQL: the plain content of a column with external storage. References, and whatever else there is, go to
  /// `contentFunction`.
  package static func plainExpression(ofExternal column: SQLExpression) -> SQLExpression {
    "CASE WHEN \(column) IS NULL THEN NULL WHEN substr(\(column), 1, 1) = X'01' THEN substr(\(column), 2)"
      + " ELSE \(contentFunction)(\(column)) END"
  }

  /// SQL function from a reference to the content of its file; anyone who runs `plainExpression` registers it.
  package static let contentFunction = SQLExpression.function("hopd_external_content", .readsFiles)
}
