// Time is a row of ticks of one second; the interval is 8 s. Each letter of a job's row is one tick: `+` a beat, `.`
// none, ` ` not running. The answer is a row with `!` where a ping was sent.

import Testing

@testable import SystemdSupport

@Suite struct WatchdogPolicyTests {
  @Test(
    arguments: [
      // An idle service pings at half the interval.
      ([], 13, "....!...!...!"),
      // A job that moves lets it ping; one that pauses delays the ping until it moves.
      (["+++++++++++++"], 13, "....!...!...!"),
      (["+......+....."], 13, "....!...!...."),
      (["+..+......+.."], 13, "....!.....!.."),
      // A job that hangs for a whole interval ends the pings, however well others move.
      (["+............", "+++++++++++++"], 13, "....!........"),
      // A hung job that goes on is forgiven, if systemd has waited for so long.
      (["+........+...", "+++++++++++++"], 13, "....!....!..."),
      // The end of a job counts as progress, and after it the service is idle.
      (["++++     ", "    "], 9, "....!...!"),
    ] as [([String], Int, Substring)])
  func pingsAreEarned(_ jobs: [String], _ ticks: Int, _ expected: Substring) {
    let start = ContinuousClock.now
    var policy = WatchdogPolicy(interval: .seconds(8), now: start)
    var beats: [String: UInt64] = [:]
    var answer = ""
    for tick in 0..<ticks {
      for (number, row) in jobs.enumerated() {
        let letters = Array(row)
        let letter = tick < letters.count ? letters[tick] : " "
        if letter == " " {
          beats["job \(number)"] = nil
        } else {
          beats["job \(number)", default: 0] += letter == "+" ? 1 : 0
        }
      }
      answer += policy.shouldPing(now: start.advanced(by: .seconds(tick)), beats: beats) ? "!" : "."
    }
    #expect(answer == expected)
  }

  @Test func namesTheJobThatHangs() {
    let start = ContinuousClock.now
    var policy = WatchdogPolicy(interval: .seconds(8), now: start)
    _ = policy.shouldPing(now: start, beats: ["a": 1, "b": 1])
    _ = policy.shouldPing(now: start.advanced(by: .seconds(7)), beats: ["a": 1, "b": 2])
    #expect(policy.hungJobs(now: start.advanced(by: .seconds(7))) == [])
    #expect(policy.hungJobs(now: start.advanced(by: .seconds(8))) == ["a"])
  }

  @Test func theTickIsFineEnoughForHalfTheInterval() {
    #expect(WatchdogPolicy(interval: .seconds(120), now: .now).tick <= .seconds(30))
    #expect(WatchdogPolicy(interval: .microseconds(1), now: .now).tick >= .milliseconds(1))
  }
}
