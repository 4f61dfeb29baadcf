// Which folder a policy in Python gets its library from: never one in which another user could put code.

import BlockingTests
import Glibc
import SystemPackage
import Testing

@testable import PolicyHost

@Suite(.blocking) struct PolicyLibraryTests {
  @Test func aLibraryThatOthersMayWriteIsNotUsed() throws {
    var template = Array("/tmp/hopd-library-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let root = FilePath(platformString: template)
    let folders = [".build", ".build/debug", "python", "python/hopd_policy"].map { root.appending($0).string }
    let file = root.appending("python/hopd_policy/__init__.py").string
    defer {
      unlink(file)
      for folder in folders.reversed() + [root.string] { rmdir(folder) }
    }
    for folder in folders { try #require(mkdir(folder, 0o755) == 0) }
    close(open(file, O_WRONLY | O_CREAT, 0o644))
    let program = root.appending(".build/debug/hopctl")
    let library = root.appending("python").string
    #expect(PolicyLibrary.find(for: program) == .folder(library))
    // The file, its folder, and a folder above, in which the whole could be exchanged.
    for (path, mode) in [(file, 0o644), (folders[3], 0o755), (folders[2], 0o755), (root.string, 0o700)]
      as [(String, mode_t)]
    {
      for more in [0o020, 0o002] as [mode_t] {
        chmod(path, mode | more)
        #expect(PolicyLibrary.find(for: program) == .untrusted(FilePath(path)))
      }
      chmod(path, mode)
      guard geteuid() == 0 else { continue }
      chown(path, 20_001, 20_001)
      #expect(PolicyLibrary.find(for: program) == .untrusted(FilePath(path)))
      chown(path, 0, 0)
    }
    #expect(PolicyLibrary.find(for: program) == .folder(library))
  }
}
