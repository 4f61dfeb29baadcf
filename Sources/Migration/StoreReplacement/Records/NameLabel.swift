// Names of hopd's own files begin with the store's. A long one is cut, so that job, hop and the suffixes of side files
// fit into the 255 bytes of a file name; a digest distinguishes names with the same beginning.

import SystemPackage

/// A store's name as part of names made from it.
enum NameLabel {
  /// Longer names are cut.
  private static let longest = 160
  /// A name that is cut keeps at most so many characters and bytes.
  private static let (characters, bytes) = (32, 128)

  /// The name, or its beginning with a digest of the whole name.
  static func label(of name: String) -> String {
    guard name.utf8.count > longest else { return name }
    // One character may have any number of bytes: letters with marks, joined pictures.
    var head = name.prefix(characters).unicodeScalars
    while String(head).utf8.count > bytes { head.removeLast() }
    return "\(String(head))~\(PathText.digest(Array(name.utf8)))"
  }

  /// Whether this may be the label of a longer name, which looks the same.
  static func mayBeCut(_ label: String) -> Bool {
    let end = label.utf8.suffix(17)
    return label.utf8.count > 17 && end.first == UInt8(ascii: "~")
      && end.dropFirst().allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}
