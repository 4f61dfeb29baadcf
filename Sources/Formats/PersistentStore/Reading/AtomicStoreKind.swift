// The two kinds of Core Data stores on disk that are not SQLite databases (docs/formats/xml-stores.md).

import Diagnostics
import Glibc
import SystemPackage

extension HopdError.Code {
  /// The file is a Core Data XML store.
  package static let storeOfXML = HopdError.Code("xml-store", exit: .dataError)
  /// The file is a Core Data binary store.
  package static let storeBinary = HopdError.Code("binary-store", exit: .dataError)
}

/// A kind of store that Core Data reads and writes whole.
package enum AtomicStoreKind: Sendable {
  /// NSXMLStoreType.
  case xml
  /// NSBinaryStoreType.
  case binary

  /// The number of bytes inspected at the beginning and at the end of a file.
  private static let window = 8 << 20

  /// The kind of a file; nil for every other file, and for one that cannot be read.
  package init?(of path: FilePath) {
    let descriptor = path.openForReading()
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    let start = Self.bytes(of: descriptor, at: 0, count: 4096)
    if Self.isXML(start) {
      self = .xml
      return
    }
    // The metadata of every store names the hashes. Their place in an archive is not fixed.
    let size = lseek(descriptor, 0, SEEK_END)
    guard start.starts(with: Array("bplist00".utf8)) else { return nil }
    let windows = size <= Self.window ? [0] : [0, max(Self.window, Int(size) - Self.window)]
    guard windows.contains(where: { Self.holdsHashes(Self.bytes(of: descriptor, at: $0, count: Self.window)) }) else {
      return nil
    }
    self = .binary
  }

  /// The error that a command gives that reads SQLite stores.
  func refusal(_ place: Place) -> HopdError {
    switch self {
    case .xml:
      HopdError(
        .storeOfXML, "the file is a Core Data XML store, not a SQLite one", at: place,
        hint: "convert it to a SQLite store: hopctl migrate "
          + "\(place.store?.quotedForShell ?? "STORE") --models MODEL --output NEW.sqlite")
    case .binary:
      HopdError(
        .storeBinary, "the file looks like a Core Data binary store, which hopd does not read", at: place,
        hint: "convert it with its app on a Mac: NSPersistentStoreCoordinator.migratePersistentStore"
          + "(_:to:options:type:) with NSSQLiteStoreType")
    }
  }

  /// Whether a document begins as an XML store: with the element `database` before any other.
  private static func isXML(_ bytes: [UInt8]) -> Bool {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.drop(while: { $0.isWhitespace || $0 == "\u{feff}" }).first == "<" else { return false }
    var rest = text[...]
    while let start = rest.firstIndex(of: "<") {
      let tag = rest[start...].dropFirst()
      guard tag.hasPrefix("?") || tag.hasPrefix("!") else {
        return tag.hasPrefix("database>") && (text.contains("<databaseInfo>") || text.contains("CoreData.dtd"))
      }
      rest = tag
    }
    return false
  }

  private static func holdsHashes(_ bytes: [UInt8]) -> Bool {
    let key = Array(StoreMetadata.Key.versionHashes.utf8)
    return bytes.withUnsafeBytes { buffer in
      guard buffer.count >= key.count else { return false }
      return (0...(buffer.count - key.count)).contains { start in
        buffer[start] == key[0] && buffer[start..<(start + key.count)].elementsEqual(key)
      }
    }
  }

  private static func bytes(of descriptor: Int32, at offset: Int, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      used = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
    }
  }
}
