// The library of policies in Python: it comes with the program itself, if it is not where Python looks anyway. A
// checkout has it in python/, an installation in lib/python3/dist-packages below its prefix.

import Diagnostics
import Glibc
import SystemPackage

/// The Python module hopd_policy that belongs to this program.
enum PolicyLibrary {
  /// Where the module was found, or why it is not used.
  enum Finding: Hashable {
    case folder(String)
    /// Python's own folder has it, if hopd was installed as a whole.
    case standard
    /// Others may write to that file or folder.
    case untrusted(FilePath)
    case none
  }

  /// The folder for PYTHONPATH; nil where Python's own folder has the module, or none can be trusted.
  static var folder: String? { if case .folder(let folder) = own { folder } else { nil } }

  /// The command to type where Python does not find the module.
  static var remedy: String {
    let install =
      "install it for that Python with `pip install ./python` in hopd's sources, or use the system's python3"
    switch own {
    case .untrusted(let place):
      return "hopd's own Python module is not used, because others may write to \(place.printable): "
        + "chmod go-w \(place.quotedForShell), and let it belong to you or to root"
    case .folder(let folder): return "the module is in \(folder), which that Python does not search: \(install)"
    case .standard, .none: return install
    }
  }

  private static let own: Finding = {
    var buffer = [CChar](repeating: 0, count: 4096)
    let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard length > 0 else { return .none }
    return find(for: FilePath(String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self)))
  }()

  /// Debian's Python searches it by default.
  private static let standard: FilePath = "/usr/lib/python3/dist-packages"

  /// The module of the program at that path.
  static func find(for program: FilePath) -> Finding {
    let programs = program.removingLastComponent()
    let installed = programs.removingLastComponent().appending("lib/python3/dist-packages")
    if installed == standard { return .standard }
    if let found = module(in: installed) { return found }
    // Built in a checkout: PACKAGE/.build/…/hopctl, or .build-asan and such for other kinds of builds.
    var folder = programs
    while !folder.isEmpty, folder.lastComponent != nil {
      if folder.lastComponent?.string.hasPrefix(".build") == true {
        return module(in: folder.removingLastComponent().appending("python")) ?? .none
      }
      folder.removeLastComponent()
    }
    return .none
  }

  private static func module(in folder: FilePath) -> Finding? {
    let first = folder.appending("hopd_policy").appending("__init__.py")
    guard access(first.string, R_OK) == 0 else { return nil }
    return untrusted(first).map { .untrusted($0) } ?? .folder(folder.string)
  }

  /// The file, or the lowest folder above it, where a user other than root and this one could add or replace code; nil
  /// where there is none.
  private static func untrusted(_ path: FilePath) -> FilePath? {
    var place = path
    while true {
      var found = stat()
      guard lstat(place.string, &found) == 0, found.st_mode & S_IFMT != S_IFLNK else { return place }
      guard found.st_uid == 0 || found.st_uid == geteuid() else { return place }
      // In a folder such as /tmp other users can make files, and cannot replace this one's.
      let isSticky = found.st_mode & S_IFMT == S_IFDIR && found.st_mode & S_ISVTX != 0
      guard found.st_mode & (S_IWGRP | S_IWOTH) == 0 || isSticky else { return place }
      guard place.lastComponent != nil else { return nil }
      place.removeLastComponent()
    }
  }
}
