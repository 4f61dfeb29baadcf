// Simulates another program in a test: it opens a store as plain SQLite does, with a log's index in shared memory, and
// by unchecked names. hopd's own connections never do (CLinux/storevfs.c).

import SystemPackage

@testable import SQLite

extension Connection {
  /// The connection of an app that uses a store.
  package static func ofApp(_ path: FilePath, _ access: Access = .readWrite) throws(SQLiteError) -> Connection {
    try Connection(path: path, access: access, vfs: nil)
  }
}
