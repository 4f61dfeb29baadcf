// Time is drawn: one character is one tick, a file is at rest after three quiet ticks. The first row is what happens to
// the file, the second what the machine answers.
//
//   1…9  the file has this content now, and an event says so      m  an event without a change
//   A…I  the file has this content now, and nobody is told        n  an event of a side file that readers touch
//   x    the file is deleted, and an event says so                X  it is deleted, and nobody is told
//   s    everything is scanned                                    .  nothing
//
//   S  reported as settled    v  reported as vanished    .  nothing

import Testing

@testable import StoreWatching

@Suite struct SettleMachineTests {
  @Test(arguments: [
    ("1.....", "...S.."),
    // Quiet is counted from the last change.
    ("1.2.3......", ".......S..."),
    ("1mmmmm......", "........S..."),
    // Reported once; noise afterwards is no news, a change is.
    ("1....m......", "...S........"),
    ("1....2......", "...S....S..."),
    ("1....n......", "...S........"),
    // A reader's side file prolongs the wait of a file in motion.
    ("1.n......", ".....S..."),
    // A change that no event told of is found when the file is looked at, and the wait begins again.
    ("1B.......", "...   S.."),
    ("1..B.....", "......S.."),
    ("1....B.......", "...S........."),
    // … or by a scan.
    ("1....B.s.....", "...S......S.."),
    ("A.s.......", ".....S...."),
    // Content that went and came back within the wait is a change no more than it looks like one.
    ("1....2.1.....", "...S......S.."),
    // Deleted files are dropped: silently before they were reported.
    ("1x........", ".........."),
    ("1....x....", "...S.v...."),
    ("1X........", ".........."),
    ("1....X.s..", "...S...v.."),
    // Deleted and made again is a new file, even with the same content.
    ("1....x1......", "...S.v...S..."),
    ("1x1......", ".....S..."),
    ("1x1x1x1x1......", "...........S..."),
    // Events of a file that nobody has seen make nothing known.
    ("mmn......", "........."),
  ])
  func answers(_ events: String, _ expected: String) {
    let start = ContinuousClock.now
    var machine = SettleMachine<String>(settle: .seconds(3))
    var disk: FileObservation?
    var answer = ""
    for (tick, event) in events.enumerated() {
      let now = start.advanced(by: .seconds(tick))
      var output = "."
      switch event {
      case "1"..."9":
        disk = content(event)
        machine.observed("f", disk, now: now)
      case "A"..."I": disk = content(event)
      case "m": machine.touched("f", now: now)
      case "n": machine.sideFileChanged("f", now: now)
      case "x", "X":
        disk = nil
        if event == "x", machine.observed("f", nil, now: now) { output = "v" }
      case "s":
        machine.beginScan()
        if disk != nil { machine.observed("f", disk, now: now) }
        if machine.endScan() == ["f"] { output = "v" }
      default: break
      }
      for name in machine.due(now: now) {
        switch machine.inspected(name, disk, now: now) {
        case .settled: output = "S"
        case .vanished: output = "v"
        default: break
        }
      }
      answer += output
    }
    #expect(answer == expected.replacing(" ", with: "."))
    // At rest nothing waits.
    if events.hasSuffix("...."), disk != nil { #expect(machine.nextDeadline == nil) }
  }

  @Test func everyShortHistoryReportsTheLastContentExactlyWhenItRests() {
    // All histories of six ticks over change, noise, deletion and silence: after enough quiet the file that is there
    // has been reported with its last content, and no content was reported that was not at rest for three ticks.
    let alphabet: [Character] = ["1", "2", "m", "x", "."]
    var histories: [String] = [""]
    for _ in 0..<6 { histories = histories.flatMap { history in alphabet.map { history + String($0) } } }
    for history in histories {
      let start = ContinuousClock.now
      var machine = SettleMachine<Int>(settle: .seconds(3))
      var disk: FileObservation?
      var quietSince = 0
      var reported: FileObservation?
      for (tick, event) in (history + "......").enumerated() {
        let now = start.advanced(by: .seconds(tick))
        switch event {
        case "1", "2":
          if disk != content(event) { quietSince = tick }
          disk = content(event)
          machine.observed(0, disk, now: now)
        case "m":
          machine.touched(0, now: now)
        case "x":
          disk = nil
          reported = nil
          machine.observed(0, nil, now: now)
        default: break
        }
        for name in machine.due(now: now) where machine.inspected(name, disk, now: now) == .settled {
          reported = disk
          if tick - quietSince < 3 { Issue.record("\(history): reported too early, at \(tick)") }
        }
      }
      if reported != disk { Issue.record("\(history): the file that is there was not reported") }
      if machine.nextDeadline != nil { Issue.record("\(history): something waits for ever") }
    }
  }

  @Test func aHundredThousandFilesRestWithoutADeadlineAndOneStormKeepsOneEntry() {
    let start = ContinuousClock.now
    var machine = SettleMachine<Int>(settle: .seconds(2))
    for number in 0..<100_000 { machine.observed(number, content("1"), now: start) }
    for step in 0..<100_000 { machine.touched(7, now: start.advanced(by: .microseconds(step))) }
    let later = start.advanced(by: .seconds(3))
    let due = machine.due(now: later)
    #expect(due.count == 100_000)
    for name in due { _ = machine.inspected(name, content("1"), now: later) }
    #expect(machine.count == 100_000)
    #expect(machine.unsettledCount == 0)
    #expect(machine.nextDeadline == nil)
  }

  private func content(_ character: Character) -> FileObservation {
    let value = Int64(character.asciiValue ?? 0)
    return FileObservation(size: 10, modified: value, inode: 1)
  }
}
