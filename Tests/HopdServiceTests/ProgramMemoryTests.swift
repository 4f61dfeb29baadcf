// The memory that the process releases, as the kernel counts it.

import Glibc
import Testing

@testable import MigrationPipeline

@Suite struct ProgramMemoryTests {
  /// A line of /proc/self/status, in bytes.
  private func status(_ name: String) throws -> Int64 {
    let file = try #require(fopen("/proc/self/status", "r"))
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 256)
    while fgets(&line, 256, file) != nil {
      let text = String(decoding: line.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      guard text.hasPrefix(name + ":") else { continue }
      let digits = text.filter(\.isNumber)
      return try #require(Int64(digits)) * 1024
    }
    throw StatusError.noSuchLine
  }

  private enum StatusError: Error { case noSuchLine }

  @Test func pagesOfTheProgramThatNobodyNeedsAreGivenBack() throws {
    // The program of the tests is large, and most of it is not run while this test runs.
    let before = try status("RssFile")
    ProgramMemory.giveBack()
    let after = try status("RssFile")
    #expect(after < before)
    #expect(ProgramMemory.peak >= before)
  }
}
