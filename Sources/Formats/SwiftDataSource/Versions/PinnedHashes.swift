// Version hashes that are written somewhere: in a store, or as text in the tests of an app. Apps write them as a
// dictionary by entity, as arguments of assertions, as lines of a document or in JSON, in base64 or hexadecimal, and
// some write a digest of their own over all hashes. The form around a value does not matter here: a hash includes the
// name of its entity, so a value of 256 bits that a derived model has too is the hash of that entity.

import ManagedObjectModel
import PropertyLists

/// The hashes and digests that some files or a store have, each with the place where it was found first.
package struct PinnedHashes: Sendable {
  /// Hashes, checksums (32 bytes) and digests (64 bytes).
  private var values: [[UInt8]: String] = [:]
  /// Beginnings of hexadecimal digests, by their length and text: apps cut their own ones.
  private var beginnings: [Int: [String: String]] = [:]

  /// The number of digits that a cut digest must have; fewer could be equal by chance.
  private static let leastDigits = 16

  package init() {}

  /// Whether nothing was found.
  package var isEmpty: Bool { values.isEmpty && beginnings.isEmpty }

  /// Takes the hashes of a store, called `name`.
  package init(_ hashes: [String: VersionHash], of name: String) {
    for hash in hashes.values { values[hash.bytes] = name }
    if let checksum = Base64.decode(VersionHash.checksum(of: hashes).utf8) { values[checksum] = name }
  }

  /// Adds all values in a text; `name` is its file.
  package mutating func add(_ text: some Sequence<UInt8>, of name: String) {
    // JSON encoders write “/” as “\/”.
    var word: [UInt8] = []
    var line = 1
    var escape = false
    func isPart(_ byte: UInt8) -> Bool {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "+"), UInt8(ascii: "/"):
        true
      default: false
      }
    }
    for byte in text {
      if escape, byte != UInt8(ascii: "/"), byte != UInt8(ascii: "\n") {
        // Another escape, such as a line feed, is between two values.
        endWord(&word, isPadded: false, "\(name):\(line)")
        escape = false
        continue
      }
      escape = byte == UInt8(ascii: "\\")
      if isPart(byte) {
        // A longer run is no value of this kind; it is read on to its end.
        if word.count <= 200 { word.append(byte) }
      } else if !escape {
        endWord(&word, isPadded: byte == UInt8(ascii: "="), "\(name):\(line)")
      }
      if byte == UInt8(ascii: "\n") { line += 1 }
    }
    endWord(&word, isPadded: false, "\(name):\(line)")
  }

  private mutating func endWord(_ word: inout [UInt8], isPadded: Bool, _ place: String) {
    defer { word.removeAll(keepingCapacity: true) }
    if isPadded, word.count == 43 || word.count == 86 {
      let padding = word.count == 43 ? "=" : "=="
      if let bytes = Base64.decode(word + Array(padding.utf8)) { note(bytes, place) }
    }
    var digits = word[...]
    if digits.starts(with: Array("0x".utf8)) { digits = digits.dropFirst(2) }
    guard digits.count >= Self.leastDigits, digits.count <= 128, digits.allSatisfy(\.isHexadecimalDigit) else { return }
    let text = String(decoding: digits, as: UTF8.self).lowercased()
    if digits.count == 64 || digits.count == 128 { note(Self.bytes(of: text), place) }
    if digits.count <= 64, beginnings[digits.count]?[text] == nil {
      beginnings[digits.count, default: [:]][text] = place
    }
  }

  private mutating func note(_ bytes: [UInt8], _ place: String) {
    if values[bytes] == nil { values[bytes] = place }
  }

  private static func bytes(of hexadecimal: String) -> [UInt8] {
    let digits = Array(hexadecimal.utf8)
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
    }
  }

  // MARK: Comparison

  /// Where the hash of an entity is written; nil if it is not.
  package func place(of hash: VersionHash) -> String? { values[hash.bytes] }

  /// Where a value over all hashes of a version is written: its checksum, its digest, or one of an app's own.
  package func place(of model: ManagedObjectModel) -> String? {
    let known = [model.versionChecksum, model.versionHashesDigest].lazy.compactMap { Base64.decode($0.utf8) }
    if let place = known.compactMap({ values[$0] }).first { return place }
    guard !beginnings.isEmpty else { return nil }
    for digest in Self.ownDigests(of: model.versionHashes) {
      for (count, texts) in beginnings {
        if let place = texts[String(digest.prefix(count))] { return place }
      }
    }
    return nil
  }

  /// The digests that apps make themselves: SHA-256 over lines NAME=HASH or NAME:HASH, in base64 or hexadecimal (two
  /// public apps: docs/formats/swiftdata-source.md, "Pinned hashes").
  private static func ownDigests(of hashes: [String: VersionHash]) -> Set<String> {
    var digests: Set<String> = []
    let names = hashes.sorted { $0.key < $1.key }
    for separator in ["=", ":"] {
      for isBase64 in [true, false] {
        let lines = names.map { "\($0.key)\(separator)\(isBase64 ? Base64.encode($0.value.bytes) : "\($0.value)")" }
        for order in [lines, lines.sorted()] {
          let text = order.joined(separator: "\n")
          digests.insert(ContentDigest.sha256(text.utf8))
          digests.insert(ContentDigest.sha256("\(text)\n".utf8))
        }
      }
    }
    return digests
  }
}

extension UInt8 {
  fileprivate var isHexadecimalDigit: Bool {
    switch self {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"),
      UInt8(ascii: "A")...UInt8(ascii: "F"):
      true
    default: false
    }
  }
}
