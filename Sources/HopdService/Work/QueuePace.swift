// How long the queue will take, by what the last migrations took. An estimate: a queue of a hundred small stores and a
// large one is wrong until the large one is at work.

/// Seconds of the last migrations, the newer ones counting more.
struct QueuePace: Sendable {
  private var mean: Double?

  /// A migration took so long.
  mutating func note(seconds: Double) {
    guard seconds.isFinite, seconds >= 0 else { return }
    mean = mean.map { $0 * 0.9 + seconds * 0.1 } ?? seconds
  }

  /// Seconds until `waiting` stores are migrated by `jobs` jobs, where those at work need `working` seconds each; nil
  /// while nothing is known.
  func remaining(waiting: Int, jobs: Int, working: [Double?]) -> Double? {
    if waiting == 0 { return working.compactMap { $0 }.max() }
    guard let mean else { return nil }
    let all = Double(waiting) * mean + working.reduce(0) { $0 + ($1 ?? mean) }
    return max(all / Double(max(1, jobs)), working.compactMap { $0 }.max() ?? 0)
  }
}
