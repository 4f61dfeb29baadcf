// What is written is read, what is lost is made anew, and what a newer hopd has written is left alone.

import Diagnostics
import Glibc
import SQLite
import SystemPackage
import Testing

@testable import ServiceState

@Suite struct StateDatabaseTests {
  /// A state directory, removed at the end.
  final class Room {
    let path: FilePath
    var file: FilePath { StateSchema.file(in: path) }

    init() throws {
      var template = Array("/tmp/hopd-state-XXXXXX".utf8CString)
      try #require(mkdtemp(&template) != nil)
      path = FilePath(String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self))
    }

    deinit {
      for name in ["state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "state.sqlite.damaged"] {
        unlink(path.appending(name).string)
      }
      rmdir(path.string)
    }
  }

  static func store(
    _ path: String, _ condition: StoreCondition, since: Int64 = 100, version: String? = nil, code: String? = nil,
    watch: String = "w"
  ) -> StoreRecord {
    StoreRecord(
      path: path, watch: watch, condition: condition, since: since, version: version, target: "v9",
      failure: code.map {
        StoreFailure(code: $0, reason: "why", hint: "how", command: "type this", attempts: 2, nextAttempt: since + 30)
      })
  }

  @Test func whatIsWrittenIsRead() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    let stores = [
      Self.store("/s/a", .current, version: "v9"), Self.store("/s/b", .failed, version: "v1", code: "store-damaged"),
      Self.store("/s/c", .busy, code: "store-busy", watch: "other"),
    ]
    let job = JobRecord(
      job: "1f", path: "/s/a", watch: "w", began: 5, ended: 9, from: "v1", to: "v9", rows: 7, microseconds: 4_000_000,
      result: "migrated", backup: "/s/.a.hopd-backups/1/a")
    let answer = try database.write(
      stores.map { .store($0) } + [.job(job), .service(.process, "7")], now: 100)
    #expect(!answer.isNew && database.replaced == nil)
    let reader = try StateReader(stateDirectory: room.path)
    var known = try reader.stores()
    for index in known.indices { known[index].failure?.since = 0 }
    #expect(known == stores)
    #expect(try reader.stores(.init(conditions: [.failed, .busy])).map(\.path) == ["/s/b", "/s/c"])
    #expect(try reader.stores(.init(watch: "other")).map(\.path) == ["/s/c"])
    #expect(try reader.stores(.init(after: "/s/a", limit: 1)).map(\.path) == ["/s/b"])
    #expect(try reader.counts() == ["w": [.current: 1, .failed: 1], "other": [.busy: 1]])
    #expect(try reader.jobs() == [job])
    #expect(try reader.jobs(of: "/s/b").isEmpty)
    #expect(try reader.service()[.process] == "7")
    #expect(try reader.store("/s/nothing") == nil)
    #expect(try reader.paths(named: "b") == ["/s/b"])
  }

  @Test func aFailureKeepsItsBeginningUntilItIsAnother() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    func since(_ store: StoreRecord) throws -> [Int64?] {
      _ = try database.write([.store(store)], now: store.since)
      let found = try StateReader(stateDirectory: room.path).store(store.path)
      return [found?.since, found?.failure?.since]
    }
    #expect(try since(Self.store("/a", .retrying, since: 10, code: "no-space")) == [10, 10])
    #expect(try since(Self.store("/a", .retrying, since: 20, code: "no-space")) == [10, 10])
    // Between two attempts it is at work and still has its failure.
    #expect(try since(Self.store("/a", .migrating, since: 30)) == [30, 10])
    #expect(try since(Self.store("/a", .retrying, since: 40, code: "no-space")) == [40, 10])
    #expect(try since(Self.store("/a", .failed, since: 50, code: "store-damaged")) == [50, 50])
    #expect(try since(Self.store("/a", .current, since: 60)) == [60, nil])
  }

  @Test func aVersionThatIsNotToldStays() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write([.store(Self.store("/a", .waiting, version: "v1"))], now: 1)
    _ = try database.write([.store(Self.store("/a", .migrating))], now: 2)
    #expect(try StateReader(stateDirectory: room.path).store("/a")?.version == "v1")
  }

  @Test func storesThatAreGoneGo() throws {
    let room = try Room()
    let first = try StateDatabase(stateDirectory: room.path)
    _ = try first.write(
      ["/a", "/b", "/c"].map { .store(Self.store($0, .failed, code: "x")) }
        + [.store(Self.store("/d", .current, watch: "away")), .store(Self.store("/e", .current, watch: "old"))], now: 1)
    _ = try first.write([.gone(path: "/a")], now: 2)
    // The next run sees one of them; the directory of another watch is not mounted, and a third is not configured.
    let second = try StateDatabase(stateDirectory: room.path)
    #expect(second.run == first.run + 1)
    _ = try second.write(
      [.store(Self.store("/c", .current)), .unseen(watches: ["w"]), .onlyWatches(["w", "away"])], now: 3)
    #expect(try StateReader(stateDirectory: room.path).stores().map(\.path) == ["/c", "/d"])
    let connection = try Connection(path: room.file, access: .shared(writes: false))
    #expect(try connection.integer("SELECT count(*) FROM troubles") == 0)
  }

  @Test func aDamagedFileIsSetAsideAndMadeAnew() throws {
    let room = try Room()
    for bytes in [
      Array("no database at all, but long enough to be read as one".utf8), [UInt8](repeating: 0, count: 4096),
    ] {
      _ = unlink(room.file.string)
      let file = fopen(room.file.string, "w")
      fwrite(bytes, 1, bytes.count, file)
      fclose(file)
      let database = try StateDatabase(stateDirectory: room.path)
      #expect(database.replaced?.code == .stateUnreadable)
      #expect(access(room.file.string + ".damaged", F_OK) == 0)
      #expect(try !database.write([.store(Self.store("/a", .current))], now: 1).isNew)
    }
  }

  @Test func aFileOfAnotherProgramIsNotTakenForOurs() throws {
    let room = try Room()
    try Connection(path: room.file, access: .create).execute("CREATE TABLE t (a)")
    #expect(throws: HopdError.self) { try StateReader(stateDirectory: room.path) }
    #expect(try StateDatabase(stateDirectory: room.path).replaced != nil)
  }

  @Test func aFileThatVanishesWhileTheDaemonRunsIsMadeAnewAndSaid() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write([.store(Self.store("/a", .current))], now: 1)
    unlink(room.file.string)
    let answer = try database.write([.store(Self.store("/b", .current))], now: 2)
    #expect(answer.isNew && answer.failure?.code == .stateMissing)
    #expect(try StateReader(stateDirectory: room.path).stores().map(\.path) == ["/b"])
    #expect(try !database.write([.store(Self.store("/c", .current))], now: 3).isNew)
  }

  @Test func aNewerFileIsLeftAlone() throws {
    let room = try Room()
    _ = try StateDatabase(stateDirectory: room.path)
    try Connection(path: room.file, access: .shared(writes: true)).execute("PRAGMA user_version = 2")
    let error = #expect(throws: HopdError.self) { try StateDatabase(stateDirectory: room.path) }
    #expect(error?.code == .stateNewer && error?.code.exit == .configuration)
    let other = #expect(throws: HopdError.self) { try StateReader(stateDirectory: room.path) }
    #expect(other?.code == .stateNewer)
    #expect(access(room.file.string + ".damaged", F_OK) != 0)
  }

  @Test func jobsAreKeptByNumberAndAge() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    func job(_ number: Int64, ended: Int64) -> StateChange {
      .job(JobRecord(job: "\(number)", path: "/a", watch: "w", began: 0, ended: ended, result: "migrated"))
    }
    let day: Int64 = 86_400
    _ = try database.write([job(0, ended: 1), job(1, ended: 300 * day)], now: 500 * day)
    #expect(try StateReader(stateDirectory: room.path).jobs().map(\.job) == ["1"])
    let many = StateDatabase.mostJobs + 5
    _ = try database.write((2..<2 + many).map { job($0, ended: 500 * day) }, now: 500 * day)
    let kept = try StateReader(stateDirectory: room.path).jobs()
    #expect(kept.count == Int(StateDatabase.mostJobs))
    #expect(kept.first?.job == "\(many + 1)")
  }

  @Test func tenThousandCurrentStoresTakeFewBytes() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    let count = 10_000
    let stores = (0..<count).map { number in
      let path = "/srv/library/stores/tenant-\(number)/Library-\(number % 7).sqlite"
      return Self.store(path, number % 100 == 0 ? .failed : .current, code: number % 100 == 0 ? "no-route" : nil)
    }
    _ = try database.write(stores.map { .store($0) }, now: 1)
    var status = stat()
    #expect(stat(room.file.string, &status) == 0)
    #expect(Int(status.st_size) < 200 * count, "\(status.st_size) bytes")
    #expect(try StateReader(stateDirectory: room.path).stores(.init(conditions: [.failed])).count == count / 100)
  }

  @Test func readersSeeAWholeStateWhileItIsWritten() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write((0..<50).map { .store(Self.store("/\($0)", .current)) }, now: 1)
    let writer = try Connection(path: room.file, access: .shared(writes: true))
    try writer.execute("BEGIN IMMEDIATE; DELETE FROM stores")
    #expect(try StateReader(stateDirectory: room.path).stores().count == 50)
    try writer.execute("ROLLBACK")
  }

  /// A member of the group may read the record for as long as it likes.
  @Test func aReaderThatStaysBlocksNeitherTheDaemonNorOtherReaders() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write([.store(Self.store("/a", .current))], now: 1)
    let stays = try Connection(path: room.file, access: .shared(writes: false))
    try stays.execute("BEGIN")
    #expect(try stays.integer("SELECT count(*) FROM stores") == 1)
    for number in 0..<20 { _ = try database.write([.store(Self.store("/b\(number)", .current))], now: 2) }
    #expect(try StateReader(stateDirectory: room.path).stores().count == 21)
    #expect(try stays.integer("SELECT count(*) FROM stores") == 1)
    try stays.execute("COMMIT")
    #expect(try stays.integer("SELECT count(*) FROM stores") == 21)
  }

  @Test func theLogOfAReaderThatStaysIsBounded() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path, longestLog: 100_000)
    let log = FilePath(room.file.string + "-wal")
    func bytes() -> Int {
      var status = stat()
      return stat(log.string, &status) == 0 ? Int(status.st_size) : 0
    }
    func write(_ number: Int) throws { _ = try database.write([.store(Self.store("/\(number)", .current))], now: 1) }
    try write(0)
    let stays = try Connection(path: room.file, access: .shared(writes: false))
    try stays.execute("BEGIN")
    _ = try stays.integer("SELECT count(*) FROM stores")
    let error = #expect(throws: HopdError.self) { for number in 1...100 { try write(number) } }
    #expect(error?.code == .stateHeld && error?.hint?.contains("fuser") == true)
    #expect(bytes() < 200_000)
    // What is recorded can be read, and with the reader the failure ends.
    let known = try StateReader(stateDirectory: room.path).stores().count
    #expect(known > 1)
    try stays.execute("COMMIT")
    try write(1000)
    #expect(try StateReader(stateDirectory: room.path).stores().count == known + 1)
    #expect(bytes() <= 100_000)
  }

  /// A reader that may not write in the directory cannot make the log and its index.
  @Test func logAndIndexStayForReaders() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write([.store(Self.store("/a", .current))], now: 1)
    #expect(access(room.file.string + "-wal", F_OK) == 0 && access(room.file.string + "-shm", F_OK) == 0)
  }

  /// A record of an older hopd, which kept a rollback journal, keeps its history.
  @Test func aRecordWithoutALogGetsOne() throws {
    let room = try Room()
    do {
      let old = try Connection(path: room.file, access: .create)
      try old.execute(StateSchema.tables)
      try old.execute(
        "PRAGMA application_id = \(StateSchema.application); PRAGMA user_version = \(StateSchema.version)")
      try old.execute("INSERT INTO names VALUES (1, 'w'); INSERT INTO stores VALUES ('/old', 1, 0, 1, 1, 1, 1)")
    }
    let database = try StateDatabase(stateDirectory: room.path)
    #expect(database.replaced == nil)
    _ = try database.write([.store(Self.store("/new", .current))], now: 1)
    #expect(try StateReader(stateDirectory: room.path).stores().map(\.path) == ["/new", "/old"])
    #expect(access(room.file.string + "-wal", F_OK) == 0)
  }

  @Test("A job that ended before its versions were known gets those that the store's record has")
  func versionsOfAJob() throws {
    let room = try Room()
    let database = try StateDatabase(stateDirectory: room.path)
    _ = try database.write([.store(Self.store("/s/a", .busy, version: "v1", code: "store-busy"))], now: 1)
    let busy = JobRecord(job: "1", path: "/s/a", watch: "w", began: 1, ended: 2, result: "deferred")
    let strange = JobRecord(job: "2", path: "/s/none", watch: "w", began: 1, ended: 1, result: "refused")
    _ = try database.write([.job(busy), .job(strange)], now: 3)
    let jobs = try StateReader(stateDirectory: room.path).jobs()
    #expect(jobs.map(\.from) == [nil, "v1"] && jobs.map(\.to) == [nil, "v9"], "\(jobs)")
  }

  @Test func whereNothingIsRecordedTheReaderSaysWhatToDo() throws {
    let room = try Room()
    let error = #expect(throws: HopdError.self) { try StateReader(stateDirectory: room.path) }
    #expect(error?.code == .stateMissing && error?.code.exit == .notRunning && error?.hint != nil)
    #expect(access(room.file.string, F_OK) != 0)
  }
}
