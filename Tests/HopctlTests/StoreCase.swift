// One folder of Tests/StoreCases: how its store is made, and what hopctl must say and leave behind. The README there is
// the contract; StoreCaseTests runs all folders.

import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// A case as its folder describes it.
struct StoreCase: Sendable, CustomTestStringConvertible {
  /// What a command must answer.
  struct Answer: Decodable, Sendable {
    /// Exit status.
    let status: Int32
    /// Code of the error, or of the state that identify tells.
    let code: String?
    /// The state that identify tells.
    let state: String?
    /// Words that standard error must hold.
    let says: [String]?
    /// Statements about the result, with what sqlite3 answers.
    let checks: [String: String]?
    /// Statement about the source: statement about the result that must answer the same. nil: what the model says.
    let carried: [String: String]?
  }

  struct Store: Decodable, Sendable {
    /// A folder of Tests/StoreCases/Models, without its ending, or a path from the root of the repository.
    let models: String
    let version: String
    let rows: Int?
    /// File name; a.sqlite where there is none.
    let name: String?
    let framework: Int?
  }

  struct Expected: Decodable, Sendable {
    /// One sentence: what is hostile, and what is right.
    let about: String
    let store: Store
    /// More words for plan and migrate.
    let arguments: [String]?
    let identify, plan, copy, place: Answer
    /// What verify says of the result, where a migration keeps what it finds fault with; nil: nothing.
    let verify: Answer?
    /// May SQLite fold logs in, or roll them back, where migrate refuses in place? Never without saying so here.
    let mayReadLogs: Bool?
  }

  let name: String
  let folder: String
  let expected: Expected

  var testDescription: String { name }

  /// Tests/StoreCases, beside this target's folder.
  static let root = FilePath(#filePath).removingLastComponent().removingLastComponent().appending("StoreCases")
  /// The root of the repository.
  static var repository: FilePath { root.removingLastComponent().removingLastComponent() }

  /// All folders with an expected.json, by name. A file that cannot be read is a case that fails.
  static let all: [Result<StoreCase, Unreadable>] = {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: root.string)) ?? []
    return names.sorted().compactMap { name in
      let folder = root.appending(name).string
      guard let data = try? Data(contentsOf: URL(filePath: folder + "/expected.json")) else { return nil }
      do {
        let expected = try JSONDecoder().decode(Expected.self, from: data)
        return .success(StoreCase(name: name, folder: folder, expected: expected))
      } catch {
        return .failure(Unreadable(name: name, why: "\(error)"))
      }
    }
  }()

  struct Unreadable: Error {
    let name, why: String
  }

  var fileName: String { expected.store.name ?? "a.sqlite" }

  /// Where the models of the case are.
  var models: String {
    let name = expected.store.models
    if name.contains("/") { return StoreCase.repository.appending(name).string }
    return StoreCase.root.appending("Models/\(name).xcdatamodeld").string
  }

  /// What must be carried as it is between two versions of the model: Models/NAME.carried.json.
  func carriedByModel() throws -> [String: String] {
    let file = StoreCase.root.appending("Models/\(expected.store.models).carried.json").string
    guard let data = try? Data(contentsOf: URL(filePath: file)) else { return [:] }
    return try JSONDecoder().decode([String: String].self, from: data)
  }
}

extension Room {
  /// Runs a script of bash with variables; the answer is what it prints.
  func shell(_ script: String, _ variables: [String]) throws -> Outcome {
    try wait(start(program: "/bin/bash", ["-euc", script], variables: variables))
  }

  /// Every name below a folder: kind, mode, and the bytes or where the link leads.
  func listing(_ folder: String) throws -> [String: String] {
    let script = """
      cd -- "$FOLDER" && find . -mindepth 1 -printf '%P|%y|%m|%l|' \\( -type f \
      -exec sh -c 'sha256sum < "$1" | tr "\\n" "\\1"' sh {} \\; \
      -o -printf '\\1' \\)
      """
    let outcome = try shell(script, ["FOLDER=\(folder)"])
    try #require(outcome.status == 0, "\(outcome.errors)")
    var result: [String: String] = [:]
    for line in outcome.output.split(separator: "\u{1}") {
      let name = line.prefix { $0 != "|" }
      result[String(name)] = String(line.dropFirst(name.count))
    }
    return result
  }

  /// What sqlite3 answers about a store, in a copy of its folder: it may fold logs in there as it likes.
  func ask(_ folder: String, _ file: String, _ statements: [String]) throws -> [String] {
    let script = """
      cp -a -- "$FOLDER" "$COPY"
      cd -- "$COPY"
      for sql in "$@"; do sqlite3 -bail -batch "./$FILE" "$sql"; printf '\\1'; done
      cd / && rm -rf -- "$COPY"
      """
    let variables = ["FOLDER=\(folder)", "FILE=\(file)", "COPY=\(path("asked"))"]
    let outcome = try wait(
      start(program: "/bin/bash", ["-euc", script, "ask"] + statements, variables: variables))
    try #require(outcome.status == 0, "\(outcome.errors)")
    return outcome.output.split(separator: "\u{1}", omittingEmptySubsequences: false).dropLast().map(String.init)
  }
}
