// What known hashes settle: those of a store, and those that the tests of apps pin, in the forms in which they do.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import SwiftDataReading
import SwiftDataSource
import SystemPackage
import Testing

@Suite(.enabled(if: TestReader.program != nil, TestReader.absence)) struct CalibrationTests {
  private static let source = """
    struct Step: Codable { var x: Int }
    @Model class Account { var site: URL?; var steps: [Step]; var owner: Owner? }
    @Model class Owner { var n: Int8; var name: String }
    @Model class Plain { var name: String; var owner: Owner? }
    """
  private static let schema = "Account,Owner,Plain"
  private static let truth = ["URL": "string", "array of a struct": "binary", "Int8": "integer 16"]

  private func model(_ source: String = Self.source, _ forms: [String: String] = Self.truth) throws
    -> ManagedObjectModel
  {
    let target = try TestReader.target(["Models.swift": source])
    let models = try SourceModels(target, schema: Self.schema, calibrated: CalibratedForms(forms))
    return try #require(models.versions.first?.derived.model)
  }

  private func find(
    _ known: PinnedHashes, in sources: [String] = [Self.source], schema: String? = Self.schema
  ) throws -> Calibration {
    let targets = try sources.map { Calibration.Source(target: try TestReader.target(["Models.swift": $0])) }
    return try Calibration.find(known, in: targets, schema: schema, calibrated: CalibratedForms())
  }

  private func pinned(_ text: String) -> PinnedHashes {
    var pinned = PinnedHashes()
    pinned.add(text.utf8, of: "T.swift")
    return pinned
  }

  private func base64(_ hash: VersionHash?) -> String { Data(hash?.bytes ?? []).base64EncodedString() }

  @Test("The hashes of a store settle every form of its version")
  func hashesOfAStore() throws {
    let made = try model()
    let found = try find(PinnedHashes(made.versionHashes, of: "default.store"))
    #expect(found.found.found == Self.truth && found.open.isEmpty)
    #expect(found.fits.map(\.isWhole) == [true])
    #expect(found.found.evidence["URL"] == "the version hashes of default.store, version 1.0.0")
  }

  @Test("Hashes are found in every form in which tests pin them", arguments: 0..<9)
  func formsOfPins(_ form: Int) throws {
    let made = try model()
    let hashes = made.versionHashes.sorted { $0.key < $1.key }
    func each(_ separator: String, _ text: (String, VersionHash) -> String) -> String {
      hashes.map { text($0.key, $0.value) }.joined(separator: separator)
    }
    let hexadecimal = each("\n") { "\($0):\($1)" }
    let texts = [
      "static let shipped: [String: String] = [\n" + each(",\n") { "  \"\($0)\":\"\(base64($1))\"" } + "\n]",
      each("\n") { "XCTAssertEqual(hashes[\"\($0)\"]?.map { String(format: \"%02x\", $0) }.joined(), \"\($1)\")" },
      each(", ") { "(\"\($0)\", \($0).self, Data(base64Encoded: \"\(base64($1))\")!)" },
      "{" + each(",") { "\"\($0)\": \"\(base64($1).replacing("/", with: "\\/"))\"" } + "}",
      each("\\n") { "V1 \($0) \(base64($1))" },
      "#expect(checksum == \"\(made.versionChecksum)\")",
      "[version]\ndigest = '\(made.versionHashesDigest)'",
      "XCTAssertEqual(try digest(of: SchemaV1.self), \"\(ContentDigest.sha256(hexadecimal.utf8).prefix(16))\")",
      "\"sha256\": \"\(ContentDigest.sha256(each("\n") { "\($0)=\(base64($1))" }.utf8))\"",
    ]
    let found = try find(pinned(texts[form]))
    #expect(found.found.found == Self.truth, "\(texts[form])")
    #expect(found.fits.first?.isWhole == true)
    #expect(found.found.evidence.values.allSatisfy { $0.contains("T.swift:") })
  }

  @Test("The hash of one entity settles the forms that it has, and no others")
  func oneEntity() throws {
    let made = try model()
    let found = try find(pinned("let x = [\"Account\": \"\(base64(made.versionHashes["Account"]))\"]"))
    #expect(found.found.found == Self.truth.filter { $0.key != "Int8" })
    #expect(found.open.map(\.form.name) == ["Int8"] && found.open.first?.places.first?.property == "n")
    #expect(found.fits.map { "\($0.equal) of \($0.all)" } == ["1 of 3"])
    #expect(found.found.evidence["URL"] == "the version hash of Account in T.swift:1, version 1.0.0")
  }

  @Test("A store of an older release settles what did not change, and the source of the release settles all")
  func changedSource() throws {
    let made = try model()
    let now = Self.source.replacing("var n: Int8; var name: String", with: "var n: Int8; var title: String")
    let known = PinnedHashes(made.versionHashes, of: "default.store")
    let found = try find(known, in: [now])
    #expect(found.found.found == Self.truth.filter { $0.key != "Int8" } && !found.fits.contains { $0.isWhole })
    let both = try find(known, in: [Self.source, now])
    #expect(both.found.found == Self.truth && both.fits.map(\.isWhole) == [false, true])
  }

  @Test("A hash that another version explains is no evidence")
  func explainedHash() throws {
    func versions(_ type: String) -> String {
      """
      enum SchemaV1: VersionedSchema {
        static let versionIdentifier = Schema.Version(1, 0, 0)
        static var models: [any PersistentModel.Type] { [Plain.self] }
        @Model class Plain { var values: [Double] }
      }
      enum SchemaV2: VersionedSchema {
        static let versionIdentifier = Schema.Version(2, 0, 0)
        static var models: [any PersistentModel.Type] { [Plain.self] }
        @Model class Plain { var values: \(type) }
      }
      """
    }
    let target = try TestReader.target(["Models.swift": versions("Data")])
    let second = try #require(SourceModels(target, schema: "SchemaV2").versions.first?.derived.model)
    let known = pinned(base64(second.versionHashes["Plain"]))
    // Read as Binary, the array of the first version would have the pinned hash, which is that of the second one.
    let found = try find(known, in: [versions("Data")], schema: nil)
    #expect(found.found.found.isEmpty && found.open.map(\.form.name) == ["array of Double"])
    let alone = try find(known, in: [versions("String")], schema: nil)
    #expect(alone.found.found == ["array of Double": "binary"])
  }

  @Test("Hashes that no reading gives together are refused")
  func contradiction() throws {
    let (one, other) = (try model(), try model(Self.source, Self.truth.merging(["Int8": "integer 32"]) { $1 }))
    let source = Self.source.replacing("var name: String; var owner", with: "var n: Int8; var owner")
    let third = try model(source, Self.truth.merging(["Int8": "integer 32"]) { $1 })
    #expect(one.versionHashes["Owner"] != other.versionHashes["Owner"])
    let known = pinned("\(base64(one.versionHashes["Owner"])) \(base64(third.versionHashes["Plain"]))")
    #expect(throws: HopdError.self) { try find(known, in: [source]) }
  }

  @Test("Short digests and other text are not hashes")
  func otherText() throws {
    let made = try model()
    let digest = ContentDigest.sha256(
      made.versionHashes.map { "\($0.key):\($0.value)" }.sorted().joined(separator: "\n").utf8)
    #expect(pinned("let x = \"\(digest.prefix(15))\" // not a hash: deadbeef, SGVsbG8=").isEmpty)
    #expect(!pinned("0x\(digest.prefix(16).uppercased())").isEmpty)
    #expect(pinned(String(repeating: "a", count: 300)).isEmpty)
    let known = pinned("\"\(digest.prefix(20).uppercased())\"")
    #expect(known.place(of: made) == "T.swift:1")
  }

  @Test("The calibration file keeps each form with its evidence")
  func file() throws {
    var forms = CalibratedForms(Self.truth)
    forms.evidence = ["URL": "a \"store\"", "Int8": "T.swift:1", "array of a struct": ""]
    let text = CalibrationFile.text(forms)
    #expect(try CalibrationFile.parse(text, at: "hop.calibration.toml") == forms)
    #expect(throws: HopdError.self) { try CalibrationFile.parse("forms = 1", at: "hop.calibration.toml") }
  }

  @Test("Files and folders of tests are read; pictures, links and hidden files are not")
  func files() throws {
    let made = try model()
    let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("hopd-pins-\(UUID().uuidString)")
    let tests = folder.appending("AppTests")
    try FileManager.default.createDirectory(atPath: tests.string, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder.string) }
    func write(_ bytes: some Sequence<UInt8>, _ name: String) throws {
      try Data(bytes).write(to: URL(filePath: tests.appending(name).string))
    }
    try write("\n\"\(made.versionChecksum)\"".utf8, ".hidden.swift")
    try write([0] + Array(made.versionChecksum.utf8), "picture.png")
    try FileManager.default.createSymbolicLink(
      atPath: tests.appending("a.swift").string, withDestinationPath: tests.appending(".hidden.swift").string)
    #expect(throws: HopdError.self) { try PinnedFiles.read([folder]) }
    try write("\n\n\"\(made.versionChecksum)\"".utf8, "PinTests.swift")
    let known = try PinnedFiles.read([folder])
    #expect(known.place(of: made) == "\(tests.appending("PinTests.swift").string):3")
    #expect(try PinnedFiles.read([tests.appending(".hidden.swift")]).place(of: made)?.hasSuffix(":2") == true)
    #expect(throws: HopdError.self) { try PinnedFiles.read([folder.appending("absent")]) }
  }
}
