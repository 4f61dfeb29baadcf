// Which files a walk takes for stores: old stores in folders of backups only if somebody names them.

import Glibc
import StoreFleet
import SystemPackage
import Testing

@Suite struct StoreWalkTests {
  /// A folder that is removed with the files that it made.
  private final class Folder {
    let root: FilePath
    private var made: [FilePath] = []

    init() throws {
      var template = Array("/tmp/hopd-walk-XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      root = FilePath(platformString: template)
    }

    deinit {
      for path in made.reversed() { remove(path.string) }
      remove(root.string)
    }

    /// Writes a file that is long enough for a database, and makes the folders above it.
    func write(_ name: String) throws {
      var path = root
      for part in FilePath(name).removingLastComponent().components {
        path.append(part)
        if mkdir(path.string, 0o700) == 0 { made.append(path) }
      }
      let file = root.pushing(FilePath(name))
      let stream = try #require(fopen(file.string, "w"))
      fputs(String(repeating: "x", count: 200), stream)
      fclose(stream)
      made.append(file)
    }

    /// The files that a walk of these names finds, without the folder.
    func found(_ names: String...) throws -> [String] {
      var walk = try StoreWalk(names.map { root.pushing(FilePath($0)) })
      var files: [String] = []
      while true {
        let next = walk.next(2)
        if next.isEmpty { return files }
        files += next.map { String($0.path.string.dropFirst(root.string.count + 1)) }
      }
    }
  }

  @Test func backupsAreNoStoresUnlessTheyAreNamed() throws {
    let folder = try Folder()
    let elsewhere = "kept/a.sqlite-0a1b.hopd-backups"
    let backup = "\(elsewhere)/20300102T030405Z-01/a.sqlite"
    try folder.write("a.sqlite")
    try folder.write("kept/b.sqlite")
    try folder.write(backup)
    try folder.write(".a.sqlite.hopd-backups/20300102T030405Z-01/a.sqlite")
    try folder.write("\(elsewhere)/20300102T030405Z-01/c.sqlite-1.hopd-backups/20300102T030405Z-02/c.sqlite")
    #expect(try folder.found("") == ["a.sqlite", "kept/b.sqlite"])
    #expect(try folder.found("kept") == ["kept/b.sqlite"])
    // A folder of backups that is named, one below it, and a backup.
    for name in [elsewhere, "\(elsewhere)/20300102T030405Z-01", backup] {
      #expect(try folder.found(name) == [backup], "\(name)")
    }
  }
}
