// Where policies in Python find their library: with the program itself, if it does not lie where Python looks anyway. A
// checkout has it in python/, an installation in lib/python3/dist-packages below its prefix.

import Glibc
import SystemPackage

/// The Python module hopd_policy that belongs to this program.
enum PolicyLibrary {
  /// The folder for PYTHONPATH; nil where Python's own folder has the module, or none is to be trusted.
  static let folder: String? = {
    var buffer = [CChar](repeating: 0, count: 4096)
    let length = readlink("/proc/self/exe", &buffer, buffer.count - 1)
    guard length > 0 else { return nil }
    let own = FilePath(String(decoding: buffer.prefix(length).map { UInt8(bitPattern: $0) }, as: UTF8.self))
    return folder(for: own)
  }()

  /// Python of Debian looks there by itself.
  private static let standard: FilePath = "/usr/lib/python3/dist-packages"

  /// The folder for the program at that path.
  static func folder(for program: FilePath) -> String? {
    let programs = program.removingLastComponent()
    let installed = programs.removingLastComponent().appending("lib/python3/dist-packages")
    if installed == standard { return nil }
    if hasModule(installed) { return installed.string }
    // Built in a checkout: PACKAGE/.build/…/hopctl, or .build-asan and such for other kinds of builds.
    var folder = programs
    while !folder.isEmpty, folder.lastComponent != nil {
      if folder.lastComponent?.string.hasPrefix(".build") == true {
        let sources = folder.removingLastComponent().appending("python")
        return hasModule(sources) ? sources.string : nil
      }
      folder.removeLastComponent()
    }
    return nil
  }

  private static func hasModule(_ folder: FilePath) -> Bool {
    let module = folder.appending("hopd_policy")
    return access(module.appending("__init__.py").string, R_OK) == 0 && isTrusted(module)
      && isTrusted(module.appending("__init__.py"))
  }

  /// Can nobody but root and this user put code there, nor exchange a folder above it?
  private static func isTrusted(_ path: FilePath) -> Bool {
    var place = path
    while true {
      var found = stat()
      guard lstat(place.string, &found) == 0, found.st_mode & S_IFMT != S_IFLNK else { return false }
      guard found.st_uid == 0 || found.st_uid == geteuid() else { return false }
      // In a folder such as /tmp others can make files, and not exchange ours.
      let isSticky = found.st_mode & S_IFMT == S_IFDIR && found.st_mode & S_ISVTX != 0
      guard found.st_mode & (S_IWGRP | S_IWOTH) == 0 || isSticky else { return false }
      guard place.lastComponent != nil else { return true }
      place.removeLastComponent()
    }
  }
}
