// The share of each worker: every store belongs to exactly one, whatever the number of workers, and stays where it is
// when that number grows.

import Diagnostics
import SeededRandom
import StoreFleet
import Testing

@Suite struct ShardTests {
  @Test func everyStoreBelongsToOneShard() throws {
    var dice = Dice(seed: 22)
    for count in [1, 2, 3, 7, 8, 40, 200] {
      let shards = try (1...count).map { try #require(Shard(index: $0, count: count)) }
      for _ in 0..<200 {
        let key = "/srv/tenants/\(dice.below(1_000_000))/store.sqlite"
        #expect(shards.count { $0.holds(key) } == 1, "\(key) of \(count)")
      }
    }
  }

  @Test func oneMoreWorkerTakesItsShareAndMovesNothingElse() {
    let keys = (0..<5_000).map { StableHash.of("tenant \($0)") }
    for count in 1..<30 {
      let before = keys.map { StableHash.bucket(of: $0, among: count) }
      let after = keys.map { StableHash.bucket(of: $0, among: count + 1) }
      let moved = zip(before, after).filter { $0 != $1 }
      #expect(moved.allSatisfy { $0.1 == count }, "with \(count + 1) workers a store went to an old one")
      let share = Double(moved.count) * Double(count + 1) / Double(keys.count)
      #expect((0.7...1.3).contains(share), "the new one of \(count + 1) has \(share) of its share")
    }
  }

  /// The hash is a contract between releases: workers of two releases must agree.
  @Test func theHashNeverChanges() {
    #expect(StableHash.of("") == 0xefd0_1f60_ba99_2926)
    #expect(StableHash.of("/srv/tenants/1/store.sqlite") == 0x78bd_bf9b_4808_8209)
    #expect(StableHash.bucket(of: 0xefd0_1f60_ba99_2926, among: 40) == 1)
    #expect(StableHash.bucket(of: 0x78bd_bf9b_4808_8209, among: 40) == 25)
  }

  @Test(arguments: ["", "1", "1/", "/2", "0/2", "3/2", "-1/2", "1/2/3", "a/b", "1/1000001", "1/99999999999999999999"])
  func whatIsNoShardIsRefused(_ text: String) { #expect(Shard(text) == nil) }

  @Test(
    arguments: [
      (["HOPD_SHARD": "3/40"], "3/40"),
      (["SLURM_ARRAY_TASK_ID": "0", "MIN": "0", "MAX": "7", "COUNT": "8"], "1/8"),
      (["SLURM_ARRAY_TASK_ID": "8", "MIN": "1", "MAX": "8", "COUNT": "8"], "8/8"),
      (["SLURM_ARRAY_TASK_ID": "6", "MIN": "0", "MAX": "6", "COUNT": "4", "STEP": "2"], "4/4"),
      (["JOB_COMPLETION_INDEX": "0", "HOPD_SHARDS": "12"], "1/12"),
      (["AWS_BATCH_JOB_ARRAY_INDEX": "2", "AWS_BATCH_JOB_ARRAY_SIZE": "3"], "3/3"),
      (["HOPD_SHARD": "2/2", "JOB_COMPLETION_INDEX": "0"], "2/2"),
    ])
  func enginesTellTheShard(_ given: [String: String], _ shard: String) throws {
    #expect(try Self.automatic(given).description == shard)
  }

  @Test(
    arguments: [
      ([:], "no array task"), (["HOPD_SHARD": "forty"], "not of the form I/N"),
      // `--array=3,5`: two tasks of an unknown number of shards.
      (["SLURM_ARRAY_TASK_ID": "3", "MIN": "3", "MAX": "5", "COUNT": "2"], "has gaps"),
      (["SLURM_ARRAY_TASK_ID": "3"], "do not describe"),
      (["SLURM_ARRAY_TASK_ID": "1", "MIN": "0", "MAX": "9223372036854775807", "COUNT": "2"], "do not describe"),
      (["JOB_COMPLETION_INDEX": "9223372036854775807", "HOPD_SHARDS": "4"], "does not pass"),
      (["JOB_COMPLETION_INDEX": "0"], "does not pass"),
      (["JOB_COMPLETION_INDEX": "4", "HOPD_SHARDS": "4"], "does not pass"),
    ])
  func whatTheEngineDoesNotTellIsAsked(_ given: [String: String], _ words: String) {
    let error = #expect(throws: HopdError.self) { try Self.automatic(given) }
    #expect(error?.message.contains(words) == true && error?.hint?.isEmpty == false)
  }

  private static func automatic(_ given: [String: String]) throws(HopdError) -> Shard {
    try Shard.automatic { name in
      given[name] ?? (name.hasPrefix("SLURM_ARRAY_TASK_") ? given[String(name.dropFirst(17))] : nil)
    }
  }
}
