// A hop with policies that is stopped at any point starts over and gives the full result: policies may keep state, so
// no part of an incomplete hop is used.

import BlockingTests
import Diagnostics
import MappingModel
import MigrationPolicy
import Testing

@testable import MigrationEngine
@testable import PolicyMigration

@Suite(.blocking) struct PolicyInterruptionTests {
  private static func contents(_ world: PolicyWorld) throws -> [[String]] {
    let (authors, users) = (try world.pairs("Book", "authors"), try world.pairs("Book", "users"))
    return try world.rows("SELECT Z_PK, Z_ENT, ZTITLE, ZFILEURL FROM ZBOOK ORDER BY 1")
      + world.rows("SELECT * FROM ZAUTHOR ORDER BY 1") + world.rows("SELECT * FROM ZUSER ORDER BY 1")
      + world.rows("SELECT * FROM \(authors.table) ORDER BY 1, 2")
      + world.rows("SELECT * FROM \(users.table) ORDER BY 1, 2")
      + world.rows("SELECT * FROM Z_PRIMARYKEY ORDER BY 1")
      + world.rows("SELECT name, sql FROM sqlite_master ORDER BY 1")
  }

  private static func world() throws -> PolicyWorld {
    let world = try PolicyHopTests.booksWorld(
      "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 120)"
        + " INSERT INTO ZBOOK (Z_PK, Z_ENT, Z_OPT, ZUSER, ZTITLE, ZAUTHORNAME) "
        + "SELECT v, 1, 1, v % 5 + 1, 't' || v, 'a' || (v % 11) FROM n;"
        + "WITH RECURSIVE n(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM n WHERE v < 5)"
        + " INSERT INTO ZUSER (Z_PK, Z_ENT, Z_OPT, ZUSERID) SELECT v, 2, 1, v FROM n;")
    // Small calls, so that there are several.
    world.options.chunkRowsMax = 30
    return world
  }

  @Test func aFailureAtEveryCallLeavesNothingBehind() throws {
    let reference = try Self.world()
    let complete = ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy])
    let rows = try reference.run(complete).rows
    let expected = try Self.contents(reference)
    #expect(complete.calls.count > 10)
    for number in 1...complete.calls.count {
      let world = try Self.world()
      let before = try world.sourceBytes()
      let broken = ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy])
      broken.onCall = { call, _ in if call == number { throw PolicyFailure("killed") } }
      #expect(policyError { try world.run(broken) }?.code == .policyFailed, "call \(number)")
      #expect(broken.opened == 1 && broken.closed == 1)
      #expect(try world.sourceBytes() == before)
      let staged = try world.run(ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy]))
      #expect(try Self.contents(world) == expected, "call \(number)")
      #expect(staged.rows == rows)
    }
  }

  @Test func aStopAtEveryReportIsFollowedByAFreshBeginning() throws {
    let reference = try Self.world()
    try reference.run(ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy]))
    let expected = try Self.contents(reference)
    let reports = reference.reports
    #expect(reports > 15)
    for number in 1...reports {
      let world = try Self.world()
      var count = 0
      world.observer = { _ in
        count += 1
        return count != number
      }
      let stopped = ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy])
      // The number of reports may differ a little, because long statements report too.
      if let error = policyError({ try world.run(stopped) }) {
        #expect(error.code == .interrupted)
        #expect(stopped.opened == stopped.closed)
        world.observer = { _ in true }
        let again = ClosurePolicies(["BookPolicy": PolicyHopTests.bookPolicy])
        let staged = try world.run(again)
        // The mark that the hop is complete is written last.
        if !staged.wasResumed { #expect(again.calls.first == .begin) }
      }
      #expect(try Self.contents(world) == expected, "report \(number)")
    }
  }
}
