// The real file system with something happening just before or just after a call: another program's doing, or a network
// file system's answer.

import DurableFiles
import Synchronization
import SystemPackage

/// File calls of Linux with hooks.
final class HookedFileSystem: DurableFileSystem {
  typealias Hook = @Sendable (_ call: String, _ path: FilePath) throws -> Void

  private let real = LinuxFileSystem()
  private let before: Hook
  private let after: Hook

  /// An error thrown by a hook is the call's.
  init(before: @escaping Hook = { _, _ in }, after: @escaping Hook = { _, _ in }) {
    (self.before, self.after) = (before, after)
  }

  private func made<Result>(_ call: String, _ path: FilePath, _ body: () throws -> Result) throws -> Result {
    try before(call, path)
    let result = try body()
    try after(call, path)
    return result
  }

  func canonical(_ path: FilePath) throws -> FilePath { try made("canonical", path) { try real.canonical(path) } }
  func status(_ path: FilePath) throws -> FileStatus? { try made("status", path) { try real.status(path) } }
  func names(in path: FilePath) throws -> [FilePath.Component] { try made("names", path) { try real.names(in: path) } }
  func read(_ path: FilePath, limit: Int) throws -> [UInt8] {
    try made("read", path) { try real.read(path, limit: limit) }
  }
  func attributes(of path: FilePath) throws -> FileAttributes {
    try made("attributes", path) { try real.attributes(of: path) }
  }
  func freeBytes(at path: FilePath) throws -> Int64 { try made("free", path) { try real.freeBytes(at: path) } }
  func checkWritable(_ path: FilePath) throws { try made("writable", path) { try real.checkWritable(path) } }
  func isOpenElsewhere(_ path: FilePath, ifNot body: () throws -> Void) throws -> Bool? {
    try made("lease", path) { try real.isOpenElsewhere(path, ifNot: body) }
  }
  func createFile(_ path: FilePath, _ bytes: [UInt8], mode: UInt32) throws {
    try made("create", path) { try real.createFile(path, bytes, mode: mode) }
  }
  func reserve(_ bytes: Int64, for path: FilePath) throws -> Bool {
    try made("reserve", path) { try real.reserve(bytes, for: path) }
  }
  func giveBackReserve(of path: FilePath) throws { try made("give back", path) { try real.giveBackReserve(of: path) } }
  func copyFile(from source: FilePath, to path: FilePath) throws {
    try made("copy", path) { try real.copyFile(from: source, to: path) }
  }
  func setAttributes(_ attributes: FileAttributes, of path: FilePath) throws {
    try made("set attributes", path) { try real.setAttributes(attributes, of: path) }
  }
  func makeDirectory(_ path: FilePath, mode: UInt32) throws {
    try made("mkdir", path) { try real.makeDirectory(path, mode: mode) }
  }
  func link(_ existing: FilePath, as path: FilePath) throws {
    try made("link", path) { try real.link(existing, as: path) }
  }
  func rename(_ old: FilePath, to path: FilePath) throws { try made("rename", path) { try real.rename(old, to: path) } }
  func renameNoReplace(_ old: FilePath, to path: FilePath) throws {
    try made("rename-new", path) { try real.renameNoReplace(old, to: path) }
  }
  func unlink(_ path: FilePath) throws { try made("unlink", path) { try real.unlink(path) } }
  func removeDirectory(_ path: FilePath) throws { try made("rmdir", path) { try real.removeDirectory(path) } }
  func syncFile(_ path: FilePath) throws { try made("sync", path) { try real.syncFile(path) } }
  func syncDirectory(_ path: FilePath) throws { try made("sync-directory", path) { try real.syncDirectory(path) } }
}
