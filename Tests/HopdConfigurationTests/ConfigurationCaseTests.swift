// One folder per case below Tests/ConfigurationCases: `vendor` and `etc` are the two places, `about.txt` says what the
// case shows, `expected.txt` is the whole answer. To add a case, add a folder and run once with HOPD_RECORD_CASES=1.

import Diagnostics
import Glibc
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import StoreReplacement
import SystemPackage
import Testing

@testable import HopdConfiguration

@Suite struct ConfigurationCaseTests {
  @Test(arguments: Repository.entries("Tests/ConfigurationCases"))
  func everyCaseAnswersAsExpected(_ name: String) throws {
    let folder = Repository.root.appending("Tests/ConfigurationCases").appending(name)
    let loader = ConfigurationLoader(vendor: folder.appending("vendor"), administrator: folder.appending("etc"))
    var answer: String
    do {
      answer = Dump.text(try loader.load())
    } catch {
      answer = "exit \(error.code.exit.rawValue), \(error.code)\n\(error)\n"
    }
    answer = answer.replacing(folder.string + "/", with: "")
    let expected = folder.appending("expected.txt")
    if getenv("HOPD_RECORD_CASES") != nil { try Repository.write(answer, to: expected) }
    #expect(answer == (try Repository.read(expected)))
  }
}

/// The repository that this file lies in.
enum Repository {
  static let root: FilePath = {
    var path = FilePath(#filePath)
    for _ in 0..<3 { path.removeLastComponent() }
    return path
  }()

  static func entries(_ folder: String) -> [String] {
    guard let stream = opendir(root.appending(folder).string) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  static func read(_ file: FilePath) throws -> String {
    let descriptor = try FileDescriptor.open(file, .readOnly)
    return try descriptor.closeAfter {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 65536)
      while case let count = try buffer.withUnsafeMutableBytes({ try descriptor.read(into: $0) }), count > 0 {
        bytes += buffer.prefix(count)
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  static func write(_ text: String, to file: FilePath) throws {
    let descriptor = try FileDescriptor.open(
      file, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite, .groupRead, .otherRead])
    _ = try descriptor.closeAfter { try descriptor.writeAll(text.utf8) }
  }
}

/// A configuration as lines, in one order.
enum Dump {
  static func text(_ loaded: LoadedConfiguration) -> String {
    var lines = ["configured: \(loaded.configuration.isConfigured)"]
    lines += loaded.files.map { "file: \($0)" }
    lines += loaded.warnings.map { "warning: \($0)" }
    return (lines + Self.lines(loaded.configuration)).joined(separator: "\n") + "\n"
  }

  static func lines(_ configuration: Configuration) -> [String] {
    let daemon = configuration.daemon
    var lines = ["daemon: \(daemon.logLevel), jobs \(daemon.jobs), memory \(daemon.memoryLimit)"]
    let throttle = configuration.throttle
    if throttle.isSet {
      lines.append(
        "throttle: I/O \(throttle.ioPressure), cpu \(throttle.cpuPressure), memory \(throttle.memoryPressure)")
    }
    for watch in configuration.watches {
      lines += [
        "watch \(watch.name): \(watch.directory)\(watch.recursive ? ", recursive" : "")",
        "  include \(watch.include), exclude \(watch.exclude)",
        "  models \(watch.models.map(\.string)), versions \(watch.versions), target \(watch.target ?? "(current)")",
        "  mappings \(watch.mappings.map(\.string))",
        "  invalid rows \(watch.migration.engine.invalidRows.standard)"
          + watch.migration.engine.invalidRows.byEntity.sorted { $0.key < $1.key }.map { ", \($0.key) \($0.value)" }
          .joined()
          + ", unmapped entities \(watch.migration.unmappedEntities)",
        "  infer \(watch.migration.infer), settle \(watch.settle), rescan \(watch.rescan)",
        "  chunks of \(watch.migration.engine.chunkTime), at most \(watch.migration.engine.chunkRowsMax) rows",
        "  history \(watch.migration.history), cloudkit \(watch.migration.cloudKit), "
          + "verify \(watch.migration.verification), journal mode \(watch.migration.journalMode)"
          + (watch.migration.replacement.map { ", replace \($0.rawValue)" } ?? ""),
        "  join tables \(watch.joinTables), reference \(watch.reference?.string ?? "(none)")",
        "  retry \(watch.retry.attempts) times, \(watch.retry.backoff)"
          + " to \(watch.retry.longest)",
        "  backup \(watch.migration.backup.keep) for \(watch.migration.backup.keepFor ?? .zero)"
          + " in \(watch.migration.backup.directory?.string ?? "(beside the store)")"
          + (watch.migration.pinRule == .newVersion ? ", pins until a new version" : ""),
      ]
    }
    for watch in configuration.watches where watch.priority != 0 || watch.window != nil {
      lines.append(
        "turn of \(watch.name): priority \(watch.priority), \(watch.window?.text ?? "always")"
          + (watch.window?.zone.name.map { " \($0)" } ?? ""))
    }
    for watch in configuration.watches where watch.commands != Configuration.Commands() {
      lines.append(
        "commands of \(watch.name): on_failure \(watch.commands.onFailure), on_migrated \(watch.commands.onMigrated)")
    }
    for policy in configuration.policies {
      lines.append("policy \(policy.name): \(policy.command), \(policy.timeout), memory \(policy.memory)")
    }
    return lines
  }
}
