// A check as SARIF 2.1.0, which code hosts show beside the lines of a file: one result for each finding, at the line of
// the `contents` file that must be corrected.

import Diagnostics
import FoundationEssentials

/// Writes SARIF.
package enum SARIFReport {
  /// Returns the log as JSON text.
  package static func text(_ findings: [PlacedFinding]) throws(HopdError) -> String {
    let codes = Set(findings.map(\.finding.error.code.name)).sorted()
    let log = Log(
      runs: [
        Run(
          tool: [
            "driver": Driver(
              name: "hopctl", version: ProgramVersion.number,
              rules: codes.map { Rule(id: $0, shortDescription: ["text": words(of: $0)]) })
          ],
          results: findings.map { result($0, codes) }, columnKind: "utf16CodeUnits")
      ])
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
    do {
      return String(decoding: try encoder.encode(log), as: UTF8.self) + "\n"
    } catch {
      throw HopdError(.internalError, "a report cannot be written as JSON", cause: error)
    }
  }

  private static func result(_ placed: PlacedFinding, _ codes: [String]) -> Result {
    let error = placed.finding.error
    var text = error.headline
    for remedy in placed.finding.remedies {
      text += "\n\(remedy.title)" + (remedy.text.isEmpty ? "" : ":\n\(remedy.text)")
    }
    if placed.finding.remedies.isEmpty, let hint = error.hint { text += "\n\(hint)" }
    let name = [error.place.entity, error.place.property].compactMap(\.self).joined(separator: ".")
    return Result(
      ruleId: error.code.name, ruleIndex: codes.firstIndex(of: error.code.name) ?? 0,
      level: placed.level.rawValue, message: ["text": text],
      locations: [
        Location(
          physicalLocation: PhysicalLocation(
            artifactLocation: ["uri": uri(placed.path)], region: ["startLine": max(1, placed.line)]),
          logicalLocations: name.isEmpty ? nil : [["fullyQualifiedName": name]])
      ],
      partialFingerprints: [
        "hopd/v1": [placed.model, error.code.name, error.place.hop ?? "", name].joined(separator: "|")
      ])
  }

  /// Returns a rule's description, made from its name: "missing required value".
  private static func words(of code: String) -> String { code.split(separator: "-").joined(separator: " ") }

  /// Returns a path as a URI reference.
  private static func uri(_ path: String) -> String {
    var result = path.hasPrefix("/") ? "file://" : ""
    for byte in path.utf8 {
      let isPlain =
        (0x30...0x39).contains(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
        || "-._~/".utf8.contains(byte)
      let digits = String(byte, radix: 16, uppercase: true)
      result += isPlain ? String(Unicode.Scalar(byte)) : "%" + (digits.utf8.count == 1 ? "0" : "") + digits
    }
    return result
  }

  // The keys are the standard's.

  private struct Log: Encodable {
    let version = "2.1.0"
    let schema = "https://json.schemastore.org/sarif-2.1.0.json"
    let runs: [Run]

    enum CodingKeys: String, CodingKey {
      case version, runs
      case schema = "$schema"
    }
  }

  private struct Run: Encodable {
    let tool: [String: Driver]
    let results: [Result]
    let columnKind: String
  }

  private struct Driver: Encodable {
    let name: String
    let version: String
    let rules: [Rule]
  }

  private struct Rule: Encodable {
    let id: String
    let shortDescription: [String: String]
  }

  private struct Result: Encodable {
    let ruleId: String
    let ruleIndex: Int
    let level: String
    let message: [String: String]
    let locations: [Location]
    let partialFingerprints: [String: String]
  }

  private struct Location: Encodable {
    let physicalLocation: PhysicalLocation
    let logicalLocations: [[String: String]]?
  }

  private struct PhysicalLocation: Encodable {
    let artifactLocation: [String: String]
    let region: [String: Int]
  }
}
