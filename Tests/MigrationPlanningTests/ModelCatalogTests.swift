import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import SystemPackage
import Testing

@testable import MigrationPlanning

@Suite(.blocking) struct ModelCatalogTests {
  private func withFolder(_ body: (FilePath) throws -> Void) throws {
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-models-\(UUID().uuidString)")
    try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    try body(folder)
  }

  private func writeVersion(_ path: FilePath, _ contents: String) throws {
    try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: true)
    try Data(contents.utf8).write(to: URL(filePath: path.appending("contents").string))
  }

  private let good = """
    <?xml version="1.0"?><model type="com.apple.IDECoreDataModeler.DataModel" documentVersion="1.0">
    <entity name="Book"><attribute name="title" optional="YES" attributeType="String"/></entity></model>
    """

  @Test func aFolderIsSearchedAndAModelFoundTwiceIsTakenOnce() throws {
    try withFolder { folder in
      try writeVersion(folder.appending("Sub/A.xcdatamodeld/V1.xcdatamodel"), good)
      try writeVersion(folder.appending("Sub/A.xcdatamodeld/V2.xcdatamodel"), good)
      let bundle = folder.appending("Sub/A.xcdatamodeld")
      let catalog = try ModelCatalog.load([folder, bundle, folder.appending("Sub/../Sub/A.xcdatamodeld")])
      #expect(catalog.bundles.map(\.name) == ["A"])
      #expect(catalog.versions.map(\.model.name) == ["V1", "V2"])
      #expect(catalog.versions.map(\.position) == [0, 1])
      let declared = try ModelCatalog.load([bundle], declaredOrder: ["V2", "V1"])
      #expect(declared.versions.map(\.model.name) == ["V2", "V1"])
    }
  }

  @Test("A copy of a model is left out with a remark, and a model that differs is not")
  func copies() throws {
    try withFolder { folder in
      for name in ["One", "Two", "Three"] {
        try writeVersion(folder.appending("\(name)/A.xcdatamodeld/V1.xcdatamodel"), good)
      }
      try writeVersion(
        folder.appending("Three/A.xcdatamodeld/V1.xcdatamodel"), good.replacing("\"title\"", with: "\"name\""))
      let catalog = try ModelCatalog.load([folder])
      #expect(catalog.bundles.count == 2)
      let remarks = catalog.warnings.filter { $0.message.contains("and ignored") }
      #expect(remarks.count == 1 && remarks.first?.place.file?.string.contains("A.xcdatamodeld") == true, "\(remarks)")
    }
  }

  @Test func aBadModelInAFolderIsAWarningAndANamedOneAnError() throws {
    try withFolder { folder in
      try writeVersion(folder.appending("Good.xcdatamodel"), good)
      try writeVersion(folder.appending("Bad.xcdatamodel"), "<model><entity")
      let catalog = try ModelCatalog.load([folder])
      #expect(catalog.versions.map(\.model.name) == ["Good"])
      #expect(catalog.warnings.contains { $0.place.file?.string.contains("Bad.xcdatamodel") == true })
      #expect(throws: HopdError.self) { try ModelCatalog.load([folder.appending("Bad.xcdatamodel")]) }
      try FileManager.default.removeItem(atPath: folder.appending("Good.xcdatamodel").string)
      let error = #expect(throws: HopdError.self) { try ModelCatalog.load([folder]) }
      #expect(error?.code == .noModels)
      #expect(error?.reasons.count == 1)
    }
  }

  @Test func noModelsAtAll() throws {
    #expect(#expect(throws: HopdError.self) { try ModelCatalog.load([]) }?.code == .noModels)
    try withFolder { folder in
      let error = #expect(throws: HopdError.self) { try ModelCatalog.load([folder]) }
      #expect(error?.code == .noModels)
      #expect(error?.code.exit == .notConfigured)
      #expect(error?.message.contains(folder.string) == true)
    }
  }
}
