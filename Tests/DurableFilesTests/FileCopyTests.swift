// Copies of large files: holes stay holes, the callback is called and can stop the copy, and a disk that is too small
// is reported first.

import CLinux
import Diagnostics
import Glibc
import SystemPackage
import Testing

@testable import DurableFiles

@Suite struct FileCopyTests {
  private let files = LinuxFileSystem()
  private let directory: TemporaryDirectory
  private var base: FilePath { directory.path }

  init() throws { directory = try TemporaryDirectory() }

  /// A file of that size with those parts written, and holes between them.
  private func sparse(_ name: String, size: Int64, _ parts: [(at: Int64, bytes: [UInt8])]) throws -> FilePath {
    let path = base.appending(name)
    let file = Glibc.open(path.string, O_WRONLY | O_CREAT | O_EXCL, 0o600)
    try #require(file >= 0)
    defer { close(file) }
    for part in parts { try #require(pwrite(file, part.bytes, part.bytes.count, off_t(part.at)) == part.bytes.count) }
    try #require(ftruncate(file, off_t(size)) == 0)
    return path
  }

  private func bytes(_ path: FilePath, at offset: Int64, _ count: Int) throws -> [UInt8] {
    let file = Glibc.open(path.string, O_RDONLY)
    try #require(file >= 0)
    defer { close(file) }
    var bytes = [UInt8](repeating: 0xee, count: count)
    try #require(pread(file, &bytes, count, off_t(offset)) == count)
    return bytes
  }

  private func code(_ body: () throws -> Void) -> HopdError.Code? {
    do {
      try body()
      return nil
    } catch { return (error as? HopdError)?.code }
  }

  /// With the kernel's copy, and without it.
  private static let ways: [Int32?] = [nil, EXDEV]

  private func copy(_ source: FilePath, _ name: String, way: Int32?) throws -> FilePath {
    let target = base.appending(name)
    #if DEBUG
      let answer: @Sendable (String) -> Int32? = { $0 == "copy into" ? way : nil }
      try SystemCallFault.$answer.withValue(answer) { try files.copyFile(from: source, to: target) }
    #else
      try files.copyFile(from: source, to: target)
    #endif
    return target
  }

  @Test("A sparse file of 30 GB is copied as what it is", arguments: ways)
  func holesStayHoles(way: Int32?) throws {
    let size: Int64 = 30_000_000_000
    let mark: [UInt8] = [1, 2, 3]
    let source = try sparse("sparse", size: size, [(0, mark), (9_999_999_999, mark), (20_000_000_000, mark)])
    let target = try copy(source, "copy", way: way)
    let found = try #require(try files.status(target))
    #expect(found.size == size)
    #expect(found.allocated < 1 << 20)
    for offset in [0, 9_999_999_999, 20_000_000_000] as [Int64] {
      #expect(try bytes(target, at: offset, 3) == mark)
    }
    #expect(try bytes(target, at: 9_999_999_990, 9) == [UInt8](repeating: 0, count: 9))
  }

  @Test("Holes at either end, nothing but a hole, and no hole at all", arguments: ways)
  func shapes(way: Int32?) throws {
    let block = [UInt8](repeating: 7, count: 70_000)
    let shapes: [(size: Int64, parts: [Int64])] = [
      (0, []), (1 << 20, []), (70_000, [0]), (1 << 22, [0]), (1 << 22, [(1 << 22) - 70_000]), (1 << 22, [0, 1 << 21]),
      (9 << 20, (0..<130).map { $0 * 70_000 }),
    ]
    for (index, shape) in shapes.enumerated() {
      let source = try sparse("shape\(index)", size: shape.size, shape.parts.map { ($0, block) })
      let target = try copy(source, "shape\(index)-copy", way: way)
      #expect(try files.read(target, limit: 10 << 20) == files.read(source, limit: 10 << 20), "\(shape)")
      let (of, to) = (try files.status(source)?.allocated ?? 0, try files.status(target)?.allocated ?? 0)
      #expect(to <= of + 8192, "\(shape)")
    }
  }

  @Test("Whoever waits sees life every few MiB", arguments: ways)
  func signsOfLife(way: Int32?) throws {
    let source = base.appending("large")
    try files.createFile(source, [UInt8](repeating: 9, count: 33 << 20), mode: 0o600)
    var signs = 0
    let alive = {
      signs += 1
      return true
    }
    let target = try SignsOfLife.shown(to: alive) { try copy(source, "copy", way: way) }
    // Where the file system shares blocks there is nothing to wait for.
    let isShared = try sharesBlocks(source)
    #expect(isShared || signs >= 8, "\(signs)")
    #expect(try files.status(target)?.size == 33 << 20)
  }

  @Test("A stop ends a copy, and what was begun is taken away", arguments: ways)
  func stop(way: Int32?) throws {
    let source = base.appending("large")
    try files.createFile(source, [UInt8](repeating: 9, count: 33 << 20), mode: 0o600)
    guard try !sharesBlocks(source) else {
      withKnownIssue("this file system shares blocks: not tried") { throw Errno.notSupported }
      return
    }
    var signs = 0
    let alive = {
      signs += 1
      return signs < 3
    }
    let found = code { _ = try SignsOfLife.shown(to: alive) { try copy(source, "copy", way: way) } }
    #expect(found == .interrupted && signs == 3)
    #expect(try files.names(in: base).map(\.string) == ["large"])
  }

  @Test("A file that becomes shorter while it is copied is not filled up with zeros", arguments: ways)
  func shorter(way: Int32?) throws {
    let source = base.appending("large")
    try files.createFile(source, [UInt8](repeating: 9, count: 33 << 20), mode: 0o600)
    var signs = 0
    let alive = {
      signs += 1
      if signs == 2 { truncate(source.string, 20 << 20) }
      return true
    }
    let target = try SignsOfLife.shown(to: alive) { try copy(source, "copy", way: way) }
    let isShared = try sharesBlocks(source)
    #expect(try isShared || files.status(target)?.size == 20 << 20)
  }

  private func sharesBlocks(_ source: FilePath) throws -> Bool {
    let probe = base.appending("probe")
    try files.createFile(probe, [], mode: 0o600)
    defer { unlink(probe.string) }
    let from = try files.open(source, "read", O_RDONLY)
    let to = try files.open(probe, "write", O_WRONLY)
    return clinux_share_blocks(from.number, to.number) == 0
  }

  @Test("A disk that is too small for the data is told before anything is written; holes need no room")
  func space() throws {
    guard getuid() == 0, (try? mount(base)) != nil else {
      withKnownIssue("no mounts here: not tried") { throw Errno.notPermitted }
      return
    }
    defer { umount2(base.string, Int32(MNT_DETACH)) }
    // The source is on another disk than the copy, which has 8 MiB.
    let other = try TemporaryDirectory()
    let elsewhere = other.path
    let (large, hollow) = (elsewhere.appending("large"), elsewhere.appending("hollow"))
    try files.createFile(large, [UInt8](repeating: 1, count: 20 << 20), mode: 0o600)
    try files.createFile(hollow, [1], mode: 0o600)
    try #require(truncate(hollow.string, 20 << 20) == 0)
    var signs = 0
    let alive = {
      signs += 1
      return true
    }
    let found = code {
      try SignsOfLife.shown(to: alive) { try files.copyFile(from: large, to: base.appending("large")) }
    }
    #expect(found == .noSpace && signs == 0)
    try files.copyFile(from: hollow, to: base.appending("hollow"))
    #expect(try files.names(in: base).map(\.string) == ["hollow"])
  }

  private func mount(_ path: FilePath) throws {
    guard Glibc.mount("tmpfs", path.string, "tmpfs", 0, "size=8m") == 0 else { throw Errno(rawValue: errno) }
  }

  #if DEBUG
    @Test("A directory exchanged at the last moment does not lead a change of owner to another's files")
    func exchangedDirectory() throws {
      guard getuid() == 0 else {
        withKnownIssue("not root: not tried") { throw Errno.notPermitted }
        return
      }
      let (alice, bob) = (base.appending("alice"), base.appending("bob"))
      for folder in [alice, bob] {
        try files.makeDirectory(folder, mode: 0o755)
        try files.makeDirectory(folder.appending("backups"), mode: 0o700)
      }
      try #require(chown(alice.string, 20_001, 20_001) == 0)
      try #require(chown(bob.string, 20_002, 20_002) == 0)
      let (real, moved) = (alice.string, base.appending("moved").string)
      // Exchanged by the directory's owner just before the owner is set.
      let answer: @Sendable (String) -> Int32? = { doing in
        if doing.hasPrefix("give to"), access(moved, F_OK) != 0 {
          _ = rename(real, moved)
          _ = symlink("bob", real)
        }
        return nil
      }
      try? SystemCallFault.$answer.withValue(answer) {
        try files.adoptByDirectoryOwner(alice.appending("backups"))
      }
      #expect(access(moved, F_OK) == 0)
      #expect(try files.status(bob.appending("backups"))?.owner == 0)
    }
  #endif

  @Test("Root gives away what it made, and nothing of others")
  func adoption() throws {
    guard getuid() == 0 else {
      withKnownIssue("not root: not tried") { throw Errno.notPermitted }
      return
    }
    let folder = base.appending("folder")
    try files.makeDirectory(folder, mode: 0o755)
    try files.createFile(folder.appending("own"), [], mode: 0o600)
    try files.createFile(folder.appending("others"), [], mode: 0o600)
    try files.createFile(base.appending("linked"), [], mode: 0o600)
    try files.link(base.appending("linked"), as: folder.appending("link"))
    try #require(symlink("../linked", folder.appending("symlink").string) == 0)
    try #require(chown(folder.appending("others").string, 20_002, 20_002) == 0)
    try #require(chown(folder.string, 20_001, 20_001) == 0)
    for name in ["own", "others", "link"] { try files.adoptByDirectoryOwner(folder.appending(name)) }
    _ = code { try files.adoptByDirectoryOwner(folder.appending("symlink")) }
    #expect(try files.status(folder.appending("own"))?.owner == 20_001)
    #expect(try files.status(folder.appending("others"))?.owner == 20_002)
    #expect(try files.status(folder.appending("link"))?.owner == 0)
  }
}
