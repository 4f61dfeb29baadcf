// Reads the seeds of fuzzing for copies of models in stores in the ordinary tests too: a model or an error for every
// file. tools/fuzz checks each file's own memory and time.

import BlockingTests
import Diagnostics
import FoundationEssentials
import ManagedObjectModel
import PersistentStore
import Testing

@Suite(.blocking) struct FuzzCorpusTests {
  @Test func everyCacheReadsOrIsRefused() throws {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let folder = "\(tests)/FuzzCorpus/model-cache"
    let names = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
    #expect(names.count >= 25)
    var read: Set<String> = []
    for name in names {
      let bytes = Array(try #require(FileManager.default.contents(atPath: "\(folder)/\(name)"), "\(name)"))
      do throws(HopdError) {
        let model = try ModelReader.read(compiled: try ModelCache.decompress(bytes), name: name).model
        #expect(model.versionHashes.count == model.entities.count, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
    }
    #expect(read.isSuperset(of: ["library", "pair", "stored"]), "\(read.sorted())")
    #expect(
      read.isDisjoint(with: [
        "bomb-small", "circle-parents", "cut", "distance-too-far", "empty", "length-lies", "more-behind",
        "reserved-block",
        "twice", "uid-out-of-range-all", "zlib-header",
      ]), "\(read.sorted())")
  }
}
