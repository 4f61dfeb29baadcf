// The share of one worker: I of N, typed, or read from the engine that started it.

import Diagnostics

/// Shard `index` of `count`, counted from 1.
package struct Shard: Sendable, Hashable, CustomStringConvertible {
  /// A bound for the typed number, above any real number of workers.
  package static let most = 100_000

  package let index: Int
  package let count: Int

  /// The only shard.
  package static let whole = Shard(uncheckedIndex: 1, count: 1)

  private init(uncheckedIndex index: Int, count: Int) {
    self.index = index
    self.count = count
  }

  /// Nil unless `index` is between 1 and `count`.
  package init?(index: Int, count: Int) {
    guard (1...Self.most).contains(count), (1...count).contains(index) else { return nil }
    self.init(uncheckedIndex: index, count: count)
  }

  /// "3/40".
  package init?(_ text: String) {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let index = Int(parts[0]), let count = Int(parts[1]) else { return nil }
    self.init(index: index, count: count)
  }

  package var description: String { "\(index)/\(count)" }

  /// Whether a store with this key belongs to the shard.
  package func holds(_ key: String) -> Bool {
    count == 1 || StableHash.bucket(of: StableHash.of(key), among: count) == index - 1
  }

  /// The shard that the engine gave this process: `HOPD_SHARD` (I/N), otherwise the array task of Slurm, AWS Batch or
  /// Kubernetes.
  package static func automatic(_ variable: (String) -> String?) throws(HopdError) -> Shard {
    func number(_ name: String) -> Int? { variable(name).flatMap { Int($0) } }
    if let text = variable("HOPD_SHARD") {
      if let shard = Shard(text) { return shard }
      throw unclear(
        "HOPD_SHARD is \"\(text)\", which is not of the form I/N", "set it to the shard and their number, as 3/40")
    }
    if let task = number("SLURM_ARRAY_TASK_ID") { return try slurm(task, number) }
    let arrays = [
      (
        index: "AWS_BATCH_JOB_ARRAY_INDEX", count: "AWS_BATCH_JOB_ARRAY_SIZE",
        obstacle: "AWS_BATCH_JOB_ARRAY_SIZE does not give the number of shards", hint: "set HOPD_SHARD=I/N"
      ),
      (
        index: "JOB_COMPLETION_INDEX", count: "HOPD_SHARDS",
        obstacle: "Kubernetes does not pass the number of pods to a pod",
        hint: "set the environment variable HOPD_SHARDS of the container to the number in the Job's `completions`"
      ),
    ]
    for array in arrays {
      guard let index = number(array.index) else { continue }
      if let shard = Shard(index: index.saturated(1), count: number(array.count) ?? 0) { return shard }
      throw unclear("\(array.index) is \(index), but \(array.obstacle)", array.hint)
    }
    throw unclear(
      "--shard auto finds no array task in the environment",
      "start it from Slurm, Kubernetes or AWS Batch, set HOPD_SHARD=I/N, or type --shard I/N")
  }

  /// A Slurm array `--array=A-B[:STEP]`. One with holes, as `3,5` for failed tasks, does not give the total number.
  private static func slurm(_ task: Int, _ number: (String) -> Int?) throws(HopdError) -> Shard {
    let hint = "pass the number yourself: --shard $((SLURM_ARRAY_TASK_ID + 1))/N for an array that starts at 0"
    guard let first = number("SLURM_ARRAY_TASK_MIN"), let last = number("SLURM_ARRAY_TASK_MAX"),
      let count = number("SLURM_ARRAY_TASK_COUNT"), first >= 0, last >= first, last < most,
      (first...last).contains(task)
    else { throw unclear("Slurm's variables do not describe an array", hint) }
    let step = max(1, number("SLURM_ARRAY_TASK_STEP") ?? 1)
    guard (last - first) / step + 1 == count, (task - first) % step == 0,
      let shard = Shard(index: (task - first) / step + 1, count: count)
    else {
      throw unclear("the Slurm array has gaps, so the number of shards is unknown", hint)
    }
    return shard
  }

  private static func unclear(_ message: String, _ hint: String) -> HopdError {
    HopdError(.usage, message.printableLine, hint: hint)
  }
}

extension Int {
  /// The sum, or the largest number where there is none.
  fileprivate func saturated(_ more: Int) -> Int {
    let (sum, overflow) = addingReportingOverflow(more)
    return overflow ? .max : sum
  }
}
