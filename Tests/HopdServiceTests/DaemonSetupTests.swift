// A watch's rules for names of self many-to-many tables, mapping models, rows and policies reach the jobs of its
// stores.

import ConfigurationInspection
import Diagnostics
import DurableFiles
import Glibc
import HopdConfiguration
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import StoreReplacement
import StoreWatching
import SystemPackage
import Testing

@testable import HopdService

@Suite struct DaemonSetupTests {
  private let contents = """
    <?xml version="1.0"?><model><entity name="Person">
    <attribute name="name" optional="YES" attributeType="String"/>
    <relationship name="friends" optional="YES" toMany="YES" destinationEntity="Person" inverseName="admirers"
      inverseEntity="Person"/>
    <relationship name="admirers" optional="YES" toMany="YES" destinationEntity="Person" inverseName="friends"
      inverseEntity="Person"/></entity></model>
    """

  /// The naming that a job of the watch is given.
  private func naming(_ place: DaemonTests.Place, _ lines: String) throws -> Set<String>? {
    try request(place, lines)?.naming.namingRelationships
  }

  /// The request of a job; `lines` stand in `[watch.migration]`, `above` in the watch.
  private func request(_ place: DaemonTests.Place, _ lines: String, above: String = "") throws -> MigrationRequest? {
    try place.write("A.xcdatamodel/contents", contents)
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(place.root.appending("stores"))"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      \(above)
      [watch.migration]
      \(lines)
      """)
    let setup = try DaemonSetup(try ConfigurationSource.file(place.configuration).load())
    let status = try #require(try LinuxFileSystem().status(place.configuration))
    let path = place.root.appending("stores/any.sqlite")
    let store = FoundStore(
      key: path, path: path, watch: "w",
      fingerprint: SourceFingerprint(database: SourceFingerprint.Stamp(status), log: nil))
    let order = setup.order(for: store, job: "01", stateDirectory: place.root.appending("state"))
    return order?.make(CanonicalStoreLocation(unresolved: path))
  }

  @Test func rulesAndProgramsReachTheJob() throws {
    let place = try DaemonTests.Place()
    let plain = try #require(try request(place, ""))
    #expect(plain.engine.invalidRows == InvalidRowsRules())
    #expect(plain.unmappedEntities == .fail)
    #expect(plain.replacement == nil)
    #expect(!plain.isBound("Library.BookPolicy"))
    let set = try #require(
      try request(
        place,
        """
        invalid_rows = { Person = "skip", "*" = "quarantine" }
        unmapped_entities = "drop"
        replace = "in-place"
        [policies]
        BookPolicy = { command = ["/bin/true"] }
        """))
    #expect(set.replacement == .inPlace)
    #expect(set.engine.invalidRows == InvalidRowsRules(standard: .quarantine, byEntity: ["Person": .skip]))
    #expect(set.unmappedEntities == .drop)
    // With or without its module.
    #expect(set.isBound("Library.BookPolicy") && set.isBound("BookPolicy") && !set.isBound("PagePolicy"))
  }

  @Test func aRuleForAnEntityOfNoVersionIsReported() throws {
    let place = try DaemonTests.Place()
    let rule = "invalid_rows = { Persn = \"quarantine\", \"*\" = \"fail\" }"
    let error = #expect(throws: HopdError.self) { try request(place, rule) }
    #expect(error?.code == .configurationInvalid && error?.hint == "use 'Person'")
    #expect(error?.place.file == place.configuration && error?.place.line == 7)
    #expect(error?.place.key == "watch.w.migration.invalid_rows.Persn")
    // It is no cause that time mends, so a daemon with this watch alone does not start.
    #expect(throws: HopdError.self) {
      try DaemonSetup(ConfigurationSource.file(place.configuration).load(), mayDegrade: true)
    }
  }

  @Test func foldersOfBackupsAreNotWatched() throws {
    let place = try DaemonTests.Place()
    try place.configure("recursive = true\nbackup.directory = \"\(place.store("kept"))\"")
    let setup = try DaemonSetup(ConfigurationSource.file(place.configuration).load())
    let excluded = try #require(setup.directories.first).excludedFolders
    #expect(excluded.contains { $0.matches(Array("a.sqlite-0a1b.hopd-backups".utf8)) })
    #expect(setup.warnings.contains { $0.code == .backupsInWatch })
  }

  @Test func mappingModelsAreReadWithTheModels() throws {
    let place = try DaemonTests.Place()
    try place.write("A.cdm", "nothing")
    let error = #expect(throws: HopdError.self) {
      try request(place, "", above: "mappings = [\"\(place.root.appending("A.cdm"))\"]")
    }
    #expect(error?.place.key == "watch.w.mappings")
    #expect(error?.place.file?.string.hasSuffix("A.cdm") == true)
    // One that is only in the folder forbids inference, and is reported with the store.
    let found = try request(place, "", above: "mappings = [\"\(place.root)\"]")
    #expect(found?.catalog.mappings.isEmpty == false)
  }

  @Test("A reload keeps where a watch's directory is, and takes another place if its path leads elsewhere")
  func rootsAcrossReloads() throws {
    let place = try DaemonTests.Place()
    try place.write("A.xcdatamodel/contents", contents)
    let link = place.root.appending("link")
    defer {
      _ = unlink(link.string)
      for name in ["one", "two"] { _ = rmdir(place.root.appending(name).string) }
    }
    for name in ["one", "two"] { try #require(mkdir(place.root.appending(name).string, 0o700) == 0) }
    func lead(to target: String) throws {
      _ = unlink(link.string)
      try #require(symlink(target, link.string) == 0)
    }
    func load() throws -> DaemonSetup {
      try DaemonSetup(try ConfigurationSource.file(place.configuration).load())
    }
    try place.write(
      "hopd.toml",
      """
      [[watch]]
      name = "w"
      directory = "\(link)"
      models = ["\(place.root.appending("A.xcdatamodel"))"]
      """)
    try lead(to: "one")
    let first = try load()
    #expect(try first.root(ofWatch: "w")?.open().path.lastComponent == "one")
    var second = try load()
    second.keepRoots(of: first)
    #expect(second.root(ofWatch: "w") === first.root(ofWatch: "w"))
    try lead(to: "two")
    #expect(throws: WatchRoot.Failure.self) { try first.root(ofWatch: "w")?.open() }
    var third = try load()
    third.keepRoots(of: second)
    #expect(try third.root(ofWatch: "w")?.open().path.lastComponent == "two")
  }

  @Test func namesAndReferenceStoresReachTheJob() throws {
    let place = try DaemonTests.Place()
    #expect(try naming(place, "") == [])
    #expect(try naming(place, "join_tables = [\"Person.friends\"]") == ["Person.friends"])
    let model = ManagedObjectModel(
      name: "A",
      entities: [
        Entity(
          name: "Person", attributes: [Attribute(name: "name", type: .string, isOptional: true)],
          relationships: [
            Relationship(
              name: "friends", destinationEntityName: "Person", inverseName: "admirers", isToMany: true),
            Relationship(
              name: "admirers", destinationEntityName: "Person", inverseName: "friends", isToMany: true),
          ])
      ])
    for name in ["Person.friends", "Person.admirers"] {
      let reference = place.root.appending("\(name).sqlite")
      let schema = StoreSchema(model: model, frameworkVersion: 1344, naming: JoinTableNaming([name]))
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)).make(at: reference, rows: 4, seed: 1)
      #expect(try naming(place, "reference = \"\(reference)\"") == [name])
    }
  }

  @Test func aReferenceThatIsNoStoreIsReportedWhenTheConfigurationIsRead() throws {
    let place = try DaemonTests.Place()
    let error = #expect(throws: HopdError.self) { try naming(place, "reference = \"\(place.configuration)\"") }
    #expect(error?.place.key == "watch.w.migration.reference")
    #expect(error?.place.store == place.configuration)
    let missing = #expect(throws: HopdError.self) { try naming(place, "reference = \"/nowhere/a.sqlite\"") }
    #expect(missing?.code == .notFound)
  }
}
