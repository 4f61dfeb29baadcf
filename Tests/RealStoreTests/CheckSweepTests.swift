// Runs `hopctl check` over every model of the fixtures and of the examples: a red one is listed in
// Tests/CheckSweep/reds.json with the reason, all others must be green. A model that is red without being listed is a
// false alarm, or a new fault; a listed one that is green was repaired, and the list is outdated.

import BlockingTests
import Diagnostics
import FoundationEssentials
import Glibc
import ManagedObjectModel
import MigrationChecking
import MigrationPlanning
import SystemPackage
import Testing

@Suite(.blocking, .serialized)
struct CheckSweepTests {
  /// One model that is correctly red.
  private struct Red: Decodable {
    let model: String
    let reason: String
    /// The codes of its findings.
    let codes: [String]
  }

  private struct Subject {
    let name: String
    let bundle: FilePath
    let mappings: [FilePath]
  }

  /// The package's folder.
  private static let package = FilePath(#filePath).removingLastComponent().removingLastComponent()
    .removingLastComponent()

  private static func reds() throws -> [Red] {
    let file = package.appending("Tests/CheckSweep/reds.json")
    return try JSONDecoder().decode([Red].self, from: Data(contentsOf: URL(filePath: file.string)))
  }

  /// Returns all bundles below a folder, each with the mapping models of its part of the folder.
  private static func subjects(below root: FilePath, _ name: String, depth: Int = 0) -> [Subject] {
    guard depth < 6 else { return [] }
    return names(in: root).flatMap { entry -> [Subject] in
      let path = root.appending(entry)
      guard isFolder(path), !entry.hasPrefix(".") else { return [] }
      if ["xcdatamodeld", "momd"].contains(path.extension ?? "") {
        // The models of a fixture are in their own folder, next to the mapping models.
        let parent = root.lastComponent?.string == "models" ? root.removingLastComponent() : root
        return [Subject(name: "\(name)/\(entry)", bundle: path, mappings: mappings(in: parent))]
      }
      return subjects(below: path, "\(name)/\(entry)", depth: depth + 1)
    }
  }

  private static func mappings(in folder: FilePath, depth: Int = 0) -> [FilePath] {
    names(in: folder).flatMap { name -> [FilePath] in
      let path = folder.appending(name)
      if [".xcmappingmodel", ".cdm", ".hopmap.toml"].contains(where: { name.hasSuffix($0) }) { return [path] }
      guard depth < 2, isFolder(path), !name.hasSuffix(".xcdatamodeld"), !name.hasSuffix(".momd") else { return [] }
      return mappings(in: path, depth: depth + 1)
    }
  }

  private static func names(in folder: FilePath) -> [String] { Fixtures.names(in: folder) }
  private static func isFolder(_ path: FilePath) -> Bool { Fixtures.isFolder(path) }

  /// Returns the check of a bundle; for a long line or a large model only of its newest versions, unless all are
  /// requested.
  private func check(_ subject: Subject) throws -> CheckReport {
    var catalog = try ModelCatalog.load([subject.bundle])
    try catalog.loadMappings(subject.mappings, beside: [])
    var request = CheckRequest(catalog: catalog)
    request.allowsUnboundPolicies = true
    let names = catalog.versions.map(\.model.name)
    // A bundle without a current version was cut out of an app for one of its mapping models.
    if names.count > 1, catalog.bundles.allSatisfy({ $0.currentVersionName == nil }), let last = names.last {
      request.target = .named(last)
    }
    let isFull = getenv("HOPD_TESTS").map { String(cString: $0) } == "full"
    let entities = max(1, catalog.versions.last?.model.entities.count ?? 1)
    let newest = max(3, min(6, 120 / entities))
    if !isFull, names.count > newest { request.since = names[names.count - newest] }
    return try ModelChecker(request).run()
  }

  private func sweep(_ subjects: [Subject], part: String) throws {
    let listed = try Self.reds().filter { $0.model.hasPrefix(part + "/") }
    let start = ContinuousClock.now
    var red: Set<String> = []
    for subject in subjects {
      let expected = listed.first { $0.model == subject.name }
      let found: [String]
      do {
        let report = try check(subject)
        found = Set(report.models.flatMap { ($0.problems + $0.findings).map(\.error.code.name) }).sorted()
        #expect(report.isRed == !found.isEmpty, "\(subject.name): \(report.summary)")
      } catch let error as HopdError {
        found = [error.code.name]
      }
      if !found.isEmpty { red.insert(subject.name) }
      #expect(found == (expected?.codes ?? []), "\(subject.name), \(expected?.reason ?? "not listed")")
    }
    for item in listed where !red.contains(item.model) {
      Issue.record("\(item.model) is listed as red (\(item.reason)) and is green, or not there")
    }
    print("\(part): \(subjects.count) models, \(red.count) red as listed, \(ContinuousClock.now - start)")
  }

  @Test(
    .enabled(if: Fixtures.isAvailable && Fixtures.isStandardSet, Fixtures.absence),
    arguments: ["chains", "mappings", "reach"])
  func noModelOfTheFixturesIsRedWithoutAReason(_ part: String) throws {
    let subjects = Self.subjects(below: try #require(Fixtures.root).appending(part), part)
    #expect(subjects.count > 5)
    try sweep(subjects, part: part)
  }

  @Test func noExampleIsRed() throws {
    let subjects = Self.subjects(below: Self.package.appending("Examples"), "Examples")
    #expect(subjects.count >= 3)
    try sweep(subjects, part: "Examples")
  }
}
