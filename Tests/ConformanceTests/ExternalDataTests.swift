// Binary values with external storage through whole migrations: carried, moved out of files, given their prefix,
// copied, backed up, and refused if a reference leads to another place.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import OtherPrograms
import PersistentStore
import SQLite
import StoreReplacement
import StoreVerification
import SystemPackage
import Testing

/// A store of one entity with a binary attribute, and its later versions.
private final class ExternalWorld {
  static let uuids = ["5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33", "00000000-0000-4000-8000-0000000000FF"]

  let folder: FilePath
  let location: StoreLocation
  let versions: [ManagedObjectModel]
  let catalog: ModelCatalog

  /// `flags` tell for each version whether the attribute has external storage; nil if the attribute is removed.
  init(_ flags: [Bool?], rows: Int64 = 600, name: String = "Assets.sqlite") throws {
    folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-external-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    location = StoreLocation(database: folder.appending(name))
    versions = flags.enumerated().map { index, flag in
      var attributes = [
        Attribute(name: "name", type: .string, isOptional: true),
        Attribute(name: "raw", type: .binary, isOptional: true),
        // So that no two versions are equal.
        Attribute(name: "mark\(index)", type: .integer16, isOptional: true, renamingIdentifier: "mark"),
      ]
      if let flag {
        attributes.append(Attribute(name: "payload", type: .binary, isOptional: true, allowsExternalStorage: flag))
      }
      // A sibling whose rows are in the same table and have no payload.
      return ManagedObjectModel(
        name: "V\(index + 1)",
        entities: [
          Entity(name: "Thing"), Entity(name: "Asset", parentName: "Thing", attributes: attributes),
          Entity(name: "Zebra", parentName: "Thing"),
        ])
    }
    catalog = ModelCatalog(bundles: [
      ModelBundle(
        name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: versions.last?.name)
    ])
    let folder = location.externalDataDirectory
    try FreshStore(
      schema: StoreSchema(model: versions[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 5)
    ).make(
      at: location.database, rows: rows, seed: 5,
      external: ExternalSamples { name, content in
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        try Data(content).write(to: URL(filePath: folder.appending(name.text).string))
      })
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  func change(_ sql: String) throws { try Connection.ofApp(location.database).execute(sql) }

  /// Makes row `key` refer to a file that does not exist.
  func refer(_ key: Int64, to text: String) throws {
    let connection = try Connection.ofApp(location.database)
    let bytes = [2] + Array(text.utf8) + [0]
    try connection.run("UPDATE ZTHING SET ZPAYLOAD = ? WHERE Z_PK = ?", [.blob(bytes), .integer(key)])
  }

  /// Returns the Z_PK of a row of the entity with the attribute.
  func assetKey() throws -> Int64 {
    let connection = try Connection.ofApp(location.database, .readOnly)
    return try #require(
      try connection.integer("SELECT min(Z_PK) FROM ZTHING WHERE Z_ENT = 2 AND substr(ZPAYLOAD, 1, 1) = X'01'"))
  }

  func request(output: FilePath? = nil) -> MigrationRequest {
    MigrationRequest(
      location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog, output: output,
      settings: MigrationSettings(verification: .full),
      stateDirectory: folder.appending("state"), job: "01")
  }

  @discardableResult
  func migrate(_ request: MigrationRequest? = nil) throws -> MigrationReport {
    try MigrationPipeline().run(request ?? self.request(), stop: StopSignal()) { _ in }
  }

  /// Returns the error of the run; nil if there was none.
  func refusal(_ request: MigrationRequest? = nil) -> HopdError? {
    do {
      _ = try MigrationPipeline().run(request ?? self.request(), stop: StopSignal()) { _ in }
      return nil
    } catch {
      return error.error
    }
  }

  /// Returns contents by Z_PK, wherever they are stored, by the model's names.
  func dumped(_ version: Int, at location: StoreLocation? = nil) throws -> [DumpedObject] {
    try dump(location ?? self.location, model: versions[version]).map { object in
      var object = object
      object.attributes = object.attributes.filter { !$0.key.hasPrefix("mark") }
      return object
    }
  }

  func files(of location: StoreLocation? = nil) -> [String] {
    let path = (location ?? self.location).externalDataDirectory.string
    return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
  }
}

@Suite struct ExternalDataTests {
  private func count(_ location: StoreLocation, _ condition: String) throws -> Int64 {
    try Connection.ofApp(location.database, .readOnly)
      .integer("SELECT count(*) FROM ZTHING WHERE Z_ENT = 2 AND \(condition)") ?? -1
  }

  /// Every path over one, two and three hops, at once, in chunks of one row and interrupted: the objects are the same.
  @Test(arguments: [
    [true, true], [true, false], [false, true], [true, false, true], [false, true, false], [true, true, false, true],
  ])
  func contentsStayWhateverIsSwitched(_ flags: [Bool]) throws {
    for (chunk, interrupts) in [(Int64(50_000), false), (1, false), (1, true)] {
      let world = try ExternalWorld(flags, rows: 40)
      if flags[0] {
        #expect(world.files().count > 0, "samples have files")
        #expect(try count(world.location, "ZPAYLOAD = X'01'") > 0, "samples have an empty value")
      }
      let before = try world.dumped(0)
      var request = world.request()
      request.engine.chunkRowsMax = chunk
      var runs = 0
      var result: MigrationResult?
      while result == nil, runs < 300 {
        runs += 1
        let stop = StopSignal()
        var events = 0
        do {
          result = try MigrationPipeline().run(request, stop: stop) { event in
            guard interrupts, case .progress = event else { return }
            events += 1
            if events == 15 { stop.stop() }
          }.result
        } catch {
          guard interrupts, error.error.code == .interrupted else { throw error }
        }
      }
      #expect(result == .migrated)
      #expect(!interrupts || runs > 2, "it was interrupted")
      #expect(try world.dumped(flags.count - 1) == before, "flags \(flags), chunks of \(chunk)")
      let last = flags[flags.count - 1]
      let illegal =
        "ZPAYLOAD NOT NULL AND substr(ZPAYLOAD, 1, 1) <> X'01' AND NOT (length(ZPAYLOAD) = 38 "
        + "AND substr(ZPAYLOAD, 1, 1) = X'02')"
      if last { #expect(try count(world.location, illegal) == 0) }
      // Siblings have no payload, and get none.
      let strangers = try Connection.ofApp(world.location.database, .readOnly)
        .integer("SELECT count(ZPAYLOAD) FROM ZTHING WHERE Z_ENT <> 2")
      #expect(strangers == 0)
    }
  }

  @Test func switchingOffTakesThePrefixAndLeavesTheFiles() throws {
    let world = try ExternalWorld([true, false])
    let inline = try count(world.location, "substr(ZPAYLOAD, 1, 1) = X'01'")
    let references = try count(world.location, "length(ZPAYLOAD) = 38 AND substr(ZPAYLOAD, 1, 1) = X'02'")
    let lengths = try Connection.ofApp(world.location.database, .readOnly)
      .integer("SELECT sum(length(ZPAYLOAD) - 1) FROM ZTHING WHERE substr(ZPAYLOAD, 1, 1) = X'01'")
    let files = world.files()
    #expect(inline > 0 && references > 1 && references == Int64(files.count))
    let report = try world.migrate()
    #expect(world.files() == files, "no file is taken away")
    #expect(try count(world.location, "length(ZPAYLOAD) >= 120000") == references)
    let after = try Connection.ofApp(world.location.database, .readOnly)
      .integer("SELECT sum(length(ZPAYLOAD)) FROM ZTHING WHERE length(ZPAYLOAD) < 120000")
    #expect(after == lengths)
    let warning = report.warnings.first { $0.code == .externalDataUnreferenced }
    #expect(warning?.message.contains("\(references) values move from files") == true)
    #expect(report.checks.contains { $0.name == "external-data" && $0.passed })

    // The old store is restored with its files.
    let backup = try #require(report.backup)
    let old = StoreLocation(
      database: backup.lastComponent?.string == "Assets.sqlite" ? backup : backup.appending("Assets.sqlite"))
    #expect(world.files(of: old) == files)
    let objects = try world.dumped(1)
    #expect(try world.dumped(0, at: old) == objects)
  }

  /// Each object shows which value an expression gives: a file, bytes in the column, plain bytes, or none.
  @Test(arguments: [true, false]) func expressionsTakeContentOutOfExternalStorage(_ stays: Bool) throws {
    let world = try ExternalWorld([true, stays], rows: 60)
    let mapping = world.folder.appending("V1 to V2.hopmap.toml")
    try Data(
      """
      [mapping]
      source = "V1"
      destination = "V2"
      [[entity]]
      source = "Asset"
      destination = "Asset"
      attributes.payload = "TERNARY($source.name != nil, $source.payload, $source.raw)"
      [[entity]]
      source = "Zebra"
      destination = "Zebra"
      [[entity]]
      source = "Thing"
      destination = "Thing"
      """.utf8
    ).write(to: URL(filePath: mapping.string))
    var catalog = world.catalog
    try catalog.loadMappings([mapping], beside: [])
    // The dump has contents, wherever they are stored.
    let expected = try world.dumped(0).map { object in
      var object = object
      if object.attributes["name"] == nil || object.attributes["name"] == .null {
        object.attributes["payload"] = object.attributes["raw"]
      }
      return object
    }
    let before = expected.filter { $0.attributes["payload"] != nil && $0.attributes["payload"] != .null }
    #expect(before.count > 10)
    for output in [world.folder.appending("copy.sqlite"), nil] {
      var request = world.request(output: output)
      request.catalog = catalog
      try world.migrate(request)
      let place = output.map { StoreLocation(database: $0) } ?? world.location
      #expect(try world.dumped(1, at: place) == expected)
    }
  }

  @Test func droppedValuesLeaveTheirFiles() throws {
    let world = try ExternalWorld([true, nil])
    let files = world.files()
    #expect(files.count > 1)
    let report = try world.migrate()
    #expect(world.files() == files)
    #expect(
      report.warnings.contains {
        $0.code == .externalDataUnreferenced && $0.message.hasPrefix("\(files.count) files of dropped values")
      })
  }

  @Test func aMissingFileIsReportedAndCarried() throws {
    let world = try ExternalWorld([true, true])
    let key = try world.assetKey()
    try world.refer(key, to: ExternalWorld.uuids[0])
    let before = try world.dumped(0)
    let report = try world.migrate()
    #expect(try world.dumped(1) == before)
    let warning = try #require(report.warnings.first { $0.code == .externalDataMissing })
    #expect(warning.place.entity == "Asset" && warning.place.property == "payload" && warning.place.row == key)
    #expect(warning.message.contains("(Z_PK \(key))"))
  }

  @Test func aMissingFileStopsAHopThatMustReadIt() throws {
    let world = try ExternalWorld([true, false])
    let key = try world.assetKey()
    try world.refer(key, to: ExternalWorld.uuids[0])
    let bytes = try Data(contentsOf: URL(filePath: world.location.database.string))
    let error = world.refusal()
    #expect(error?.code == .externalDataMissing)
    #expect(error?.place.row == key)
    #expect(try Data(contentsOf: URL(filePath: world.location.database.string)) == bytes)
  }

  @Test func withoutItsDirectoryEveryFileIsMissing() throws {
    let world = try ExternalWorld([true, true])
    let count = world.files().count
    try FileManager.default.removeItem(atPath: world.location.supportDirectory.string)
    let warning = try world.migrate().warnings.first { $0.code == .externalDataMissing }
    #expect(warning?.message.hasPrefix("\(count) values in files that are missing") == true)
    #expect(warning?.hint?.contains(".Assets_SUPPORT") == true)
  }

  @Test(arguments: [
    "X''", "X'00'", "X'03616263'", "'text'", "7", "X'02'", "X'022E2E2F2E2E2F6574632F70617373776400'",
    "CAST(X'02' || '../../../../../../../../../etc/passwd' || X'00' AS BLOB)",
    "CAST(X'02' || '5d0e0a1c-7b3f-4e59-9c55-0a6e4b1f2d33' || X'00' AS BLOB)",
    "CAST(X'02' || '5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33' || X'41' AS BLOB)",
    "CAST(X'02' || '5D0E0A1C-7B3F-4E59-9C55-0A6E4B1F2D33' || X'0000' AS BLOB)",
  ])
  func aValueWithoutKnownFormIsRefused(_ literal: String) throws {
    for flags in [[true, true], [true, false]] {
      let world = try ExternalWorld(flags, rows: 60)
      let key = try world.assetKey()
      try world.change("UPDATE ZTHING SET ZPAYLOAD = \(literal) WHERE Z_PK = \(key)")
      let error = world.refusal()
      #expect(error?.code == .externalDataMalformed, "\(literal): \(String(describing: error))")
      #expect(error?.place.entity == "Asset" && error?.place.property == "payload" && error?.place.row == key)
      #expect(error?.hint?.isEmpty == false)
    }
  }

  @Test(arguments: ["link", "fifo", "directory", "store"])
  func whatIsNoPlainFileIsRefused(_ kind: String) throws {
    for flags in [[true, true], [true, false]] {
      let world = try ExternalWorld(flags, rows: 60)
      let key = try world.assetKey()
      try world.refer(key, to: ExternalWorld.uuids[1])
      let file = world.location.externalDataDirectory.appending(ExternalWorld.uuids[1]).string
      switch kind {
      case "link": symlink("/etc/passwd", file)
      case "fifo": mkfifo(file, 0o644)
      case "directory": mkdir(file, 0o755)
      default: link(world.location.database.string, file)
      }
      let error = world.refusal()
      // Two names of the store are refused before its values are inspected.
      #expect(error?.code == (kind == "store" ? .cannotReplace : .externalDataUnsuitable), "\(kind)")
      if kind != "store" { #expect(error?.place.row == key) }
      let copied = world.refusal(world.request(output: world.folder.appending("Copy.sqlite")))
      #expect(copied?.code == .externalDataUnsuitable)
      #expect(!FileManager.default.fileExists(atPath: world.folder.appending("Copy.sqlite").string))
    }
  }

  @Test func aFileLargerThanTheMemoryIsRefusedWithItsSize() throws {
    let world = try ExternalWorld([true, false])
    let name = try #require(world.files().first)
    try Data(count: 3 << 20).write(to: URL(filePath: world.location.externalDataDirectory.appending(name).string))
    var request = world.request()
    request.engine.memoryLimit = 6 << 20
    let error = world.refusal(request)
    #expect(error?.code == .externalDataTooLarge)
    #expect(error?.message.contains("3145728") == true)
    request.engine.memoryLimit = 12 << 20
    #expect(try world.migrate(request).result == .migrated)
    // A hop that only carries the reference has no such limit.
    let carried = try ExternalWorld([true, true])
    let other = try #require(carried.files().first)
    try Data(count: 3 << 20).write(to: URL(filePath: carried.location.externalDataDirectory.appending(other).string))
    request = carried.request()
    request.engine.memoryLimit = 6 << 20
    #expect(try carried.migrate(request).result == .migrated)
  }

  @Test func aCopyHasItsOwnFiles() throws {
    for flags in [[true, true], [true, false], [true, nil]] as [[Bool?]] {
      let world = try ExternalWorld(flags)
      let files = world.files()
      let orphan = world.location.externalDataDirectory.appending(ExternalWorld.uuids[0])
      try Data([1]).write(to: URL(filePath: orphan.string))
      // Two rows with the same file.
      let key = try world.assetKey()
      try world.change(
        "UPDATE ZTHING SET ZPAYLOAD = (SELECT ZPAYLOAD FROM ZTHING WHERE substr(ZPAYLOAD, 1, 1) = X'02' LIMIT 1) "
          + "WHERE Z_PK = \(key)"
      )
      let before = try world.dumped(0)
      let copy = StoreLocation(database: world.folder.appending("Other Name.v2.sqlite"))
      try world.migrate(world.request(output: copy.database))
      #expect(copy.supportDirectory.lastComponent?.string == ".Other Name.v2_SUPPORT")
      let keeps = flags[1] == true
      #expect(world.files(of: copy) == (keeps ? files : []))
      #expect(FileManager.default.fileExists(atPath: copy.supportDirectory.string) == keeps)
      if flags[1] != nil { #expect(try world.dumped(1, at: copy) == before) }
      for name in world.files(of: copy) {
        var (one, two) = (stat(), stat())
        #expect(stat(world.location.externalDataDirectory.appending(name).string, &one) == 0)
        #expect(stat(copy.externalDataDirectory.appending(name).string, &two) == 0)
        #expect(one.st_size == two.st_size && one.st_ino != two.st_ino)
      }
      #expect(try world.dumped(0) == before, "the source is only read")
    }
  }

  /// If a file is lost, the verifier finds that the store differs from the plan's expectation.
  @Test func theVerifierMissesWhatIsMissing() throws {
    let world = try ExternalWorld([true, true])
    let name = try #require(world.files().first)
    let file = world.location.externalDataDirectory.appending(name).string
    do {
      _ = try MigrationPipeline().run(world.request(), stop: StopSignal()) { event in
        if case .verifying = event { unlink(file) }
      }
      Issue.record("nobody noticed")
    } catch {
      #expect(error.error.code == .verificationFailed)
      #expect(error.error.reasons.contains { $0.message.contains("references to missing files") })
    }
  }

  /// Invalid UTF-8, a NUL in the middle, whole seconds as INTEGER, a decimal as text: all unchanged.
  @Test func everyOtherValueIsCarriedByteForByte() throws {
    let types: [(String, AttributeType)] = [
      ("text", .string), ("address", .uri), ("amount", .decimal), ("day", .date), ("archive", .transformable),
      ("key", .uuid), ("flag", .boolean), ("raw", .binary),
    ]
    let attributes = types.map { Attribute(name: $0.0, type: $0.1, isOptional: true) }
    let more = attributes + [Attribute(name: "more", type: .string, isOptional: true)]
    let versions = [attributes, more].enumerated().map { index, list in
      ManagedObjectModel(name: "V\(index + 1)", entities: [Entity(name: "E", attributes: list)])
    }
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-values-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.appending("state").string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    let location = StoreLocation(database: folder.appending("v.sqlite"))
    try FreshStore(
      schema: StoreSchema(model: versions[0], frameworkVersion: 1344), uuid: FreshStore.uuid(seed: 5)
    ).make(at: location.database, rows: 0)
    let values = """
      (1, CAST(X'61FF0062' AS TEXT), CAST(X'C3' AS TEXT), '12345678901234567890.123456789012345678', 5,
       X'62706C697374303001', X'00112233445566778899AABBCCDDEEFF', 1, X'0161'),
      (2, CAST(X'6100' AS TEXT), CAST(X'EDA080' AS TEXT), 'NaN', 5.5, X'', X'01', 2, X''),
      (3, '', NULL, 0.1, -63114076800, X'00', X'', 0, X'02')
      """
    try Connection.ofApp(location.database).execute(
      "INSERT INTO ZE (Z_PK, Z_ENT, Z_OPT, ZTEXT, ZADDRESS, ZAMOUNT, ZDAY, ZARCHIVE, ZKEY, ZFLAG, ZRAW) "
        + "SELECT column1, 1, 1, column2, column3, column4, column5, column6, column7, column8, column9 FROM (VALUES "
        + values + ")")
    let list = types.map { "typeof(Z\($0.0.uppercased())), hex(CAST(Z\($0.0.uppercased()) AS BLOB))" }
    func rows() throws -> [String] {
      try Connection.ofApp(location.database, .readOnly).rows(
        "SELECT \(list.joined(separator: ", ")) FROM ZE ORDER BY Z_PK"
      ) { row in (0..<row.columnCount).map { row.text(at: $0) ?? "·" }.joined(separator: " ") }
    }
    let before = try rows()
    #expect(before.count == 3)
    let objects = try dump(location, model: versions[0])
    #expect(objects.first?.attributes["text"] == .object(["invalidText": .string("Yf8AYg==")]))
    let catalog = ModelCatalog(bundles: [
      ModelBundle(name: "World", path: "/World.xcdatamodeld", versions: versions, currentVersionName: "V2")
    ])
    _ = try MigrationPipeline().run(
      MigrationRequest(
        location: CanonicalStoreLocation(unresolved: location.database), catalog: catalog,
        settings: MigrationSettings(verification: .full),
        stateDirectory: folder.appending("state"), job: "1"),
      stop: StopSignal()
    ) { _ in }
    #expect(try rows() == before)
    let after = try dump(location, model: versions[1]).map { object in
      var object = object
      object.attributes["more"] = nil
      return object
    }
    #expect(after == objects)
  }

  /// An app may remove its files while a copy is made: then there is no copy, rather than half of one.
  @Test func aFileThatGoesWhileACopyIsMadeLeavesNoCopy() throws {
    let world = try ExternalWorld([true, true])
    try world.refer(try world.assetKey(), to: ExternalWorld.uuids[0])
    let output = world.folder.appending("copy.sqlite")
    let files = world.files()
    #expect(files.count > 1)
    let gone = world.location.externalDataDirectory.appending(try #require(files.last)).string
    let error = #expect(throws: MigrationFailure.self) {
      try MigrationPipeline().run(world.request(output: output), stop: StopSignal()) { event in
        if case .replacing = event { try? FileManager.default.removeItem(atPath: gone) }
      }
    }
    #expect(error?.error.code == .storeBusy)
    let left = try FileManager.default.contentsOfDirectory(atPath: world.folder.string)
    #expect(!left.contains { $0.contains("copy") }, "\(left)")
    // A reference that was already dangling is carried unchanged.
    #expect(try world.migrate(world.request(output: output)).result == .migrated)
  }
}
