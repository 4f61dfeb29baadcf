// Base64 as Foundation has it: XML property lists contain data in it, and Core Data writes the digests of a model so.

import FoundationEssentials

/// Standard base64 with padding.
package enum Base64 {
  /// The text of `bytes`.
  package static func encode(_ bytes: some Sequence<UInt8>) -> String { Data(bytes).base64EncodedString() }

  /// The bytes of a text, white space ignored; nil if the text is not base64.
  package static func decode(_ text: some Sequence<UInt8>) -> [UInt8]? {
    // An array first: each byte of another module's sequence would be a call.
    let digits = [UInt8](text).filter { $0 != 0x20 && $0 != 0x09 && $0 != 0x0a && $0 != 0x0d }
    // Foundation ignores padding that is too long.
    guard digits.count.isMultiple(of: 4) else { return nil }
    return Data(base64Encoded: Data(digits)).map { Array($0) }
  }
}
