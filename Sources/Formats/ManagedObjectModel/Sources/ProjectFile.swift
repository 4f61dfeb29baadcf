// Finds when the versions of a model were added, in the Xcode project that contains the bundle: each file of a project
// has an identifier of 24 hexadecimal digits, of which Xcode makes digits 9 to 16 the seconds since 2001
// (docs/formats/model-files.md, "Version order"). One scan of the file keeps only the two kinds of objects that matter;
// no content can cause recursion or growth beyond the file's size.

import Diagnostics
import SystemPackage

/// The part of a `project.pbxproj` that is about models.
struct ProjectFile {
  /// Number of folders above a bundle that are searched for a project.
  private static let heights = 8
  /// Real ones have some megabytes.
  private static let maximumBytes = 32 << 20

  /// One object of the project, with the few fields that matter.
  private struct Object {
    var isa = ""
    var path = ""
    var name = ""
    var children: [String] = []
  }

  private var files: [String: String] = [:]
  private var groups: [(name: String, children: [String])] = []

  /// Returns when each version of a bundle was added to its project, in seconds since 2001; nil if no project beside or
  /// above the bundle has the time of every version that it lists.
  ///
  /// The nearest folder with a project that lists the bundle decides. A file that cannot be read counts as missing:
  /// then the names give the order.
  static func additions(ofVersionsIn bundle: FilePath) -> [String: UInt32]? {
    guard let name = bundle.lastComponent?.string else { return nil }
    var folder = bundle.removingLastComponent()
    for _ in 0..<heights {
      let entries = (try? ModelFiles.names(in: folder.isEmpty ? "." : folder)) ?? []
      for entry in entries where entry.hasSuffix(".xcodeproj") {
        let file = folder.appending(entry).appending("project.pbxproj")
        guard let bytes = try? ModelFiles.bytes(of: file, limit: maximumBytes) else { continue }
        if let found = ProjectFile(bytes).additions(of: name) { return found }
      }
      // The search ends at the top of a checkout or of the file system.
      if entries.contains(".git") || folder.isEmpty || folder == folder.removingLastComponent() { return nil }
      folder = folder.removingLastComponent()
    }
    return nil
  }

  /// Scans the bytes of a project file.
  init(_ bytes: [UInt8]) {
    var scanner = TextListScanner(bytes)
    var depth = 0
    /// The last text at each depth, which may be a key, outermost first.
    var keys: [String] = [""]
    var object = Object()
    var key = ""
    var isValue = false
    while let token = scanner.next() {
      switch token {
      case .open:
        depth += 1
        guard depth <= 16 else { return }
        keys.append(key)
        // { objects = { IDENTIFIER = {
        if depth == 3 { object = Object() }
        (key, isValue) = ("", false)
      case .close:
        if depth == 3 { keep(object, identifier: keys.last ?? "") }
        guard depth > 0, keys.count > 1 else { return }
        keys.removeLast()
        depth -= 1
        (key, isValue) = ("", false)
      case .equals: isValue = true
      case .end: (key, isValue) = ("", false)
      case .text(let text):
        guard isValue else {
          key = text
          continue
        }
        guard depth == 3 else { continue }
        switch key {
        case "isa": object.isa = text
        case "path": object.path = text
        case "name": object.name = text
        case "children": object.children.append(text)
        default: break
        }
      }
    }
  }

  private mutating func keep(_ object: Object, identifier: String) {
    switch object.isa {
    case "XCVersionGroup":
      let path = FilePath(object.path.isEmpty ? object.name : object.path)
      if let name = path.lastComponent?.string { groups.append((name, object.children)) }
    case "PBXFileReference":
      let path = FilePath(object.path.isEmpty ? object.name : object.path)
      if path.extension == "xcdatamodel", let name = path.stem { files[identifier] = name }
    default: break
    }
  }

  private func additions(of bundle: String) -> [String: UInt32]? {
    let group = groups.filter { $0.name == bundle }
    guard group.count == 1, let children = group.first?.children else { return nil }
    var result: [String: UInt32] = [:]
    for child in children {
      guard let name = files[child], let seconds = Self.seconds(of: child) else { return nil }
      // A version that is listed twice was added at its earlier time.
      result[name] = min(result[name] ?? .max, seconds)
    }
    return result
  }

  /// The time in an identifier made by Xcode; nil for those of other programs, which derive them from digests.
  static func seconds(of identifier: String) -> UInt32? {
    let digits = Array(identifier.utf8)
    guard digits.count == 24, digits.allSatisfy({ (0x30...0x39).contains($0) || (0x41...0x46).contains($0) }),
      // Zero digits separate the time from the machine's part; Xcode's possible years are 2003 to 2040.
      digits[16...17].allSatisfy({ $0 == 0x30 }),
      let seconds = UInt32(String(decoding: digits[8..<16], as: UTF8.self), radix: 16),
      (63_072_000...1_230_768_000).contains(seconds)
    else { return nil }
    return seconds
  }
}

/// The tokens of a property list in the old text form, in which Xcode writes projects.
package struct TextListScanner {
  /// A token.
  package enum Token {
    /// `{`
    case open
    /// `}`
    case close
    case equals
    /// `;`
    case end
    case text(String)
  }

  private let bytes: [UInt8]
  private var position = 0

  /// Scans bytes.
  package init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns the next token; nil at the end, and if the bytes are not such a list. A list in parentheses yields its
  /// texts.
  package mutating func next() -> Token? {
    while position < bytes.count {
      let byte = bytes[position]
      switch byte {
      case UInt8(ascii: "{"): return step(.open)
      case UInt8(ascii: "}"): return step(.close)
      case UInt8(ascii: "="): return step(.equals)
      case UInt8(ascii: ";"): return step(.end)
      case UInt8(ascii: "\""), UInt8(ascii: "'"): return quoted(byte)
      case UInt8(ascii: "/") where isNext(UInt8(ascii: "*")): skipComment()
      case UInt8(ascii: "/") where isNext(UInt8(ascii: "/")): skipLine()
      default:
        if Self.isPlain(byte) { return plain() }
        position += 1
      }
    }
    return nil
  }

  private mutating func step(_ token: Token) -> Token {
    position += 1
    return token
  }

  private func isNext(_ byte: UInt8) -> Bool { position + 1 < bytes.count && bytes[position + 1] == byte }

  private mutating func skipComment() {
    position += 2
    while position < bytes.count {
      if bytes[position] == UInt8(ascii: "*"), isNext(UInt8(ascii: "/")) {
        position += 2
        return
      }
      position += 1
    }
  }

  private mutating func skipLine() {
    while position < bytes.count, bytes[position] != UInt8(ascii: "\n") { position += 1 }
  }

  private mutating func quoted(_ mark: UInt8) -> Token? {
    position += 1
    var text: [UInt8] = []
    while position < bytes.count {
      let byte = bytes[position]
      position += 1
      if byte == mark { return .text(String(decoding: text, as: UTF8.self)) }
      if byte == UInt8(ascii: "\\"), position < bytes.count {
        text.append(bytes[position])
        position += 1
      } else {
        text.append(byte)
      }
    }
    return nil
  }

  private mutating func plain() -> Token {
    let start = position
    while position < bytes.count, Self.isPlain(bytes[position]) {
      // A comment may follow without a space.
      if bytes[position] == UInt8(ascii: "/"), isNext(UInt8(ascii: "*")) { break }
      position += 1
    }
    return .text(String(decoding: bytes[start..<position], as: UTF8.self))
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x80...: true
    case UInt8(ascii: "_"), UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: "-"), UInt8(ascii: "$"),
      UInt8(ascii: ":"), UInt8(ascii: "+"), UInt8(ascii: "~"), UInt8(ascii: "@"):
      true
    default: false
    }
  }
}
