// File names from the names of a model, which may contain anything but NUL.

import ManagedObjectModel

/// Names of the files of an export, each given once.
struct FileNames {
  private var names = UniqueNames()

  /// Returns a file name: letters, digits, `_`, `-`, inner points and all that is not ASCII stay; other bytes become
  /// `%XX`.
  mutating func take(_ name: String, extension suffix: String) -> String {
    var bytes: [UInt8] = []
    for (place, byte) in name.utf8.enumerated() {
      let isLetter = (0x30...0x39).contains(byte) || (0x61...0x7a).contains(byte | 0x20)
      let isPoint = byte == UInt8(ascii: ".") && place > 0
      if isLetter || isPoint || byte >= 0x80 || "_-".utf8.contains(byte) {
        bytes.append(byte)
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        bytes += Array("%\(byte < 16 ? "0" : "")\(digits)".utf8)
      }
    }
    // File systems allow 255 bytes; a long name is told apart from others by its digest.
    if bytes.count > 200 {
      bytes = Array("\(ContentDigest.sha256(name.utf8))".utf8)
    }
    return names.take(String(decoding: bytes, as: UTF8.self)) + suffix
  }
}
