// Reads the seeds and findings of fuzzing in the ordinary tests too: a model with hashes or an error for every file.
// tools/fuzz checks each file's own memory and time.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import Testing

@Suite struct FuzzCorpusTests {
  @Test func everyModelReadsOrIsRefused() throws {
    let files = try corpus("xml-model")
    #expect(files.count >= 20)
    var read: Set<String> = []
    for (name, bytes) in files {
      do throws(HopdError) {
        let model = try ModelReader.read(contents: bytes, name: name).model
        #expect(model.versionHashes.count == model.entities.count, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
    }
    #expect(read.isSuperset(of: ["every-element", "heirs", "two-entities"]))
    #expect(
      read.isDisjoint(with: [
        "billion-laughs", "circle-composites", "circle-parents", "deep", "external-entity", "nul-byte", "same-names",
      ]))
  }

  @Test func everyArchiveReadsOrIsRefused() throws {
    let files = try corpus("keyed-archive")
    #expect(files.count >= 30)
    var read: Set<String> = []
    var refused: [String: HopdError] = [:]
    for (name, bytes) in files {
      do throws(HopdError) {
        let model = try ModelReader.read(compiled: bytes, name: name).model
        #expect(model.versionHashes.count == model.entities.count, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
        refused[name] = error
      }
    }
    for name in ["library", "pair"] { #expect(read.contains(name), "\(refused[name]?.description ?? "")") }
    #expect(
      read.isDisjoint(with: [
        "circle-own-parent", "circle-parents", "circle-entities-is-root", "circle-collections", "circle-class",
        "circle-unique-tuples", "keys-fewer", "objects-fewer", "uid-out-of-range-all", "class-out-of-range", "no-class",
        "unknown-class", "wrong-kinds", "deep-inheritance", "top-missing", "objects-empty",
      ]), "\(read.sorted())")
  }

  @Test func everyModelOfTheOldFormReadsOrIsRefused() throws {
    let files = try corpus("model-elements")
    #expect(files.count >= 18)
    var read: Set<String> = []
    for (name, bytes) in files {
      do throws(HopdError) {
        let model = try ModelReader.read(elements: bytes, name: name).model
        #expect(model.versionHashes.count == model.entities.count, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
    }
    #expect(
      read == [
        "configurations", "counts-extreme", "fetched-property", "library", "stereotype-is-the-model", "unknown-key",
      ])
  }

  /// Files of Tests/FuzzCorpus, sorted by name.
  private func corpus(_ harness: String) throws -> [(name: String, bytes: [UInt8])] {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let folder = "\(tests)/FuzzCorpus/\(harness)"
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { name in
      (name, Array(try #require(FileManager.default.contents(atPath: "\(folder)/\(name)"), "\(name)")))
    }
  }
}
