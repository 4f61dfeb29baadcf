// The status line, word for word: users' scripts read it.

import MigrationPipeline
import Testing

@testable import HopdService
@testable import MigrationPipeline

@Suite struct StatusLineTests {
  func progress(rows: Int64 = 41, of total: Int64 = 100, remaining: Double? = 130) -> MigrationProgress {
    MigrationProgress(
      hop: 0, hops: 2, from: "v2", to: "v3", subject: "Person", rows: rows, totalRows: total, elapsed: 1,
      remaining: remaining)
  }

  @Test func aMigrationAtWork() {
    var line = StatusLine()
    line.jobs = [StatusLine.Job(ordinal: 3, name: "Library.sqlite", from: "v2", to: "v4", progress: progress())]
    line.batch = 120
    #expect(line.text == "store 3/120 Library.sqlite v2→v4 hop 1/2 Person 41% ETA 2m10s")
    line.jobs.append(StatusLine.Job(ordinal: 4, name: "Other.sqlite"))
    #expect(line.text.hasSuffix("ETA 2m10s (and 1 more)"))
    line.toDo = 116
    line.queueRemaining = 3900
    line.attention = 16
    #expect(line.text.hasSuffix("(and 1 more); queue ETA 1h05m; 16 failed (hopctl list --failed)"))
    line.note = "configuration refused, the old one remains in use (hopctl check-config)"
    #expect(line.text.hasSuffix("; configuration refused, the old one remains in use (hopctl check-config)"))
  }

  @Test func aMigrationBeforeAndAfterItsHops() {
    var job = StatusLine.Job(ordinal: 1, name: "a.sqlite")
    #expect(StatusLine.text(job, batch: 1) == "store 1/1 a.sqlite")
    job.from = "v1"
    job.to = "v2"
    #expect(StatusLine.text(job, batch: 0) == "store 1/1 a.sqlite v1→v2")
    job.progress = progress(rows: 100, remaining: nil)
    #expect(StatusLine.text(job, batch: 2) == "store 1/2 a.sqlite v1→v2 hop 1/2 Person 100%")
    job.activity = "verifying"
    #expect(StatusLine.text(job, batch: 2) == "store 1/2 a.sqlite v1→v2 verifying 100%")
    job.progress = progress(rows: 97, remaining: 4)
    #expect(StatusLine.text(job, batch: 2) == "store 1/2 a.sqlite v1→v2 verifying 97% ETA 4s")
    // A time that does not pass is none.
    job.activity = StatusLine.paused
    #expect(StatusLine.text(job, batch: 2) == "store 1/2 a.sqlite v1→v2 paused 97%")
  }

  @Test func nothingAtWork() {
    var line = StatusLine()
    #expect(line.text == "watching 0 stores")
    line.stores = 1
    #expect(line.text == "watching 1 store")
    line.stores = 12344
    line.toDo = 3
    #expect(line.text == "watching 12,344 stores: 3 to migrate")
    line.toInspect = 9
    line.deferred = 2
    line.attention = 1
    line.isPaused = true
    #expect(
      line.text
        == "paused; watching 12,344 stores: 9 to inspect, 3 to migrate, 12,329 current, 2 retrying, "
        + "1 failed (hopctl list --failed)")
    line.pinned = 4
    #expect(line.text.hasSuffix(", 12,325 current, 2 retrying, 4 pinned, 1 failed (hopctl list --failed)"))
  }

  @Test func percentIsHundredOnlyAtTheEnd() {
    let cases: [(Double, Int)] = [(0, 0), (0.0099, 0), (0.41, 41), (0.9999, 99), (1, 100), (7, 100), (-1, 0)]
    for (fraction, percent) in cases { #expect(StatusLine.percent(fraction) == percent) }
    #expect(StatusLine.percent(.nan) == 0)
    #expect(StatusLine.percent(.infinity) == 100)
  }

  @Test func elapsedTimes() {
    let cases: [(Double, String)] = [
      (0, "0.0s"), (0.04, "0.0s"), (0.31, "0.3s"), (9.94, "9.9s"), (9.96, "10s"), (75, "1m15s"), (.nan, "0s"),
      (-1, "0s"),
    ]
    for (seconds, text) in cases { #expect(StatusLine.elapsed(seconds: seconds) == text) }
  }

  @Test func durations() {
    let cases: [(Double, String)] = [
      (0, "0s"), (0.2, "1s"), (59, "59s"), (60, "1m00s"), (130, "2m10s"), (3599, "59m59s"), (3600, "1h00m"),
      (3900, "1h05m"), (86_399, "23h59m"), (86_400, "1d00h"), (273_600, "3d04h"), (.infinity, "1000d00h"), (.nan, "0s"),
      (-4, "0s"),
    ]
    for (seconds, text) in cases { #expect(StatusLine.duration(seconds: seconds) == text) }
  }
}
