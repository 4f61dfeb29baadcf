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

  @Test(
    "Free heap memory is returned to the kernel",
    .disabled(if: getenv("HOPD_SANITIZER") != nil, "a sanitizer has an allocator of its own"))
  func freeHeapMemory() throws {
    // Too small for mappings of their own; the last block keeps the end of the heap in place.
    let blocks = (0..<4096).map { _ in malloc(16 << 10) }
    for block in blocks { if let block { memset(block, 1, 16 << 10) } }
    let last = malloc(16 << 10)
    defer { free(last) }
    for block in blocks { free(block) }
    let before = try status("RssAnon")
    ProgramMemory.giveBack()
    #expect(try status("RssAnon") < before)
    #expect(ProgramMemory.peak >= before)
  }
}
