// The real file system with a counter over its changing calls: each can be recorded, failed, or watched.

import Diagnostics
import DurableFiles
import Glibc
import Synchronization
import SystemPackage

/// File calls of Linux that can be made to fail at the N-th changing call.
final class FaultyFileSystem: DurableFileSystem {
  struct Plan {
    /// The call that fails, from 1; nil fails none.
    var failAt: Int?
    /// Do all later calls fail too?
    var isSticky = false
    var errno = EIO
    /// Called before each changing call with its number and description.
    var before: (@Sendable (Int, String) throws -> Void)?
  }

  private let real = LinuxFileSystem()
  private let plan: Plan
  private let log = Mutex<[String]>([])

  init(_ plan: Plan = Plan()) { self.plan = plan }

  /// The changing calls so far, as "rename .a.tmp a".
  var calls: [String] { log.withLock { $0 } }

  private func change(_ words: String, _ path: FilePath, _ body: () throws -> Void) throws {
    let number = log.withLock { log in
      log.append(words)
      return log.count
    }
    try plan.before?(number, words)
    if let at = plan.failAt, number == at || (plan.isSticky && number > at) {
      throw HopdError(errno: plan.errno, words, at: path)
    }
    try body()
  }

  private func name(_ path: FilePath) -> String { path.lastComponent?.string ?? "/" }

  func canonical(_ path: FilePath) throws -> FilePath { try real.canonical(path) }
  func status(_ path: FilePath) throws -> FileStatus? { try real.status(path) }
  func names(in directory: FilePath) throws -> [FilePath.Component] { try real.names(in: directory) }
  func read(_ path: FilePath, limit: Int) throws -> [UInt8] { try real.read(path, limit: limit) }
  func attributes(of path: FilePath) throws -> FileAttributes { try real.attributes(of: path) }
  func freeBytes(at path: FilePath) throws -> Int64 { try real.freeBytes(at: path) }
  func checkWritable(_ path: FilePath) throws { try real.checkWritable(path) }
  func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool? {
    try real.isOpenElsewhere(path, ifNot: body)
  }

  func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try change("create \(name(path))", path) { try real.createFile(path, bytes, mode: mode) }
  }
  func reserve(_ bytes: Int64, for path: FilePath) throws -> Bool {
    var result = false
    try change("reserve \(name(path))", path) { result = try real.reserve(bytes, for: path) }
    return result
  }
  func giveBackReserve(of path: FilePath) throws {
    try change("give-back \(name(path))", path) { try real.giveBackReserve(of: path) }
  }
  func copyFile(from source: FilePath, to destination: FilePath) throws {
    try change("copy \(name(source)) \(name(destination))", destination) {
      try real.copyFile(from: source, to: destination)
    }
  }
  func copyUnsyncedFile(from source: FilePath, to destination: FilePath) throws -> UnsyncedFile {
    var copy = UnsyncedFile {}
    try change("copy \(name(source)) \(name(destination))", destination) {
      copy = try real.copyUnsyncedFile(from: source, to: destination)
    }
    return UnsyncedFile { [self, copy] in try change("sync \(name(destination))", destination) { try copy.sync() } }
  }
  func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws {
    try change("attributes \(name(path))", path) { try real.setAttributes(attributes, of: path) }
  }
  func makeDirectory(_ path: FilePath, mode: UInt32) throws {
    try change("mkdir \(name(path))", path) { try real.makeDirectory(path, mode: mode) }
  }
  func link(_ existing: FilePath, as new: FilePath) throws {
    try change("link \(name(existing)) \(name(new))", new) { try real.link(existing, as: new) }
  }
  func rename(_ old: FilePath, to new: FilePath) throws {
    try change("rename \(name(old)) \(name(new))", new) { try real.rename(old, to: new) }
  }
  func renameNoReplace(_ old: FilePath, to new: FilePath) throws {
    try change("rename-new \(name(old)) \(name(new))", new) { try real.renameNoReplace(old, to: new) }
  }
  func unlink(_ path: FilePath) throws {
    try change("unlink \(name(path))", path) { try real.unlink(path) }
  }
  func removeDirectory(_ path: FilePath) throws {
    try change("rmdir \(name(path))", path) { try real.removeDirectory(path) }
  }
  func syncFile(_ path: FilePath) throws {
    try change("sync \(name(path))", path) { try real.syncFile(path) }
  }
  func syncDirectory(_ path: FilePath) throws {
    try change("sync-directory \(name(path))", path) { try real.syncDirectory(path) }
  }
}
