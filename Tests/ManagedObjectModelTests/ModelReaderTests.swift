// Bundles on disk: their versions, the order, the current one, and the messages for faults.

import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import SystemPackage
import Testing

/// A folder that is removed at the end.
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
    #expect(bundle.versions.map(\.name) == ["Model", "Model 2", "Model 10", "1.8"])
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

  @Test func aVersionThatCannotBeUsedIsLeftOut() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle("M", versions: ["M", "M 2", "M 3"], current: "M 3.xcdatamodel")
    try scratch.write(
      "<model><entity name='A' parentEntity='Z'/></model>", to: "M.xcdatamodeld/M 2.xcdatamodel/contents")
    let one = try ModelReader.read(at: path)
    #expect(one.versions.map(\.name) == ["M", "M 3"] && one.currentVersionName == "M 3")
    #expect(one.omitted.map(\.name) == ["M 2"] && one.omitted.first?.isCurrent == false)
    #expect(one.omitted.first?.reason.place.file?.string.hasSuffix("M 2.xcdatamodel/contents") == true)
    #expect(one.omissions.first?.message.contains("“M 2” is ignored") == true)
    #expect(one.omissions.first?.message.contains("“Z”") == true)
    // A declared order may name it or not.
    for order in [["M", "M 2", "M 3"], ["M", "M 3"]] {
      #expect(try ModelReader.read(at: path, declaredOrder: order).versions.map(\.name) == ["M", "M 3"])
    }
    #expect(throws: HopdError.self) { try ModelReader.read(at: path, declaredOrder: ["M", "M 2"]) }
    // A truncated file may be one that is being copied: the bundle is refused, and nothing is decided.
    let whole = "<model><entity name='A' parentEntity='Y'/></model>"
    try scratch.write(String(whole.dropLast(9)), to: "M.xcdatamodeld/M 3.xcdatamodel/contents")
    let damaged = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
    #expect(damaged?.place.file?.string.hasSuffix("M 3.xcdatamodel/contents") == true)
    // The current version is left out: no other one replaces it.
    try scratch.write(whole, to: "M.xcdatamodeld/M 3.xcdatamodel/contents")
    let current = try ModelReader.read(at: path)
    #expect(current.versions.map(\.name) == ["M"] && current.currentVersionName == nil)
    #expect(current.omitted.map(\.isCurrent) == [false, true])
    // None remains: all faults together.
    try scratch.write("<model/>", to: "M.xcdatamodeld/M.xcdatamodel/contents")
    let all = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
    #expect(all?.reasons.count == 3)
    for word in ["“Z”", "“Y”", "no entities"] {
      #expect(all?.description.contains(word) == true)
    }
  }

  @Test func theLastOfADeclaredOrderIsTheOneToReachAlsoWhereItIsLeftOut() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle("M", versions: ["A", "B"])
    try scratch.write("<model/>", to: "M.xcdatamodeld/B.xcdatamodel/contents")
    #expect(try ModelReader.read(at: path, declaredOrder: ["A", "B"]).omitted.map(\.isCurrent) == [true])
    #expect(try ModelReader.read(at: path, declaredOrder: ["B", "A"]).omitted.map(\.isCurrent) == [false])
    #expect(try ModelReader.read(at: path).omitted.map(\.isCurrent) == [false])
  }

  /// The identifier of a file that Xcode added at a second since 2001.
  private func identifier(_ count: Int, at seconds: UInt32) -> String {
    let time = String(seconds, radix: 16, uppercase: true)
    return "84AA00\(count < 16 ? "0" : "")\(String(count, radix: 16, uppercase: true))"
      + String(repeating: "0", count: 8 - time.count) + time + "0019D2D6"
  }

  private func project(_ bundle: String, _ versions: [(name: String, identifier: String)]) -> String {
    let files = versions.map {
      "\t\t\($0.identifier) /* \($0.name) */ = {isa = PBXFileReference; lastKnownFileType = wrapper.xcdatamodel; "
        + "path = \"\($0.name).xcdatamodel\"; sourceTree = \"<group>\"; };"
    }
    return """
      // !$*UTF8*$!
      { archiveVersion = 1; classes = { }; objectVersion = 46; objects = {
      /* Begin PBXFileReference section */
      \(files.joined(separator: "\n"))
      \t\t846FFA1B1B4023BE00148200 /* main.m */ = {isa = PBXFileReference; path = "a \\"b\\" = {;.m"; };
      /* Begin XCVersionGroup section */
      \t\t84111111111111110019D2D6 /* \(bundle) */ = { isa = XCVersionGroup; children = (
      \(versions.map { "\t\t\t\t\($0.identifier) /* \($0.name).xcdatamodel */," }.joined(separator: "\n"))
      ); currentVersion = X; path = \(bundle); sourceTree = "<group>"; versionGroupType = wrapper.xcdatamodel; };
      }; rootObject = 8411B820189FDB140019D2D6 /* Project object */; }
      """
  }

  @Test func theProjectFileTellsWhenVersionsWereAdded() throws {
    let scratch = try Scratch()
    let path = try scratch.bundle("src/deep/M", versions: ["M", "Beta 1", "Alpha 9", "Zeta"], current: "M.xcdatamodel")
    let names = ["Zeta", "Alpha 9", "M", "Beta 1"]
    let versions = names.enumerated().map { ($0.element, identifier($0.offset, at: 413_000_000 + UInt32($0.offset))) }
    let file = "App.xcodeproj/project.pbxproj"
    try scratch.write(project("M.xcdatamodeld", versions.reversed()), to: file)
    let bundle = try ModelReader.read(at: path)
    #expect(bundle.versions.map(\.name) == names && bundle.order == .project)
    // A declared order has precedence.
    let declared = try ModelReader.read(at: path, declaredOrder: names.sorted())
    #expect(declared.versions.map(\.name) == names.sorted() && declared.order == .declared)
    let byName = ["Alpha 9", "Beta 1", "Zeta", "M"]
    // Added together: the order of the names, between earlier and later versions.
    let together = versions.map {
      ($0.0, $0.0 == "Zeta" ? $0.1 : identifier(20, at: 500_000_000).replacing("14", with: "1\($0.0.count)"))
    }
    try scratch.write(project("M.xcdatamodeld", together), to: file)
    #expect(try ModelReader.read(at: path).versions.map(\.name) == ["Zeta", "Alpha 9", "Beta 1", "M"])
    // A project without all versions, or not from Xcode, is ignored.
    for other in [
      project("Other.xcdatamodeld", versions), project("M.xcdatamodeld", Array(versions.dropLast())),
      project("M.xcdatamodeld", versions.map { ($0.0, $0.1.replacing("0019D2D6", with: "A119D2D6")) }),
      project("M.xcdatamodeld", versions.map { ($0.0, "00000000000000000000000\($0.0.count)") }),
      "{{{{{{{{{{{{{{{{{{{{{{{{", "}", "\"", "/*", "{ objects = { A = { isa = XCVersionGroup; children = (", "",
    ] {
      try scratch.write(other, to: file)
      let bundle = try ModelReader.read(at: path)
      #expect(bundle.versions.map(\.name) == byName && bundle.order == .names)
    }
    // The working version has the bundle's name and was the first; the others are copies of its earlier states.
    let copies = try scratch.bundle("src/Zoo", versions: ["Zoo", "ZooV1", "ZooB", "Zoo 2"], current: "Zoo.xcdatamodel")
    let added = ["Zoo", "ZooV1", "ZooB", "Zoo 2"].enumerated().map {
      ($0.element, identifier($0.offset, at: 413_000_000 + UInt32($0.offset)))
    }
    try scratch.write(project("Zoo.xcdatamodeld", added), to: file)
    #expect(try ModelReader.read(at: copies).versions.map(\.name) == ["ZooV1", "ZooB", "Zoo", "Zoo 2"])
    // A checkout ends the search.
    try scratch.write(project("M.xcdatamodeld", versions), to: file)
    try scratch.write("", to: "src/.git/HEAD")
    #expect(try ModelReader.read(at: path).order == .names)
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
    #expect(code("Old.xcdatamodel")?.exit == .dataError)
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

  /// A link to `/` would search the machine, and what cannot be read there would hide the models.
  @Test func aLinkOutOfTheFolderIsReportedAndHidesNoModel() throws {
    let scratch = try Scratch()
    let a = try scratch.bundle("models/A", versions: ["A"])
    let b = try scratch.bundle("shared/B", versions: ["B"])
    let models = scratch.path.appending("models")
    for (name, target) in [("root", "/"), ("up", "../.."), ("loop", "."), ("shared", "../shared"), ("self", "self")] {
      #expect(symlink(target, models.appending(name).string) == 0)
    }
    var reported: [String] = []
    let found = try ModelReader.findBundles(in: models) { reported.append($0.place.file?.lastComponent?.string ?? "") }
    #expect(found == [a, models.appending("shared/B.xcdatamodeld")], "\(b)")
    #expect(reported == ["loop", "root", "up"])
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
