// Reads the seeds and findings of fuzzing in the ordinary tests too: a value or an error for every file, within the
// memory and the time of the process. tools/fuzz checks each file's own memory and time.

import Diagnostics
import FoundationEssentials
import PropertyLists
import Testing

@Suite struct FuzzCorpusTests {
  @Test func everyListReadsOrIsRefused() throws {
    let files = try corpus("property-list")
    #expect(files.count >= 50)
    var read: Set<String> = []
    for (name, bytes) in files {
      do throws(HopdError) {
        let value = try PropertyList.decode(bytes)
        // NaN differs from itself; all other values are equal after a round trip.
        let again = try PropertyList.decode(PropertyList.encodeBinary(value))
        #expect(again == value || ["binary-reals", "xml-numbers"].contains(name), "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
    }
    // Valid lists are read, and lists that must be refused are.
    #expect(read.isSuperset(of: ["everything-binary", "everything-xml", "metadata", "version-info", "xml-uid"]))
    #expect(
      read.isDisjoint(with: [
        "binary-bomb", "binary-bomb-dictionaries", "binary-circle", "binary-count-huge", "binary-overlap",
        "binary-self-array", "xml-billion-laughs", "xml-external-entity", "xml-same-key",
      ]))
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
