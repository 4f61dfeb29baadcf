// Estimates how long the queue will take, from the durations of the last migrations. For a hundred small stores and a
// large one the estimate is wrong until the large one is being migrated.

/// The mean duration of the last migrations, in which newer ones weigh more.
struct QueuePace: Sendable {
  private var mean: Double?

  /// Adds the duration of a migration.
  mutating func note(seconds: Double) {
    guard seconds.isFinite, seconds >= 0 else { return }
    mean = mean.map { $0 * 0.9 + seconds * 0.1 } ?? seconds
  }

  /// Seconds until `jobs` jobs have migrated `waiting` stores, if the running ones still need `working` seconds each;
  /// nil while no duration is known.
  func remaining(waiting: Int, jobs: Int, working: [Double?]) -> Double? {
    if waiting == 0 { return working.compactMap { $0 }.max() }
    guard let mean else { return nil }
    let all = Double(waiting) * mean + working.reduce(0) { $0 + ($1 ?? mean) }
    return max(all / Double(max(1, jobs)), working.compactMap { $0 }.max() ?? 0)
  }
}
