// Encodings of text files other than UTF-8, which spreadsheets still write. Everything behind this file reads UTF-8.

import Diagnostics
import SystemPackage

/// The encoding of a text file.
package enum TextEncoding: String, Sendable, Hashable, CaseIterable {
  case utf8 = "utf-8"
  /// With a byte order mark; without one little-endian, as Windows writes it.
  case utf16 = "utf-16"
  /// The encoding of Windows in western Europe, which contains ISO 8859-1.
  case windows1252 = "windows-1252"

  /// What the first bytes of a file show.
  enum Form: Hashable {
    case utf8
    case utf16(isBigEndian: Bool)
    case windows1252
  }

  /// Returns the form of a file by its first bytes and the mapping, and the length of its byte order mark.
  static func found(
    at bytes: ArraySlice<UInt8>, given: TextEncoding?, _ path: FilePath
  ) throws(HopdError) -> (form: Form, mark: Int) {
    switch given {
    case .windows1252: return (.windows1252, 0)
    case .utf8, .utf16, nil: break
    }
    if bytes.starts(with: [0xef, 0xbb, 0xbf]) { return (.utf8, 3) }
    if bytes.starts(with: [0xff, 0xfe]) { return (.utf16(isBigEndian: false), 2) }
    if bytes.starts(with: [0xfe, 0xff]) { return (.utf16(isBigEndian: true), 2) }
    if given == .utf16 { return (.utf16(isBigEndian: false), 0) }
    // Latin letters of UTF-16 have a zero as every other byte; no header of UTF-8 begins so.
    let head = Array(bytes.prefix(4))
    if head.count == 4, given == nil, head[1] == 0 && head[3] == 0 && head[0] != 0 && head[2] != 0 {
      throw HopdError(
        .dataInvalid, "the file is UTF-16 without a byte order mark", at: Place(file: path),
        hint: "set encoding = \"utf-16\" in the mapping")
    }
    return (.utf8, 0)
  }
}

/// Makes UTF-8 of portions of a file.
struct TextDecoder {
  private let form: TextEncoding.Form
  /// A byte or a surrogate at the end of a portion, whose other half is in the next one.
  private var rest: [UInt8] = []

  /// The code points of the bytes 80 to 9F; the five that are not assigned become U+FFFD.
  private static let windows: [UInt16] = [
    0x20ac, 0xfffd, 0x201a, 0x0192, 0x201e, 0x2026, 0x2020, 0x2021, 0x02c6, 0x2030, 0x0160, 0x2039, 0x0152, 0xfffd,
    0x017d, 0xfffd, 0xfffd, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x02dc, 0x2122, 0x0161, 0x203a,
    0x0153, 0xfffd, 0x017e, 0x0178,
  ]

  /// Makes a decoder; nil for UTF-8, which needs none.
  init?(_ form: TextEncoding.Form) {
    guard form != .utf8 else { return nil }
    self.form = form
  }

  /// Decodes a portion; nil is the end of the file. Other bytes than those of characters become U+FFFD.
  mutating func decoded(_ portion: [UInt8]?) -> [UInt8] {
    switch form {
    case .utf8: return portion ?? []
    case .windows1252:
      var text: [UInt8] = []
      text.reserveCapacity(portion?.count ?? 0)
      for byte in portion ?? [] {
        if byte < 0x80 {
          text.append(byte)
        } else {
          let unit = byte < 0xa0 ? Self.windows[Int(byte) - 0x80] : UInt16(byte)
          Self.append(Unicode.Scalar(unit), to: &text)
        }
      }
      return text
    case .utf16(let isBigEndian): return decoded(portion, isBigEndian: isBigEndian)
    }
  }

  private mutating func decoded(_ portion: [UInt8]?, isBigEndian: Bool) -> [UInt8] {
    let bytes = rest + (portion ?? [])
    rest = []
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count)
    func unit(_ place: Int) -> UInt16? {
      guard place + 1 < bytes.count else { return nil }
      let (first, second) = (UInt16(bytes[place]), UInt16(bytes[place + 1]))
      return isBigEndian ? first << 8 | second : second << 8 | first
    }
    var place = 0
    while let first = unit(place) {
      guard (0xd800...0xdbff).contains(first) else {
        Self.append(Unicode.Scalar(first), to: &text)
        place += 2
        continue
      }
      guard let second = unit(place + 2) else { break }
      place += 2
      guard (0xdc00...0xdfff).contains(second) else {
        Self.append(nil, to: &text)
        continue
      }
      let value = 0x10000 + (UInt32(first) - 0xd800) << 10 + (UInt32(second) - 0xdc00)
      Self.append(Unicode.Scalar(value), to: &text)
      place += 2
    }
    guard place < bytes.count else { return text }
    // The end of the file is no middle of a character.
    if portion == nil { Self.append(nil, to: &text) } else { rest = Array(bytes[place...]) }
    return text
  }

  private static func append(_ scalar: Unicode.Scalar?, to text: inout [UInt8]) {
    text.append(contentsOf: UTF8.encode(scalar ?? "\u{fffd}") ?? UTF8.encodedReplacementCharacter)
  }
}
