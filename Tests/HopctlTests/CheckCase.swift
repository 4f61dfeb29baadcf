// One folder of Tests/CheckCases: the versions of a model, and what `hopctl check` must say of them. The README there
// is the contract; CheckCaseTests runs all folders.

import FoundationEssentials
import SystemPackage
import Testing

/// A case as its folder describes it.
struct CheckCase: Sendable, CustomTestStringConvertible {
  struct Finding: Decodable, Sendable, Hashable {
    let code: String
    let entity: String?
    let property: String?
  }

  struct Expected: Decodable, Sendable {
    let about: String
    let status: Int32
    let findings: [Finding]
    let warnings: [Finding]?
    let anyCode: Bool?
    let hop: String?
    let stops: [String]?
    let rowsDecide: Bool?
    let ways: [String]?
    let says: [String]?
    let saysNot: [String]?
    let arguments: [String]?
    let freeze: Bool?
    let removed: [String]?
    let added: Bool?
    let renamed: [String: String]?
    let current: Int?
    let order: [String]?
    let to: String?
  }

  let name: String
  let folder: FilePath
  let expected: Expected

  var testDescription: String { name }

  /// Tests/CheckCases, beside this target's folder.
  static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().appending("CheckCases")

  /// All folders, by name.
  static let all: [CheckCase] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root.string)) ?? []
    return names.sorted().compactMap { name in
      let folder = root.appending(name)
      guard let data = try? Data(contentsOf: URL(filePath: folder.appending("expected.json").string)),
        let expected = try? JSONDecoder().decode(Expected.self, from: data)
      else { return nil }
      return CheckCase(name: name, folder: folder, expected: expected)
    }
  }()

  /// The entities of a version; nil where there is no such file.
  func entities(_ number: Int, edited: Bool = false) -> String? {
    let name = edited ? "\(number).edited.xml" : "\(number).xml"
    return (try? Data(contentsOf: URL(filePath: folder.appending(name).string))).map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  var versions: Int { (1...99).first { entities($0) == nil }.map { $0 - 1 } ?? 0 }

  /// Files that lie beside the model.
  var besides: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? [])
      .filter { $0 != "expected.json" && !$0.hasSuffix(".xml") }
  }
}

extension Room {
  /// Writes a version of the model Model.xcdatamodeld.
  func modelVersion(_ number: Int, _ entities: String) throws {
    let name = number == 1 ? "Model" : "Model \(number)"
    try file(
      "Model.xcdatamodeld/\(name).xcdatamodel/contents",
      "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n<model>\n\(entities)\n</model>\n")
  }

  /// Marks a version as current.
  func currentVersion(_ number: Int) throws {
    try file(
      "Model.xcdatamodeld/.xccurrentversion",
      """
      <?xml version="1.0" encoding="UTF-8"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>
      <string>\(number == 1 ? "Model" : "Model \(number)").xcdatamodel</string></dict></plist>
      """)
  }

  /// The model of a case.
  func model(of item: CheckCase) throws {
    for number in 1...max(1, item.versions) {
      if let entities = item.entities(number) { try modelVersion(number, entities) }
    }
    try currentVersion(item.versions)
    for name in item.besides {
      let bytes = try Data(contentsOf: URL(filePath: item.folder.appending(name).string))
      try file(name, String(decoding: bytes, as: UTF8.self))
    }
  }
}
