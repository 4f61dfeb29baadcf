// Bundles on disk: which versions, in which order, which is current, and what is said where something is amiss.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import SystemPackage
import Testing

/// A folder of its own, removed at the end.
private final class Scratch {
  let path: FilePath

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "hopd-model-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    path = FilePath(url.path())
  }

  deinit { try? FileManager.default.removeItem(atPath: path.string) }

  func write(_ text: String, to name: String) throws {
    let url = URL(filePath: path.appending(name).string)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(text.utf8).write(to: url)
  }

  func bundle(_ name: String, versions: [String], current: String? = nil) throws -> FilePath {
    for version in versions {
      try write("<model><entity name='A'/></model>", to: "\(name).xcdatamodeld/\(version).xcdatamodel/contents")
    }
    if let current {
      try write(
        "<plist version='1.0'><dict><key>_XCCurrentVersionName</key><string>\(current)</string></dict></plist>",
        to: "\(name).xcdatamodeld/.xccurrentversion")
    }
    return path.appending("\(name).xcdatamodeld")
  }
}

@Suite struct ModelReaderTests {
  @Test func versionsInNaturalOrderWithTheCurrentOne() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle(
      "Model", versions: ["Model 10", "Model", "Model 2", "1.8"], current: "1.8.xcdatamodel")
    let bundle = try ModelReader.read(at: path)
    #expect(bundle.name == "Model")
    #expect(bundle.versions.map(\.name) == ["Model", "1.8", "Model 2", "Model 10"])
    #expect(bundle.currentVersionName == "1.8")
    #expect(!bundle.isOrderDeclared)
    #expect(bundle.warnings.isEmpty)
  }

  @Test func everyFileThatIsNoModelHasAHint() throws {
    let scratch = try Scratch()
    for contents in ["", "<model", "noise", "<plist/>", "<!DOCTYPE model [<!ENTITY a 'b'>]><model/>"] {
      let path = try scratch.bundle("Model", versions: ["Model"])
      try scratch.write(contents, to: "Model.xcdatamodeld/Model.xcdatamodel/contents")
      let error = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
      #expect(error?.hint != nil && error?.code.exit == .dataError, "\(contents): \(error?.description ?? "")")
    }
    for missing in ["no-such-folder", "Model.xcdatamodeld/Model.xcdatamodel/contents"] {
      let error = #expect(throws: HopdError.self) { try ModelReader.findBundles(in: scratch.path.appending(missing)) }
      #expect(error?.hint != nil, "\(missing)")
    }
  }

  @Test func declaredOrder() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle("M", versions: ["Beta", "Alpha", "M"], current: "M.xcdatamodel")
    let order = ["Beta", "M", "Alpha"]
    let bundle = try ModelReader.read(at: path, declaredOrder: order)
    #expect(bundle.versions.map(\.name) == order)
    #expect(bundle.isOrderDeclared)
    let error = #expect(throws: HopdError.self) {
      try ModelReader.read(at: path, declaredOrder: ["Beta", "Gamma", "Beta", "M"])
    }
    #expect(error?.code == .versionOrder)
    #expect(error?.reasons.count == 3)
    for word in ["“Gamma”", "“Beta” twice", "“Alpha”"] { #expect(error?.description.contains(word) == true) }
  }

  @Test func currentVersionMissingOrWrong() throws {
    let scratch = try Scratch()
    let one = try ModelReader.read(at: scratch.bundle("One", versions: ["Only"]))
    #expect(one.currentVersionName == "Only" && one.warnings.isEmpty)
    let two = try ModelReader.read(at: scratch.bundle("Two", versions: ["A", "B"]))
    #expect(two.currentVersionName == nil && two.warnings.count == 1)
    let wrong = try ModelReader.read(at: scratch.bundle("Wrong", versions: ["A", "B"], current: "C.xcdatamodel"))
    #expect(wrong.currentVersionName == nil && wrong.warnings.count == 1)
    let path = try scratch.bundle("Broken", versions: ["A", "B"])
    try scratch.write("<plist><dict>", to: "Broken.xcdatamodeld/.xccurrentversion")
    let broken = try ModelReader.read(at: path)
    #expect(broken.currentVersionName == nil && broken.warnings.count == 1)
  }

  @Test func aSingleVersionIsAModel() throws {
    let scratch = try Scratch()
    try scratch.write("<model><entity name='A'/></model>", to: "Plain 1.8.xcdatamodel/contents")
    let bundle = try ModelReader.read(at: scratch.path.appending("Plain 1.8.xcdatamodel"))
    #expect(bundle.versions.map(\.name) == ["Plain 1.8"])
    #expect(bundle.currentVersionName == "Plain 1.8")
  }

  @Test func faultsOfAllVersionsAreToldTogether() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle("M", versions: ["M", "M 2", "M 3"])
    try scratch.write(
      "<model><entity name='A' parentEntity='Z'/></model>", to: "M.xcdatamodeld/M 2.xcdatamodel/contents")
    let one = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
    #expect(one?.place.file?.string.hasSuffix("M 2.xcdatamodel/contents") == true)
    try scratch.write("<model>", to: "M.xcdatamodeld/M 3.xcdatamodel/contents")
    let both = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
    #expect(both?.reasons.count == 2)
    for word in ["“Z”", "M 3.xcdatamodel/contents:1"] { #expect(both?.description.contains(word) == true) }
  }

  @Test func whatIsNoSourceModelSaysWhatToGive() throws {
    let scratch = try Scratch()
    func code(_ name: String) -> HopdError.Code? {
      do {
        _ = try ModelReader.read(at: scratch.path.appending(name))
        return nil
      } catch {
        #expect(error.code == .notFound || error.hint != nil)
        return error.code
      }
    }
    try scratch.write("x", to: "Old.xcdatamodel/elements")
    try scratch.write("x", to: "Built.momd/A.mom")
    try scratch.write("x", to: "file.txt")
    try scratch.write("x", to: "Empty.xcdatamodeld/readme")
    #expect(code("Old.xcdatamodel") == .unsupportedModel)
    try scratch.write("x", to: "Image.omo")
    #expect(code("Built.momd")?.exit == .dataError)
    #expect(code("Built.momd/A.mom")?.exit == .dataError)
    #expect(code("Image.omo") == .unsupportedModel)
    #expect(code("file.txt") == .invalidModel)
    #expect(code("Empty.xcdatamodeld") == .invalidModel)
    #expect(code("") == .invalidModel)
    #expect(code("Gone.xcdatamodeld") == .notFound)
  }

  @Test func aPipeInThePlaceOfAFileDoesNotHang() throws {
    let scratch = try Scratch()
    try scratch.write("x", to: "P.xcdatamodel/other")
    #expect(mkfifo(scratch.path.appending("P.xcdatamodel/contents").string, 0o600) == 0)
    #expect(throws: HopdError.self) { try ModelReader.read(at: scratch.path.appending("P.xcdatamodel")) }
  }

  @Test func bundlesAreFoundBelowAFolder() throws {
    let scratch = try Scratch()
    let b = try scratch.bundle("sub/deep/B", versions: ["B", "B 2"])
    let a = try scratch.bundle("A", versions: ["A"])
    try scratch.write("<model><entity name='A'/></model>", to: "sub/Single.xcdatamodel/contents")
    // A link upwards: the search must end.
    #expect(symlink("..", scratch.path.appending("sub/loop").string) == 0)
    #expect(
      try ModelReader.findBundles(in: scratch.path) == [a, scratch.path.appending("sub/Single.xcdatamodel"), b])
    #expect(try ModelReader.findBundles(in: a) == [a])
    #expect(throws: HopdError.self) { try ModelReader.findBundles(in: scratch.path.appending("none")) }
  }

  @Test func compiledModelsAreFoundButNotTheVersionsInsideABundle() throws {
    let scratch = try Scratch()
    try scratch.write("x", to: "Built.momd/A.mom")
    try scratch.write("x", to: "sub/Alone.mom")
    try scratch.write("x", to: "sub/Alone.omo")
    #expect(
      try ModelReader.findBundles(in: scratch.path)
        == [scratch.path.appending("Built.momd"), scratch.path.appending("sub/Alone.mom")])
    #expect(
      try ModelReader.findBundles(in: scratch.path.appending("sub/Alone.mom"))
        == [scratch.path.appending("sub/Alone.mom")])
  }
}
