// A checkpoint that another program has changed: the staged store belongs to the owner of the folder.

import Diagnostics
import SQLite
import SystemPackage
import Testing

@testable import MigrationEngine

@Suite struct CheckpointTests {
  private static let identity = Checkpoint.Identity(plan: "p", source: "s", boot: "b")

  private func table(_ change: String?) throws -> CheckpointTable {
    let connection = try Connection(path: "memory", access: .memory)
    let table = CheckpointTable(connection: connection, schema: "main")
    try table.create(Self.identity, hop: 0, moment: 1)
    if let change { try connection.execute("UPDATE HOPD_CHECKPOINT SET \(change)") }
    return table
  }

  @Test func whatHopdWroteIsResumed() throws {
    let checkpoint = try table("step = 3, rows = 5000000000, chunks = 70000, seconds = 12.5")
      .read(Self.identity, hop: 0)
    #expect(checkpoint?.step == 3 && checkpoint?.rows == 5_000_000_000 && checkpoint?.chunks == 70_000)
  }

  @Test(arguments: [
    "step = -1", "step = 9223372036854775807", "rows = -1", "rows = 9223372036854775807", "chunks = -1",
    "chunks = 9223372036854775807", "seconds = -1", "seconds = 9e999",
  ])
  func impossibleNumbersBeginTheHopAgain(_ change: String) throws {
    let table = try table(change)
    let error = #expect(throws: HopdError.self) { _ = try table.read(Self.identity, hop: 0) }
    #expect(error?.code == .stagingStale)
  }
}
