// The entries of a folder. readdir returns nil both at the end and after an error, and whoever takes the one for the
// other takes a folder of stores for an empty one; so it is called here, and by the two that list an open descriptor.

import Glibc
import SystemPackage

/// An entry of a folder, valid only while it is visited.
package struct FolderEntry {
  /// The bytes of the name, with NUL at the end. They need not be UTF-8.
  package let name: UnsafePointer<CChar>
  /// What the file system returns with the name: `DT_REG`, `DT_DIR`, ...; `DT_UNKNOWN` where it returns nothing.
  package let type: Int

  /// The name as part of a path; nil for none.
  package var component: FilePath.Component? { FilePath.Component(platformString: name) }
}

extension FilePath {
  /// Visits the entries of the folder in the order of the file system, `.` and `..` too, until `visit` returns false.
  /// Throws where the folder cannot be opened, or cannot be read to its end.
  package func readEntries(_ visit: (FolderEntry) -> Bool) throws(Errno) {
    try FolderEntry.read(openDirectory(O_RDONLY | O_NONBLOCK), visit)
  }
}

extension FolderEntry {
  /// The same for an open directory, whose descriptor is closed; -1, with errno, is one that could not be opened.
  package static func read(_ descriptor: Int32, _ visit: (FolderEntry) -> Bool) throws(Errno) {
    guard descriptor >= 0 else { throw Errno(rawValue: errno) }
    guard let directory = fdopendir(descriptor) else {
      let code = errno
      close(descriptor)
      throw Errno(rawValue: code)
    }
    defer { closedir(directory) }
    while true {
      errno = 0
      guard let entry = readdir(directory) else {
        guard errno == 0 else { throw Errno(rawValue: errno) }
        return
      }
      // The name continues behind the struct's end where it is long, so it is not copied out of it.
      guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else { return }
      let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
      guard visit(FolderEntry(name: name, type: Int(entry.pointee.d_type))) else { return }
    }
  }
}

extension FilePath {
  /// The path with symbolic links resolved; nil if it does not exist.
  package var resolvingLinks: FilePath? {
    withPlatformString { name in
      guard let real = realpath(name, nil) else { return nil }
      defer { free(real) }
      return FilePath(platformString: real)
    }
  }
}
