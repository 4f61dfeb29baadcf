// hopd's own records are small JSON files, each written as a whole: after a crash the file is the former record or the
// new one.

import Diagnostics
import FoundationEssentials
import SystemPackage

extension HopdError.Code {
  /// A record of hopd's own cannot be read.
  package static let recordUnreadable = HopdError.Code("record-unreadable", exit: .dataError)
  /// A record was written by a newer hopd.
  package static let recordNewer = HopdError.Code("record-newer", exit: .dataError)
}

/// A value in a file of its own.
package struct DurableRecord<Content: Codable>: Sendable {
  /// What is under the record's name.
  package enum Finding {
    /// Nothing.
    case none
    /// A record of hopd's.
    case record(Content)
    /// Something that is not a record, with the reason.
    case unreadable(HopdError)
    /// A record of a newer hopd, which is left alone.
    case newer(HopdError)

    /// The record; nil where there is none. Throws the reason where it cannot be used.
    package func get() throws -> Content? {
      switch self {
      case .none: nil
      case .record(let content): content
      case .unreadable(let error), .newer(let error): throw error
      }
    }
  }

  /// The file.
  package let path: FilePath
  private let title: String
  private let newestFormat: Int?
  private let limit: Int
  private let hints: (unreadable: String?, newer: String?)
  private let files: any DurableFileSystem

  /// The record at `path`, which messages call `title`. A record with a format number is refused above `newestFormat`,
  /// and any record above `limit` bytes.
  package init(
    _ title: String, at path: FilePath, newestFormat: Int? = nil, limit: Int = 65_536,
    hints: (unreadable: String?, newer: String?) = (nil, nil), files: any DurableFileSystem = LinuxFileSystem()
  ) {
    self.title = title
    self.path = path
    self.newestFormat = newestFormat
    self.limit = limit
    self.hints = hints
    self.files = files
  }

  /// Reads the record. Garbage is a result, not an error; a disk that cannot be read is an error.
  package func read() throws -> Finding {
    guard let status = try files.status(path) else { return .none }
    guard status.kind == .regular else { return unreadable("must be a file") }
    guard status.size <= limit else { return unreadable("is too large") }
    let data: Data
    do {
      data = Data(try files.read(path, limit: limit))
    } catch let error as HopdError where error.code == .notFound {
      return .none  // removed since its status was read
    }
    do {
      let decoder = JSONDecoder()
      // The format first: what else a newer record holds is not known.
      if let newestFormat {
        let format = try decoder.decode(RecordFormat.self, from: data).format
        guard format <= newestFormat else {
          return .newer(
            HopdError(
              .recordNewer, "\(title) has format \(format); this hopd supports \(newestFormat)", at: Place(file: path),
              hint: hints.newer))
        }
      }
      return .record(try decoder.decode(Content.self, from: data))
    } catch {
      return unreadable("cannot be read", error)
    }
  }

  private func unreadable(_ why: String, _ cause: (any Error)? = nil) -> Finding {
    .unreadable(
      HopdError(.recordUnreadable, "\(title) \(why)", at: Place(file: path), cause: cause, hint: hints.unreadable))
  }

  /// Writes the record: after a crash the file is the former record or this one.
  package func write(_ content: Content) throws { try files.writeDurably(bytes(content), to: path) }

  /// Writes the record into a folder that is new, and that its maker syncs when everything is in it.
  package func create(_ content: Content) throws { try files.createFile(path, bytes(content), mode: 0o600) }

  /// Removes the record; returns whether there was one. A removal that need not be `durable` may be undone by a crash.
  @discardableResult
  package func remove(durable: Bool = true) throws -> Bool {
    guard try files.unlinkIfPresent(path) else { return false }
    if durable { try files.syncDirectory(path.removingLastComponent()) }
    return true
  }

  /// Keys sorted, and spread over lines, for readers of a state directory or a backup.
  private func bytes(_ content: Content) throws -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    return Array(try encoder.encode(content))
  }
}

/// The part of a record that says whether the rest can be read.
private struct RecordFormat: Decodable { let format: Int }
