// The order of versions that only stores show.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct StoreFolderTests {
  /// Makes stores of versions of one entity in a folder: the name of the file, the framework, the attributes.
  private func catalog(
    of stores: [(name: String, framework: Int64, attributes: [String])], order: [String] = []
  ) throws -> ModelCatalog {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-folder-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    for store in stores {
      let model = ManagedObjectModel(name: store.name, entities: [entity("E", store.attributes.map { attribute($0) })])
      let schema = StoreSchema(model: model, frameworkVersion: store.framework)
      try FreshStore(schema: schema, uuid: FreshStore.uuid(seed: 1)).make(at: folder.appending(store.name + ".sqlite"))
    }
    return try ModelCatalog.load([folder], declaredOrder: order)
  }

  @Test func namesAreAGuessThatFrameworksRefute() throws {
    let stores: [(name: String, framework: Int64, attributes: [String])] = [
      ("autumn", 1244, ["a", "b"]), ("spring", 977, ["a"]),
    ]
    let error = #expect(throws: HopdError.self) { try catalog(of: stores) }
    #expect(error?.code == .versionOrder && error?.hint?.contains("--order") == true)
    let declared = try catalog(of: stores, order: ["spring", "autumn"])
    #expect(declared.versions.map(\.model.name) == ["spring", "autumn"])
    // One store of a version that is as old as the other's does not contradict: devices have frameworks of any age.
    let more = try catalog(of: stores + [("autumn2", 977, ["a", "b"])])
    #expect(more.versions.map { $0.model.name.prefix(6) } == ["autumn", "spring"])
  }

  @Test func numbersAtTheEndsOfNamesAreTheOrder() throws {
    let found = try catalog(of: [
      ("public_v12", 977, ["a"]), ("paid_v30", 1044, ["a", "b"]), ("beta_v93", 1044, ["b"]),
    ])
    #expect(found.versions.map(\.model.name) == ["public_v12", "paid_v30", "beta_v93"])
  }
}
