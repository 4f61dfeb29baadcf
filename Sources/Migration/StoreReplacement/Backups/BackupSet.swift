// The old stores: one directory per generation beside the store, holding the old database under its own name, its
// external data, and a label. One unit: it is listed, restored and removed as a whole.
//
//   .Library.sqlite.hopd-backups/20300102T030405Z-1a2b3c/Library.sqlite            hard link to the old inode
//                                                       /.Library_SUPPORT/_EXTERNAL_DATA/…
//                                                       /backup.json
//
// The database is linked last and removed first: a generation that has it is complete.

import Diagnostics
import DurableFiles
import PersistentStore
import SystemPackage

/// How many old stores are kept, for how long, and where.
package struct BackupRule: Hashable, Sendable {
  /// Generations of migrations and imports kept; 0 keeps none. Those of restores are not counted, and never removed by
  /// it.
  package var keep: Int
  /// Older ones are removed, of either class; nil, or no time at all, keeps them however old they are.
  package var keepFor: Duration?
  /// Another place for them, copied there after the swap; nil is beside the store.
  package var directory: FilePath?

  /// Notes a rule.
  package init(keep: Int = 1, keepFor: Duration? = nil, directory: FilePath? = nil) {
    self.keep = keep
    self.keepFor = keepFor
    self.directory = directory
  }

  /// No old store is kept after a success.
  package static let none = BackupRule(keep: 0)

  /// The other place, resolved now.
  func place(_ files: any DurableFileSystem) throws -> CanonicalDirectory? {
    try directory.map { try CanonicalDirectory(resolving: $0, files: files) }
  }
}

/// What made a generation.
package enum BackupClass: String, Hashable, Sendable, Codable, CaseIterable {
  /// A migration: what it replaced lives on in the migrated store.
  case migration
  /// An import into a store: what it replaced lives on in the store with more objects.
  case addition = "import"
  /// A restore: what it replaced may live nowhere else.
  case restore
}

/// The label of a generation, stored in `backup.json`.
package struct BackupRecord: Hashable, Sendable, Codable {
  /// Format of the label.
  package var format: Int = 1
  /// Where the store was.
  package var store: PathText
  /// Job that replaced it.
  package var job: String
  /// Version of the old store.
  package var from: StoreVersionMark
  /// Version it was replaced by.
  package var to: StoreVersionMark
  /// Time of the replacement, seconds since 1970.
  package var createdAt: Int64
  /// Z_UUID of the store.
  package var storeUUID: String?
  /// Journal mode it had; the kept file itself is in rollback mode.
  package var journalMode: JournalMode
  /// The file that took its place; nil where the new content was written into the same file.
  package var placed: SourceFingerprint.Stamp?
  /// Its position in the order of the store's generations, from 1: clocks jump, and two generations may be made within
  /// one second. Absent in older labels.
  package var number: Int64?
  /// What made it; absent in older labels.
  package var madeBy: BackupClass?
}

extension BackupRecord {
  /// The name that restores gave to the version that they replaced, before labels recorded what made them.
  static let replacedByRestore = "before the restore"

  /// What made the generation, also where its label is an older one.
  package var origin: BackupClass { madeBy ?? (from.name == Self.replacedByRestore ? .restore : .migration) }

  /// When it was made, in RFC 3339 form.
  package var time: String { Self.time(createdAt) }

  /// A moment, in seconds since 1970, in RFC 3339 form.
  package static func time(_ seconds: Int64) -> String { BackupTime.standardText(seconds) }
}

/// One old store.
package struct BackupGeneration: Hashable, Sendable {
  /// Its directory.
  package let directory: FilePath
  /// The database in it: a complete store.
  package let database: FilePath
  /// Its label; nil where it cannot be read.
  package let record: BackupRecord?
  /// The file of its label.
  package var label: FilePath { directory.appending(BackupSet.labelName) }
  /// Bytes of database and external data; data shared with the living store by hard links is counted too.
  package let bytes: Int64

  /// Whether it was made later than another one. The counter decides; generations without one come before all that have
  /// one, in the order of the clock. A generation whose label cannot be read comes after all that were counted up to
  /// its time, so that an older one never counts as the newest.
  func isNewer(than other: BackupGeneration) -> Bool { rank > other.rank }

  private var rank: (Int64, Int64, String) {
    guard let record else {
      return (BackupSet.highestNumber(at: BackupSet.time(of: directory) ?? 0), .max, directory.string)
    }
    return (record.number ?? 0, record.createdAt, directory.string)
  }
}

/// A folder among those of a store's generations, as it was when it was read.
struct BackupFolder {
  let path: FilePath
  /// The status of the database in it; nil where there is none.
  let database: FileStatus?
  /// Its label; nil where there is none, or where it cannot be read.
  let record: BackupRecord?
  /// Whether it has a file besides its label, but no database of the store's name: that may be the database under
  /// another name.
  var hasOtherFile = false

  /// Whether it is a copy that is still being made, or was not finished.
  var isPart: Bool { path.lastComponent?.string.hasSuffix(".part") == true }

  /// Whether it is a generation: its database is a file, and not the store itself, which is the file `living`.
  func isComplete(besides living: FileIdentity?) -> Bool {
    !isPart && database?.kind == .regular && database?.identity != living
  }
}

/// The old stores of one store.
package struct BackupSet: Sendable {
  /// The store.
  package let location: CanonicalStoreLocation
  /// Directory of the generations beside the store.
  package let directory: FilePath
  /// Directory of the generations at the configured place.
  package private(set) var elsewhere: FilePath?
  let files: any DurableFileSystem
  /// Whether these are all places of the store's generations. False where a generation was named by its folder.
  private(set) var seesEveryPlace = true

  /// The generations in the folder of the one at `generation`, and those beside the store.
  package init(location: CanonicalStoreLocation, generation: FilePath, files: any DurableFileSystem) {
    self.init(location: location, base: nil, files: files)
    let parent = generation.removingLastComponent()
    if parent != directory { elsewhere = parent }
    seesEveryPlace = false
  }

  /// The backups of the store at `location`, beside it and in the configured directory.
  package init(location: CanonicalStoreLocation, rule: BackupRule, files: any DurableFileSystem) throws {
    // A rule may be older than its directory, so the directory is resolved when it is used.
    self.init(location: location, base: try rule.place(files), files: files)
  }

  /// The backups beside the store, and those in the directory `base`.
  init(location: CanonicalStoreLocation, base: CanonicalDirectory?, files: any DurableFileSystem) {
    self.location = location
    self.files = files
    let label = NameLabel.label(of: location.fileName)
    directory = location.directory.appending(".\(label)\(BackupSet.folderSuffix)")
    elsewhere = base?.path.appending(
      "\(label)-\(PathText.digest(PathText.bytes(of: location.database)))\(BackupSet.folderSuffix)")
  }

  /// Complete generations, newest first.
  package func generations() throws -> [BackupGeneration] {
    try generations(among: folders()).map { try measured($0) }
  }

  /// The complete generations among these folders, newest first, with no bytes counted.
  func generations(among folders: [BackupFolder]) throws -> [BackupGeneration] {
    let living = try files.status(location.database)?.identity
    return folders.compactMap { folder in
      guard folder.isComplete(besides: living) else { return nil }
      return BackupGeneration(
        directory: folder.path, database: folder.path.appending(location.fileName), record: folder.record, bytes: 0)
    }.sorted { $0.isNewer(than: $1) }
  }

  /// The same generation with its bytes.
  func measured(_ generation: BackupGeneration) throws -> BackupGeneration {
    BackupGeneration(
      directory: generation.directory, database: generation.database, record: generation.record,
      bytes: try bytes(in: generation.directory))
  }

  /// The number of the next generation that is made at `now`. Requires that the store is locked, so no other process
  /// takes the same number.
  ///
  /// A label that cannot be read may hold any number that was ever given. So the count continues above all numbers that
  /// can have been given up to now, and up to the latest time in the folders' names, as the clock may have been put
  /// back.
  func nextNumber(now: Int64) throws -> Int64 {
    var last: Int64 = 0
    for folder in try folders() {
      if let record = folder.record {
        last = max(last, record.number ?? 0)
      } else if try folder.database != nil || files.status(folder.path.appending(BackupSet.labelName)) != nil {
        last = max(last, BackupSet.highestNumber(at: max(now, BackupSet.time(of: folder.path) ?? 0)))
      }
    }
    return last < .max ? last + 1 : last
  }

  /// A number above all that were given up to a moment (seconds since 1970): no process makes a million generations of
  /// one store in a second.
  static func highestNumber(at seconds: Int64) -> Int64 {
    // Far below the end, so that the count can continue.
    let end = Int64.max / 2_000_000
    return (min(max(0, seconds), end) + 1) * 1_000_000
  }

  /// When the generation in a folder was made, by the folder's name; nil where hopd did not make the name.
  package static func time(of folder: FilePath) -> Int64? {
    folder.lastComponent.flatMap { BackupTime.seconds(ofName: $0.string) }
  }

  /// The file name of a label.
  static let labelName = "backup.json"

  /// The end of the name of every folder that holds the backups of one store, in either place.
  package static let folderSuffix = ".hopd-backups"

  /// Directories that are not a generation: incomplete, half removed, or whose database is still the store itself
  /// because the swap never came to the rename.
  package func unfinished() throws -> [FilePath] { try unfinished(among: folders()).map(\.path) }

  /// Those of these directories that are not a generation.
  func unfinished(among folders: [BackupFolder]) throws -> [BackupFolder] {
    let living = try files.status(location.database)?.identity
    return folders.filter { folder in
      guard !folder.isComplete(besides: living) else { return false }
      // If the store and its folder of backups were renamed, the backups are complete under the former name. hopd
      // leaves no other file without the database, so whoever put it there must say what becomes of it.
      guard !folder.hasOtherFile else { return false }
      guard let name = folder.record?.store.path.lastComponent else { return true }
      return name.string == location.fileName
    }
  }

  /// Removes a generation or the rest of one. The database goes first, and durably: otherwise a power cut could keep
  /// only the later removals, and what is left would count as complete, or as a backup without a label.
  package func remove(_ folder: FilePath) throws {
    // Before anything goes: a folder that has to stay must stay whole.
    try files.checkWritable(folder.removingLastComponent())
    let database = folder.appending(location.fileName)
    if try files.status(database) != nil {
      try files.unlink(database)
      try files.syncDirectory(folder)
    }
    try removeTree(folder)
    let parent = folder.removingLastComponent()
    try files.syncDirectory(parent)
    // The last one takes the directory with it; the parent is the user's.
    if try files.names(in: parent).isEmpty {
      try files.removeDirectory(parent)
      try files.syncDirectory(parent.removingLastComponent())
    }
  }

  // MARK: Creation

  /// The folder in which a job makes its generation.
  func folder(job: String, now: Int64) -> FilePath {
    directory.appending("\(BackupTime.text(now))-\(job)")
  }

  /// Creates a generation: external data and label first, the link to the store last, everything synced (step A5 of
  /// docs/formats/replacement.md, "Mode rename").
  ///
  /// The folder of the generations is there, and locked.
  func make(_ folder: FilePath, _ record: BackupRecord) throws {
    try files.makeDirectory(folder, mode: 0o700)
    let copy = StoreLocation(database: folder.appending(location.fileName))
    try linkExternalData(to: copy)
    try label(folder, record)
    try files.link(location.database, as: copy.database)
    try files.syncDirectory(folder)
    try files.syncDirectory(directory)
  }

  /// Writes the label into a generation's directory.
  func label(_ folder: FilePath, _ record: BackupRecord) throws {
    try BackupSet.label(in: folder, files).create(record)
  }

  /// Gives every external file a second name in the backup. All files are linked, not only those that rows refer to: a
  /// link costs nothing, and finding the references needs the model.
  func linkExternalData(to copy: StoreLocation) throws {
    guard try files.status(location.externalDataDirectory)?.kind == .directory else { return }
    try files.makeDirectory(copy.supportDirectory, mode: 0o700)
    try files.makeDirectory(copy.externalDataDirectory, mode: 0o700)
    var copies = FileCopies(files)
    for name in try files.names(in: location.externalDataDirectory) {
      let file = location.externalDataDirectory.appending(name)
      let target = copy.externalDataDirectory.appending(name)
      guard try files.status(file)?.kind == .regular, try files.status(target) == nil else { continue }
      do {
        try files.link(file, as: target)
      } catch let error as HopdError where error.asksForCopy {
        try copies.copy(from: file, to: target)
      }
    }
    try copies.finish()
    try files.syncDirectory(copy.externalDataDirectory)
    try files.syncDirectory(copy.supportDirectory)
  }

  // MARK: Trees

  /// The folders in both places, with what they hold; throws where another user could have put them there.
  func folders() throws -> [BackupFolder] {
    try paths().map { path in
      let database = try files.status(path.appending(location.fileName))
      var folder = BackupFolder(path: path, database: database, record: BackupSet.record(in: path, files: files))
      if database == nil, !folder.isPart { folder.hasOtherFile = try hasOtherFile(than: BackupSet.labelName, in: path) }
      return folder
    }
  }

  private func hasOtherFile(than name: String, in folder: FilePath) throws -> Bool {
    try files.names(in: folder).contains { file in
      try file.string != name && files.status(folder.appending(file))?.kind == .regular
    }
  }

  /// The folders in both places, also those of unfinished copies.
  func paths() throws -> [FilePath] {
    var found: [FilePath] = []
    for parent in places {
      guard try files.status(parent)?.kind == .directory else { continue }
      try requireTrusted(parent)
      for name in try files.names(in: parent) {
        let folder = parent.appending(name)
        if try files.status(folder)?.kind == .directory { found.append(folder) }
      }
    }
    return found
  }

  static func record(in folder: FilePath, files: any DurableFileSystem) -> BackupRecord? {
    (try? label(in: folder, files).read().get()) ?? nil
  }

  /// The label of a generation. A newer hopd's counts as long as it has all that this one requires: a backup whose
  /// label is not known holds up the numbers of all others.
  private static func label(in folder: FilePath, _ files: any DurableFileSystem) -> DurableRecord<BackupRecord> {
    DurableRecord("the label of a backup", at: folder.appending(labelName), files: files)
  }

  private func bytes(in folder: FilePath, depth: Int = 0) throws -> Int64 {
    guard depth < 4 else { return 0 }
    var total: Int64 = 0
    for name in try files.names(in: folder) {
      guard let status = try files.status(folder.appending(name)) else { continue }
      let size = status.kind == .directory ? try bytes(in: folder.appending(name), depth: depth + 1) : status.size
      total = total.addingReportingOverflow(size).partialValue
    }
    return total
  }

  /// Removes a folder with its content; hopd makes nothing deeper than four levels.
  func removeTree(_ folder: FilePath) throws { try files.removeTree(folder, deepest: 4) }

  func copyTree(_ folder: FilePath, to target: FilePath, depth: Int = 0) throws {
    guard depth < 4 else { return }
    try files.makeDirectory(target, mode: 0o700)
    var copies = FileCopies(files)
    for name in try files.names(in: folder) {
      let path = folder.appending(name)
      switch try files.status(path)?.kind {
      case .directory: try copyTree(path, to: target.appending(name), depth: depth + 1)
      case .regular:
        try copies.copy(from: path, to: target.appending(name))
        // A restore needs the owner; where the owner cannot be set, the file is still a backup.
        _ = try? files.copyAttributes(from: path, to: target.appending(name))
      default: continue
      }
    }
    try copies.finish()
    try files.syncDirectory(target)
  }
}
