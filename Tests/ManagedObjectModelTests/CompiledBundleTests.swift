// Compiled bundles on disk: VersionInfo.plist is compared with computed hashes, replaces uncertain ones, and names
// missing versions; a bundle in the folder of its source is the same model.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PropertyLists
import SystemPackage
import Testing

/// A folder with a model in both forms: entity A, its subentity B, and C, whose hash depends on an unproven rule
/// through an attribute without a type, with its subentity D.
private final class Forms {
  let folder: FilePath
  let source: FilePath
  let compiled: FilePath

  init() throws {
    let url = FileManager.default.temporaryDirectory.appending(path: "hopd-momd-\(UUID().uuidString)")
    folder = FilePath(url.path())
    source = folder.appending("M.xcdatamodeld")
    compiled = folder.appending("M.momd")
    for version in ["M", "M 2"] {
      let contents = """
        <model><entity name="A"><attribute name="a" attributeType="String"/></entity><entity name="B" parentEntity="A"/>
        <entity name="C" versionHashModifier="\(version)"><attribute name="c" attributeType="String"/>
        <attribute name="u"/>
        <uniquenessConstraints><uniquenessConstraint><constraint value="c"/></uniquenessConstraint>
        </uniquenessConstraints></entity><entity name="D" parentEntity="C"/></model>
        """
      try write(Array(contents.utf8), to: source.appending("\(version).xcdatamodel/contents"))
      let b = ArchiveBuilder()
      let a = b.entity("A", [("a", b.attribute("a", 700))])
      let c = b.entity(
        "C", [("c", b.attribute("c", 700)), ("u", b.attribute("u", 0))],
        ["NSVersionHashModifier": b.text(version), "NSUniqueTuples": b.list([b.list([b.text("c")])])])
      let model = b.model([
        ("A", a), ("B", b.entity("B", [], ["NSSuperentity": a])), ("C", c),
        ("D", b.entity("D", [], ["NSSuperentity": c])),
      ])
      try write(model, to: compiled.appending("\(version).mom"))
    }
  }

  deinit { try? FileManager.default.removeItem(atPath: folder.string) }

  func write(_ bytes: [UInt8], to path: FilePath) throws {
    let url = URL(filePath: path.string)
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
  }

  func remove(_ path: FilePath) throws { try FileManager.default.removeItem(atPath: path.string) }

  /// Writes VersionInfo.plist with the computed hashes and `changes`: version, entity, hash (nil removes it).
  func writeInfo(
    current: String? = "M 2", changes: [(String, String, VersionHash?)] = [], checksums: [String: String] = [:]
  ) throws {
    var hashes: [String: [String: VersionHash]] = [:]
    for version in ["M", "M 2"] {
      hashes[version] = try ModelReader.read(
        contents: Array(Data(contentsOf: URL(filePath: source.appending("\(version).xcdatamodel/contents").string))),
        name: version
      ).model.versionHashes
    }
    for (version, entity, hash) in changes { hashes[version]?[entity] = hash }
    var entries: [String: PropertyListValue] = [
      "NSManagedObjectModel_VersionHashes": .dictionary(
        hashes.mapValues { .dictionary($0.mapValues { .data($0.bytes) }) }),
      "NSManagedObjectModel_VersionChecksums": .dictionary(checksums.mapValues { .string($0) }),
    ]
    if let current { entries["NSManagedObjectModel_CurrentVersionName"] = .string(current) }
    try write(PropertyList.encodeBinary(.dictionary(entries)), to: compiled.appending("VersionInfo.plist"))
  }
}

@Suite struct CompiledBundleTests {
  private let other = VersionHash(bytes: [UInt8](repeating: 7, count: 32))

  @Test func versionsCurrentOneAndHashes() throws {
    let forms = try Forms()
    try forms.writeInfo()
    let (source, compiled) = (try ModelReader.read(at: forms.source), try ModelReader.read(at: forms.compiled))
    #expect(compiled.name == "M" && compiled.versions.map(\.name) == ["M", "M 2"])
    #expect(compiled.currentVersionName == "M 2" && compiled.warnings.isEmpty)
    #expect(compiled.versions == source.versions)
    #expect(
      try ModelReader.read(at: forms.compiled, declaredOrder: ["M 2", "M"]).versions.map(\.name) == ["M 2", "M"])
    #expect(throws: HopdError.self) { try ModelReader.read(at: forms.compiled, declaredOrder: ["M"]) }
    let alone = try ModelReader.read(at: forms.compiled.appending("M 2.mom"))
    #expect(alone.name == "M 2" && alone.versions == [compiled.versions[1]])
  }

  @Test func aHashThatIsCertainMustAgree() throws {
    let forms = try Forms()
    try forms.writeInfo(changes: [("M 2", "A", other)])
    for path in [forms.compiled, forms.source] {
      let error = #expect(throws: HopdError.self) { try ModelReader.read(at: path) }
      #expect(error?.code == .modelsDisagree && error?.hint != nil)
      let text = error?.description ?? ""
      for word in ["M 2", "“A”", String(repeating: "07", count: 32)] { #expect(text.contains(word), "\(text)") }
      #expect(error?.reasons.count == 1, "\(text)")
    }
    try forms.writeInfo(changes: [("M", "B", nil)])
    let missing = #expect(throws: HopdError.self) { try ModelReader.read(at: forms.source) }
    #expect(missing?.description.contains("no such entity") == true)
    try forms.writeInfo(checksums: ["M": "wrong"])
    let checksum = #expect(throws: HopdError.self) { try ModelReader.read(at: forms.compiled) }
    #expect(checksum?.description.contains("checksum") == true)
  }

  @Test func versionInfoSettlesWhatCannotBeComputed() throws {
    let forms = try Forms()
    let child = VersionHash(bytes: [UInt8](repeating: 8, count: 32))
    try forms.writeInfo(changes: [("M", "C", other), ("M", "D", child)])
    for path in [forms.compiled, forms.source] {
      let bundle = try ModelReader.read(at: path)
      let first = try #require(bundle.version(named: "M"))
      #expect(first.versionHashes["C"] == other && first.versionHashes["D"] == child)
      #expect(first.declaredVersionHashes.keys.sorted() == ["C", "D"])
      #expect(bundle.versions.allSatisfy { $0.uncertainHashes.isEmpty })
      #expect(first.versionChecksum == VersionHash.checksum(of: first.versionHashes))
    }
    try forms.remove(forms.compiled.appending("VersionInfo.plist"))
    #expect(try ModelReader.read(at: forms.source).versions.allSatisfy { $0.uncertainHashes.count == 1 })
  }

  @Test func whatIsMissingOrBroken() throws {
    let forms = try Forms()
    let without = try ModelReader.read(at: forms.compiled)
    #expect(without.versions.map(\.name) == ["M", "M 2"] && without.currentVersionName == nil)
    #expect(without.warnings.count == 1)
    try forms.writeInfo(current: "M 3")
    let wrong = try ModelReader.read(at: forms.compiled)
    #expect(wrong.currentVersionName == nil && wrong.warnings.count == 1)

    try forms.write(Array("broken".utf8), to: forms.compiled.appending("VersionInfo.plist"))
    let broken = #expect(throws: HopdError.self) { try ModelReader.read(at: forms.compiled) }
    #expect(broken?.place.file?.string.hasSuffix("VersionInfo.plist") == true && broken?.hint != nil)
    // The source was requested; it warns that it could not be compared.
    #expect(try ModelReader.read(at: forms.source).warnings.contains { $0.message.contains("cannot be compared") })

    try forms.writeInfo()
    try forms.remove(forms.compiled.appending("M.mom"))
    let gone = try ModelReader.read(at: forms.compiled)
    #expect(gone.versions.map(\.name) == ["M 2"] && gone.currentVersionName == "M 2")
    #expect(gone.omitted.first?.reason.description.contains("there is no M.mom") == true)
    // VersionInfo.plist still identifies the stores of the version, and the source's version may replace it.
    #expect(gone.omitted.first?.hashes == (try ModelReader.read(at: forms.source)).version(named: "M")?.versionHashes)
    let whole = try gone.merged(with: ModelReader.read(at: forms.source))
    #expect(whole.versions.map(\.name) == ["M", "M 2"] && whole.omitted.isEmpty)
    try forms.write(Array("momv2$".utf8), to: forms.compiled.appending("M.omo"))
    let image = try ModelReader.read(at: forms.compiled).omitted.first?.reason
    #expect(image?.code == .unsupportedModel && image?.description.contains("only as .omo") == true)
    try forms.write(Array("broken".utf8), to: forms.compiled.appending("M 2.mom"))
    // A damaged file may be one that is being copied.
    let damaged = #expect(throws: HopdError.self) { try ModelReader.read(at: forms.compiled) }
    #expect(damaged?.place.file?.lastComponent?.string == "M 2.mom")
  }

  @Test func formsOfOneModelBecomeOne() throws {
    let forms = try Forms()
    let hash = try #require(other)
    let source = try ModelReader.read(at: forms.source)
    try forms.writeInfo(changes: [("M", "C", hash), ("M", "D", hash)])
    let compiled = try ModelReader.read(at: forms.compiled)
    for merged in [try source.merged(with: compiled), try compiled.merged(with: source)] {
      #expect(merged.path == forms.source && merged.currentVersionName == "M 2")
      #expect(merged.versions.map(\.name) == ["M", "M 2"])
      #expect(merged.versions.allSatisfy { $0.compiledForm != nil && $0.uncertainHashes.isEmpty })
      #expect(merged.version(named: "M")?.versionHashes["C"] == hash)
    }
    try forms.write(
      Array("<model><entity name='A'/></model>".utf8), to: forms.source.appending("M.xcdatamodel/contents"))
    try forms.remove(forms.compiled.appending("VersionInfo.plist"))
    let edited = try ModelReader.read(at: forms.source)
    let error = #expect(throws: HopdError.self) { try edited.merged(with: compiled) }
    #expect(error?.code == .modelsDisagree)
    for word in ["“M”", "“A”", "“B”"] { #expect(error?.description.contains(word) == true) }
  }
}
