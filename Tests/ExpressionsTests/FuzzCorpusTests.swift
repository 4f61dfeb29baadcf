// The seeds and the findings of fuzzing, as ordinary tests: every file ends in a tree or an error.

import BlockingTests
import Diagnostics
import Expressions
import FoundationEssentials
import Testing

@Suite(.blocking) struct FuzzCorpusTests {
  @Test func everyTextReadsOrIsRefused() throws {
    let tests = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(2).joined(separator: "/")
    let folder = "\(tests)/FuzzCorpus/expression"
    var read: Set<String> = []
    for name in try FileManager.default.contentsOfDirectory(atPath: folder).sorted() {
      let text = String(
        decoding: try #require(FileManager.default.contents(atPath: "\(folder)/\(name)")), as: UTF8.self)
      do throws(HopdError) {
        let node = try ExpressionParser.expression(text)
        #expect(try ExpressionParser.expression(node.description) == node, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
      do throws(HopdError) {
        let predicate = try ExpressionParser.predicate(text)
        #expect(try ExpressionParser.predicate(predicate.description) == predicate, "\(name)")
        read.insert(name)
      } catch {
        #expect(error.code.exit == .dataError, "\(name): \(error)")
      }
    }
    #expect(
      read.isSuperset(of: [
        "bits", "casts", "collections", "comparisons", "functions", "getters", "keywords", "lookup", "matches",
        "memberships", "policy", "smallest", "statistics",
        "strings", "subquery", "ternary", "union", "uuid",
      ]), "\(read.sorted())")
    #expect(read.isDisjoint(with: ["deep-not", "deep-parentheses", "long-sum", "surrogate", "unfinished"]))
  }
}
