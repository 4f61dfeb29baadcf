// Which stores come first, which are the sample, and when too many failed.

import SeededRandom
import StoreFleet
import Testing

@Suite struct WorkOrderTests {
  @Test func ordersKeepEveryStore() {
    var dice = Dice(seed: 5)
    let lines = (0..<200).map { line("\($0)", size: Int64(dice.below(50)), modified: Int64(dice.below(50))) }
    for order in WorkOrder.allCases {
      let sorted = order.sorted(lines)
      #expect(Set(sorted) == Set(lines) && sorted.count == lines.count)
      for (a, b) in zip(sorted, sorted.dropFirst()) {
        switch order {
        case .manifest: break
        case .smallest: #expect((a.size ?? 0) <= (b.size ?? 0))
        case .largest: #expect((a.size ?? 0) >= (b.size ?? 0))
        case .oldest: #expect((a.modified ?? 0) <= (b.modified ?? 0))
        }
      }
    }
    #expect(WorkOrder.manifest.sorted(lines) == lines)
  }

  /// Of each version the ends, before any third store of another version.
  @Test func theSampleHasTheEndsOfEachVersion() {
    var lines = (0..<100).map { line("a\($0)", version: "1", size: Int64(100 + $0)) }
    lines += (0..<3).map { line("b\($0)", version: "2", size: Int64(10 * $0)) }
    lines += [line("c", version: "3", size: 7), line("done", version: "4", size: 0, state: "current")]
    let sample = CanarySample.of(lines, count: 5)
    #expect(Set(sample.map(\.store)) == ["a0", "a99", "b0", "b2", "c"])
    let more = CanarySample.of(lines.reversed(), count: 20)
    #expect(more.count == 20 && Set(more.map(\.store)).isSuperset(of: ["b1"]) && !more.map(\.store).contains("done"))
    #expect(Set(CanarySample.of(lines, count: 20)) == Set(more), "the sample depends on the order of the manifest")
    #expect(CanarySample.of(lines, count: 1000).count == 104)
    #expect(CanarySample.of([], count: 5).isEmpty)
  }

  @Test(arguments: [
    ("0", 1, 100, true), ("3", 3, 100, false), ("3", 4, 100, true), ("5%", 5, 100, false),
    ("5%", 6, 100, true), ("0%", 1, 1000, true), ("2.5%", 2, 80, false), ("2.5%", 3, 80, true),
  ])
  func tooManyFailures(_ text: String, _ failures: Int, _ stores: Int, _ exceeded: Bool) {
    #expect(FailureLimit(text)?.isExceeded(by: failures, of: stores) == exceeded)
  }

  @Test(arguments: ["", "-1", "%", "101%", "-2%", "nan%", "x"])
  func whatIsNoLimitIsRefused(_ text: String) { #expect(FailureLimit(text) == nil) }

  private func line(
    _ store: String, version: String? = nil, size: Int64, modified: Int64 = 0, state: String = "behind"
  ) -> StoreLine {
    var line = StoreLine(store: store)
    (line.version, line.size, line.modified, line.state) = (version, size, modified, state)
    return line
  }
}
