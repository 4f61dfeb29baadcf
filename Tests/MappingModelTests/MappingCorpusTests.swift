// The start corpus and all findings of fuzzing of mapping models, read in the ordinary tests too: every file gives a
// mapping or an error. tools/fuzz checks each file's own memory and time.

import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import MappingModel
import SystemPackage
import Testing

private let zoo = model(
  "V1",
  [
    entity("Dog", [attribute("name"), attribute("legs", .integer16)], [toOne("owner", "Person", inverse: "dogs")]),
    entity("Person", [], [toMany("dogs", "Dog", inverse: "owner")]),
  ])

@Suite struct MappingCorpusTests {
  @Test func everyFileReadsOrIsRefused() throws {
    for (harness, good) in [
      ("mapping-source", ["dogs", "fetch", "ids-gone"]), ("mapping-archive", ["dogs", "filter"]),
    ] {
      let files = try corpus(harness)
      #expect(files.count >= 9)
      var read: [String: [HopdError]] = [:]
      for (name, bytes) in files {
        do throws(HopdError) {
          let file: any MappingFile =
            harness == "mapping-source"
            ? try XcodeMappingFile(contents: bytes, path: "/Test.xcmappingmodel")
            : try CompiledMappingFile(contents: bytes, path: "/Test.cdm")
          let mapping: ExplicitMapping
          do throws(HopdError) {
            // No file of the corpus has a correct hash.
            if let compiled = file as? CompiledMappingFile {
              mapping = try compiled.loadAsCompiled(for: zoo, zoo).mapping
            } else {
              mapping = try file.load(source: zoo, destination: zoo).mapping
            }
          } catch {
            #expect((error.reasons + [error]).contains { $0.hint != nil }, "\(harness)/\(name): no hint: \(error)")
            throw error
          }
          read[name] = MappingChecker.findings(in: [mapping], source: zoo, destination: zoo)
        } catch {
          #expect(error.code.exit == .dataError, "\(harness)/\(name): \(error)")
        }
      }
      for name in good { #expect(read[name]?.isEmpty == true, "\(harness)/\(name): \(read[name] ?? [])") }
      for name in ["no-model", "same-ids", "no-base64", "no-fetch", "hash-short", "type-unknown", "circle-expression"] {
        #expect(read[name] == nil, "\(harness)/\(name)")
      }
    }
  }

  @Test func everyTextReadsOrIsRefusedWhereItStands() throws {
    let versions = ["V1", "V2"].map { name in
      model(
        name,
        [
          entity(
            "Dog", [attribute("name"), attribute("legs", .integer16)], [toOne("owner", "Person", inverse: "dogs")]),
          entity("Person", [attribute(name)], [toMany("dogs", "Dog", inverse: "owner")]),
        ])
    }
    let files = try corpus("text-mapping")
    #expect(files.count >= 14)
    var read: Set<String> = []
    for (name, bytes) in files {
      do throws(HopdError) {
        let text = String(decoding: bytes, as: UTF8.self)
        let file = try TextMapping(text: text, file: "/Test.hopmap.toml")
        _ = try file.load(source: versions[0], destination: versions[1])
        read.insert(name)
      } catch {
        let reported = error.reasons.isEmpty ? [error] : error.reasons
        #expect(
          reported.allSatisfy { $0.place.file != nil && $0.place.line != nil && $0.hint != nil }, "\(name): \(error)")
      }
    }
    #expect(read == ["plain", "values", "distinct"])
  }

  /// Returns the files of Tests/FuzzCorpus, sorted by name.
  private func corpus(_ harness: String) throws -> [(name: String, bytes: [UInt8])] {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let folder = "\(tests)/FuzzCorpus/\(harness)"
    return try FileManager.default.contentsOfDirectory(atPath: folder).sorted().map { name in
      (name, Array(try #require(FileManager.default.contents(atPath: "\(folder)/\(name)"), "\(name)")))
    }
  }
}
