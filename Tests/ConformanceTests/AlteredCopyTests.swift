// Chains whose hops alter a copy of the store, compared with the same chains by rows: the same objects, and the same
// schema except for the positions of appended columns. HOPD_SEEDS sets how many worlds are tried.

import Diagnostics
import Glibc
import ManagedObjectModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import PersistentStore
import SQLite
import Testing

@Suite struct AlteredCopyTests {
  private static let count = getenv("HOPD_SEEDS").flatMap { Int(String(cString: $0)) } ?? 12

  private static func versions(_ seed: UInt64) -> [ManagedObjectModel] {
    var world = RandomModels(seed: seed)
    var versions = [world.model("V1")]
    for number in 2...4 {
      world.evolveInPlace()
      versions.append(world.model("V\(number)"))
    }
    return versions
  }

  @Test func aCopyThatIsAlteredHasTheSameContent() throws {
    var altered = 0
    var columns = 0
    for seed in 1...UInt64(Self.count) {
      let versions = Self.versions(seed)
      guard Set(versions.map(\.versionHashes)).count == versions.count else { continue }
      let framework: Int64 = [977, 1044, 1344][Int(seed % 3)]
      guard StoreSchema(model: versions[0], frameworkVersion: framework).unsupported.isEmpty else { continue }
      let world = try AlteredWorld(seed: seed, versions: versions, framework: framework, rows: 25)
      guard let programs = try? world.decisions().compactMap(\.program), programs.count == 3 else { continue }
      altered += 1
      columns += programs.flatMap(\.kept).reduce(0) { $0 + $1.appended.count }
      let (rows, copy) = try world.both()
      #expect(try copy.content() == rows.content(), "seed \(seed)")
      let indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
      #expect(try copy.answers(indexes) == rows.answers(indexes), "seed \(seed)")
    }
    print("\(Self.count) worlds, \(altered) altered with \(columns) columns added")
    #expect(altered * 2 > Self.count)
    #expect(columns > altered)
  }

  /// Random changes of every kind, over one hop and several: a copy has the same content and indexes as the rows'
  /// result, whatever was done to its tables.
  @Test func changesOfEveryKind() throws {
    var tables: [String: Int] = [:]
    var changes: [String: Int] = [:]
    var ways: [String: Int] = [:]
    for seed in 1...UInt64(Self.count * 4) {
      var random = RandomModels(seed: seed)
      var versions = [random.model("V1")]
      for number in 2...Int(2 + seed % 3) {
        random.evolve()
        versions.append(random.model("V\(number)"))
      }
      let framework: Int64 = [866, 1044, 1344][Int(seed % 3)]
      guard Set(versions.map(\.versionHashes)).count == versions.count,
        StoreSchema(model: versions[0], frameworkVersion: framework).unsupported.isEmpty
      else { continue }
      let world = try AlteredWorld(seed: seed, versions: versions, framework: framework, rows: 20)
      let decisions: [HopDecision]
      do { decisions = try world.decisions() } catch {
        ways["refused", default: 0] += 1
        continue
      }
      let programs = decisions.compactMap(\.program)
      guard !programs.isEmpty else {
        ways["rows", default: 0] += 1
        continue
      }
      ways[programs.count == decisions.count ? "altered" : "both", default: 0] += 1
      for change in programs.flatMap(\.changes) {
        tables[change.action.rawValue, default: 0] += 1
        for word in ["entity numbers change", "renamed from", "columns renamed", "adds ", "sets "]
        where change.reason.contains(word) { changes[word, default: 0] += 1 }
      }
      guard let (rows, copy) = world.bothOrWhy(programs) else { continue }
      #expect(try copy.content() == rows.content(), "seed \(seed): \(programs.map(\.changes))")
      let indexes = "SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name"
      #expect(try copy.answers(indexes) == rows.answers(indexes), "seed \(seed)")
    }
    print(ways, tables, changes)
    #expect(ways["altered", default: 0] + ways["both", default: 0] > Self.count)
    for action in [TableChange.Action.kept, .altered, .written, .removed] {
      #expect(tables[action.rawValue, default: 0] > 0, "\(action)")
    }
    #expect(changes.count == 5, "\(changes)")
  }
}
