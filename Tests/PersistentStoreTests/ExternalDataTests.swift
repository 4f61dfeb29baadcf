// The two forms of a value with external storage, distinguished from all other values, and the access to the files.

import BlockingTests
import Diagnostics
import Glibc
import SystemPackage
import Testing

@testable import PersistentStore

@Suite(.blocking) struct ExternalDataTests {
  private static let uuid = "5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33"
  private static let reference: [UInt8] = [2] + Array(uuid.utf8) + [0]

  @Test func theFirstByteTells() {
    #expect(ExternalDataForm([1]) == .inline(count: 0))
    #expect(ExternalDataForm([1, 2, 3]) == .inline(count: 2))
    // An inline value with the length of a reference is still inline.
    #expect(ExternalDataForm([1] + Self.reference.dropFirst()) == .inline(count: 37))
    guard case .reference(let name) = ExternalDataForm(Self.reference) else {
      Issue.record("the reference was not told")
      return
    }
    #expect(name.text == Self.uuid)
    #expect(ExternalDataForm.reference(to: name) == Self.reference)
  }

  /// Every single byte of a reference, set to every value: only a digit in place of a digit leaves a reference.
  @Test func aReferenceIsExactlyThat() {
    let digits = Set("0123456789ABCDEF".utf8)
    let dashes: Set<Int> = [9, 14, 19, 24]
    for place in Self.reference.indices {
      for byte in UInt8.min...UInt8.max {
        var bytes = Self.reference
        bytes[place] = byte
        let isReference = if case .reference = ExternalDataForm(bytes) { true } else { false }
        let expected =
          place == 0 || place == 37 || dashes.contains(place) ? byte == Self.reference[place] : digits.contains(byte)
        #expect(isReference == expected, "byte \(byte) at \(place)")
      }
    }
    for length in 0..<80 where length != 38 {
      let bytes = Array((Self.reference + [UInt8](repeating: 0, count: 80)).prefix(length))
      #expect(ExternalDataForm(bytes) == .malformed, "\(length) bytes")
    }
    for path in ["../../etc/passwd", "/etc/passwd", ".", "..", Self.uuid.lowercased(), "A/\(Self.uuid.dropFirst(2))"] {
      let padded = Array(path.utf8) + [UInt8](repeating: 0, count: max(0, 37 - path.utf8.count))
      #expect(ExternalDataForm([2] + padded) == .malformed, "\(path)")
    }
  }

  /// A store's folder with any object under the referenced name.
  private func inspecting(_ prepare: (_ store: FilePath, _ file: FilePath) -> Void) throws -> (
    ExternalFileStatus, HopdError?, [UInt8]?
  ) {
    let folder = try Folder()
    let location = StoreLocation(database: folder.path.appending("A.sqlite"))
    write("the store", to: location.database)
    prepare(location.database, location.externalDataDirectory.appending(Self.uuid))
    let name = try #require(ExternalFileName(Self.uuid.utf8))
    let directory = try ExternalDataDirectory(of: location)
    do {
      return (directory.status(of: name), nil, try directory.content(of: name, limit: 100))
    } catch {
      return (directory.status(of: name), error, nil)
    }
  }

  private func write(_ text: String, to path: FilePath) {
    let descriptor = open(path.string, O_WRONLY | O_CREAT | O_TRUNC, 0o644)
    _ = Array(text.utf8).withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
  }

  private func makeDirectories(above file: FilePath) {
    mkdir(file.removingLastComponent().removingLastComponent().string, 0o755)
    mkdir(file.removingLastComponent().string, 0o755)
  }

  @Test func aPlainFileIsRead() throws {
    let (status, error, content) = try inspecting { _, file in
      makeDirectories(above: file)
      write("content", to: file)
    }
    #expect(status == .file(bytes: 7))
    #expect(error == nil)
    #expect(content == Array("content".utf8))
  }

  @Test func aLargeFileIsRefusedWithItsSize() throws {
    let (_, error, _) = try inspecting { _, file in
      makeDirectories(above: file)
      write(String(repeating: "x", count: 101), to: file)
    }
    #expect(error?.code == .externalDataTooLarge)
    #expect(error?.message.contains("101") == true)
  }

  @Test func nothingThereIsMissing() throws {
    #expect(try inspecting { _, _ in }.0 == .missing)
    let (status, error, _) = try inspecting { _, file in makeDirectories(above: file) }
    #expect(status == .missing)
    #expect(error?.code == .externalDataMissing)
  }

  /// Links, FIFOs and directories under the name, links in the path, and the store itself are never opened.
  @Test func nothingElseIsRead() throws {
    let traps: [(String, (FilePath, FilePath) -> Void)] = [
      (
        "symbolic link",
        { store, file in
          makeDirectories(above: file)
          symlink("/etc/passwd", file.string)
        }
      ),
      (
        "directory",
        { store, file in
          makeDirectories(above: file)
          mkdir(file.string, 0o755)
        }
      ),
      (
        "FIFO",
        { store, file in
          makeDirectories(above: file)
          mkfifo(file.string, 0o644)
        }
      ),
      (
        "second name of the store",
        { store, file in
          makeDirectories(above: file)
          link(store.string, file.string)
        }
      ),
      (
        "link",
        { store, file in
          let elsewhere = store.removingLastComponent().appending("elsewhere")
          mkdir(elsewhere.string, 0o755)
          write("content", to: elsewhere.appending(Self.uuid))
          mkdir(file.removingLastComponent().removingLastComponent().string, 0o755)
          symlink(elsewhere.string, file.removingLastComponent().string)
        }
      ),
      (
        "link",
        { store, file in
          let elsewhere = store.removingLastComponent().appending("elsewhere")
          mkdir(elsewhere.string, 0o755)
          mkdir(elsewhere.appending("_EXTERNAL_DATA").string, 0o755)
          write("content", to: elsewhere.appending("_EXTERNAL_DATA").appending(Self.uuid))
          symlink(elsewhere.string, file.removingLastComponent().removingLastComponent().string)
        }
      ),
    ]
    for (name, trap) in traps {
      let (status, error, content) = try inspecting(trap)
      guard case .unsuitable(let what) = status else {
        Issue.record("\(name): \(status)")
        continue
      }
      #expect(what.contains(name), "\(what)")
      #expect(error?.code == .externalDataUnsuitable, "\(name)")
      #expect(content == nil)
    }
  }

  /// A user who may not read another user's file can still give it a second name, and hopd can read it.
  @Test(.enabled(if: geteuid() == 0, "only root can make files of other users"))
  func aSecondNameOfAnotherUsersFileIsNotRead() throws {
    let (alice, bob): (uid_t, uid_t) = (20_001, 20_002)
    func inspect(_ owner: uid_t, _ links: [(FilePath, FilePath) -> Void]) throws -> ExternalFileStatus {
      let (status, error, content) = try inspecting { store, file in
        makeDirectories(above: file)
        chown(file.removingLastComponent().string, alice, alice)
        write("content", to: file)
        chown(file.string, owner, owner)
        for link in links { link(store, file) }
      }
      #expect((error == nil) == (content != nil))
      return status
    }
    func elsewhere(_ store: FilePath, _ file: FilePath) {
      link(file.string, store.removingLastComponent().appending("private").string)
    }
    func backup(_ generation: String) -> (FilePath, FilePath) -> Void {
      { store, file in
        var folder = store.removingLastComponent()
        for name in [".A.sqlite.hopd-backups", generation, ".A_SUPPORT", "_EXTERNAL_DATA"] {
          folder.append(name)
          mkdir(folder.string, 0o755)
        }
        link(file.string, folder.appending(Self.uuid).string)
      }
    }
    guard case .unsuitable(let what) = try inspect(bob, [elsewhere]) else {
      Issue.record("bob's file was taken for alice's data")
      return
    }
    #expect(what.contains("another user"))
    // A folder of backups that alice made does not account for bob's own name.
    guard case .unsuitable = try inspect(bob, [elsewhere, backup("1")]) else {
      Issue.record("a forged backup makes bob's file alice's")
      return
    }
    // Every migration gives the files second names in its backup, whoever owns them.
    #expect(try inspect(bob, [backup("1"), backup("2")]) == .file(bytes: 7))
    // Copies of the user's own by hard links, as some programs for backups make them.
    #expect(try inspect(alice, [elsewhere]) == .file(bytes: 7))
    #expect(try inspect(bob, []) == .file(bytes: 7))
  }
}
