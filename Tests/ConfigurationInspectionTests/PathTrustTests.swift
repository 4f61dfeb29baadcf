// Warnings about directories above a watched one that others may write.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import SystemPackage
import Testing

@Suite struct PathTrustTests {
  private final class Room {
    let path: FilePath

    init() throws {
      var template = Array("/tmp/hopd-trust-XXXXXX".utf8CString)
      let made = template.withUnsafeMutableBufferPointer { buffer in buffer.baseAddress.flatMap { mkdtemp($0) } }
      path = try LinuxFileSystem().canonical(FilePath(String(cString: try #require(made))))
      for folder in ["alice", "alice/in", "link"] {
        try LinuxFileSystem().makeDirectory(path.appending(folder), mode: 0o755)
      }
    }

    deinit { try? LinuxFileSystem().removeTree(path, deepest: 6) }

    func chmod(_ name: String, _ mode: mode_t) throws {
      try #require(Glibc.chmod(path.appending(name).string, mode) == 0)
    }

    /// The warnings for a watch of this directory.
    func warnings(_ directory: String, backups: String = "") throws -> [HopdError] {
      let file = path.appending("hopd.toml")
      try? LinuxFileSystem().unlink(file)
      let text = """
        [[watch]]
        name = "w"
        directory = "\(path.appending(directory))"
        models = ["/models"]
        \(backups.isEmpty ? "" : "[watch.backup]\ndirectory = \"\(path.appending(backups))\"")
        """
      try LinuxFileSystem().createFile(file, Array(text.utf8), mode: 0o644)
      return PathTrust.remarks(in: try ConfigurationLoader.load(file: file))
    }
  }

  @Test("Directories of root and of this user are trusted, and the watched directory may be open to all")
  func trusted() throws {
    let room = try Room()
    #expect(try room.warnings("alice/in").isEmpty)
    try room.chmod("alice/in", 0o777)
    #expect(try room.warnings("alice/in").isEmpty)
    #expect(try room.warnings("alice/in/missing/deeper").first?.message.hasPrefix("every user can write to") == true)
  }

  @Test("A directory above the watched one that all may write is reported with file and line, and what to type")
  func writable() throws {
    let room = try Room()
    try room.chmod("alice", 0o777)
    let warning = try #require(try room.warnings("alice/in").first)
    #expect(warning.code == .pathExposed && warning.place.line == 3)
    #expect(warning.message.hasPrefix("every user can write to \(room.path.appending("alice"))"))
    #expect(warning.hint?.contains("chmod go-w \(room.path.appending("alice"))") == true)
    // With the sticky bit, only the owner of the watched directory may exchange it.
    try room.chmod("alice", 0o1777)
    #expect(try room.warnings("alice/in").isEmpty)
  }

  @Test("Links count with the directories that they lead over, and backups count too")
  func links() throws {
    let room = try Room()
    try #require(symlink("../alice/in", room.path.appending("link/in").string) == 0)
    #expect(try room.warnings("link/in").isEmpty)
    try room.chmod("alice", 0o777)
    #expect(try room.warnings("link/in").map(\.code) == [.pathExposed])
    // Others may create a folder that is missing.
    #expect(try room.warnings("link/in", backups: "alice/backups").count == 2)
    try LinuxFileSystem().makeDirectory(room.path.appending("alice/backups"), mode: 0o700)
    #expect(try room.warnings("link/in", backups: "alice/backups").count == 2)
    try room.chmod("alice", 0o755)
    try room.chmod("link", 0o777)
    #expect(try room.warnings("link/in").map(\.code) == [.pathExposed])
  }

  @Test("A directory of another user is reported by the user's name", .enabled(if: geteuid() == 0, "needs root"))
  func owner() throws {
    let room = try Room()
    try #require(chown(room.path.appending("alice").string, 65_534, 0) == 0)
    let warning = try #require(try room.warnings("alice/in").first)
    #expect(warning.message.hasPrefix("user nobody can write to"))
  }
}
