// File names are bytes, and JSON needs text: names are written as in a URI, byte by byte, and read back exactly.

import Diagnostics
import Glibc
import SystemPackage

/// A path inside a record: every byte that is not plain ASCII is written as %XX.
package struct PathText: Hashable, Sendable, Codable {
  /// The path.
  package let path: FilePath

  /// Wraps a path.
  package init(_ path: FilePath) { self.path = path }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    guard let path = PathText.decode(try container.decode(String.self)) else {
      throw DecodingError.dataCorruptedError(in: container, debugDescription: "not an escaped path")
    }
    self.path = path
  }

  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    try container.encode(PathText.encode(path))
  }

  static func encode(_ path: FilePath) -> String {
    bytes(of: path).map { byte in
      let isPlain = byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "%")
      return isPlain ? String(Unicode.Scalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
    }.joined()
  }

  static func decode(_ text: String) -> FilePath? {
    var bytes: [CChar] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard
          rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16), value != 0
        else { return nil }
        bytes.append(CChar(bitPattern: value))
        rest = rest.dropFirst(2)
      } else {
        guard byte > 0x20, byte < 0x7f else { return nil }
        bytes.append(CChar(bitPattern: byte))
      }
    }
    guard !bytes.isEmpty else { return nil }
    bytes.append(0)
    return FilePath(platformString: bytes)
  }

  /// The bytes of a path.
  package static func bytes(of path: FilePath) -> [UInt8] {
    path.withPlatformString { Array(UnsafeRawBufferPointer(start: $0, count: strlen($0))) }
  }

  /// A short name made from bytes (FNV-1a, 64 bits): for file names of records and locks. Two stores with the same
  /// digest disturb each other's lock or are refused when read; they never share a record.
  static func digest(_ bytes: [UInt8]) -> String {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3 }
    let text = String(hash, radix: 16)
    return String(repeating: "0", count: max(0, 16 - text.count)) + text
  }
}
