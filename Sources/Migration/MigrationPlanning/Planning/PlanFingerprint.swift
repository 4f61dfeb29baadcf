// A short name that identifies a plan: a checkpoint is only resumed under the same models, mappings and layout. It is
// compared only with names that this program wrote itself, so it needs no cryptography.

import Expressions
import ManagedObjectModel
import MappingModel
import PersistentStore
import PropertyLists
import SQLite

/// Names a chain of hops.
enum PlanFingerprint {
  /// Returns the name of one store's plan.
  static func of(migrationPath: String, storeUUID: String) -> String { name(of: ["plan 9", storeUUID, migrationPath]) }

  /// Returns the name of the hops, the same for every store with these hops, except for the numbers of its history.
  static func migrationPath(
    hops: [Hop], source: CatalogedVersion, target: CatalogedVersion, rules: PlanningRules
  ) -> String {
    var lines = [source.model.name, target.model.name]
    lines.append("invalid rows \(rules.invalidRows.text), unmapped entities \(rules.unmappedEntities.rawValue)")
    lines.append("renames \(rules.renames.text)")
    lines += hashLines(source)
    lines += hashLines(target)
    // Every other hop begins with the schema that the one before it makes.
    lines += hops.first.map { schemaLines($0.sourceSchema) } ?? []
    for hop in hops {
      lines.append("hop \(hop.index) \(hop.source.name) -> \(hop.destination.name)")
      lines += schemaLines(hop.destinationSchema)
      lines += hop.mapping.entityMappings.flatMap(mappingLines)
      // Everything in a mapping decides about rows; the text is only compared with texts that this program wrote.
      lines += hop.mapped?.mappings.flatMap(explicitLines) ?? []
      lines += hop.computed.compactMap { $0.fillStatement(in: "") }
      // Defaults are not part of hashes or tables, but are written into rows.
      lines += hop.destination.entities.flatMap { entity in
        entity.attributes.map {
          "default \(entity.name).\($0.name) \($0.isOptional) \($0.allowsExternalStorage) "
            + "\($0.defaultValue?.sqlValue.literal ?? "none")"
        }
      }
    }
    return name(of: lines)
  }

  /// Returns the name of the hops with the facts of the store's history, which other stores do not share.
  static func of(migrationPath: String, history: HistoryLayout?, carry: HistoryCarry?) -> String {
    var lines = (history?.numbers ?? []).map { "history \($0.number) \($0.highWaterMark)" }
    if let carry {
      lines.append("history goes along without \(carry.removed)")
      lines += carry.columns.keys.sorted().map { "columns \($0)" }
      lines += carry.tombstones.keys.sorted().map { "tombstones \($0)" }
      lines += carry.mirroring.map { ["mirroring without \($0.removed)"] } ?? []
      lines += carry.mark?.texts.map { "text \($0.key) \($0.text)" } ?? []
    }
    return lines.isEmpty ? migrationPath : name(of: [migrationPath] + lines)
  }

  /// Two digests of the lines by the rule of FNV-1a, with two multipliers.
  private static func name(of lines: [String]) -> String {
    var digests: (UInt64, UInt64) = (0xcbf2_9ce4_8422_2325, 0x6c62_272e_07bb_0142)
    func add(_ byte: UInt8) {
      digests.0 = (digests.0 ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
      digests.1 = (digests.1 ^ UInt64(byte)) &* 0x9e37_79b9_7f4a_7c15
    }
    for line in lines {
      line.utf8.forEach(add)
      add(0x0a)
    }
    return hex(digests.0) + hex(digests.1)
  }

  private static func schemaLines(_ schema: StoreSchema) -> [String] {
    ["framework \(schema.frameworkVersion)"] + schema.tables.map(\.createStatement)
      + schema.joinTables.map(\.createStatement) + schema.indexes.map(\.createStatement)
      + (schema.history?.statements.map(\.createStatement) ?? []) + schema.rTrees.map(\.createStatement)
      + schema.triggers.map(\.text)
  }

  private static func hashLines(_ version: CatalogedVersion) -> [String] {
    version.versionHashes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
  }

  private static func mappingLines(_ mapping: EntityMapping) -> [String] {
    ["\(mapping.name) \(mapping.sourceEntity ?? "-") \(mapping.destinationEntity ?? "-")"]
      + mapping.attributes.map { "\($0.destination) < \($0.source ?? "-")" }
      + mapping.relationships.map { pairs in
        let source = pairs.source.map { "\($0.entity).\($0.relationship) \($0.isInverted)" } ?? "-"
        return "\(pairs.destination) << \(source)"
      }
  }

  private static func explicitLines(_ mapping: ExplicitMapping) -> [String] {
    ["mapping \(mapping.name)"] + mapping.entityMappings.map(explicitLine)
  }

  private static func explicitLine(_ mapping: ExplicitEntityMapping) -> String {
    // A dictionary has no fixed order.
    let userInfo = mapping.userInfo.sorted { $0.key < $1.key }.map { "\($0.key): \(orderedText($0.value))" }
    let parts: [String] = [
      mapping.name, String(mapping.type.rawValue), mapping.source ?? "-", mapping.destination ?? "-",
      mapping.policy ?? "-", userInfo.joined(separator: ", "),
      mapping.filter.map { "\($0.text) as \($0.predicate.description)" } ?? "-", properties(mapping.attributes),
      properties(mapping.relationships), text(of: mapping.grouping),
    ]
    return "entity mapping " + parts.joined(separator: " | ")
  }

  // Written out: texts that Swift makes of the values' fields took as long as the rest of the fingerprint.
  private static func properties(_ mappings: [ExplicitPropertyMapping]) -> String {
    mappings.map { "\($0.name) = \($0.value?.description ?? "what is there")\($0.isCopied ? " copied" : "")" }
      .joined(separator: ", ")
  }

  private static func text(of grouping: SourceGrouping) -> String {
    func keys(_ keys: [ExpressionNode], _ keep: KeepRule) -> String {
      let kept =
        switch keep {
        case .lowest: "lowest"
        case .highest: "highest"
        case .latest(let node): "latest \(node.description)"
        }
      return "\(keys.map(\.description).joined(separator: ", ")) keep \(kept)"
    }
    return switch grouping {
    case .each: "each"
    case .distinctBy(let by, let keep): "distinct by \(keys(by, keep))"
    case .deduplicate(let by, let keep): "deduplicate by \(keys(by, keep))"
    case .expand(let members, let entity): "expand \(members.description) of \(entity)"
    }
  }

  private static func orderedText(_ value: PropertyListValue) -> String {
    switch value {
    case .dictionary(let entries):
      "{" + entries.sorted { $0.key < $1.key }.map { "\($0.key): \(orderedText($0.value))" }.joined(separator: ", ")
        + "}"
    case .array(let elements): "[" + elements.map(orderedText).joined(separator: ", ") + "]"
    default: "\(value)"
    }
  }

  private static func hex(_ value: UInt64) -> String {
    let digits = String(value, radix: 16)
    return String(repeating: "0", count: max(0, 16 - digits.count)) + digits
  }
}
