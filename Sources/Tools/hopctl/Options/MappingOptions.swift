// Options of a migration with mapping models: programs for policies, and rules for rows and entities.

import ArgumentParser
import Diagnostics
import Glibc
import HopdConfiguration
import ManagedObjectModel
import MappingModel
import MigrationEngine
import MigrationPipeline
import MigrationPlanning
import MigrationPolicy
import PolicyHost

extension HopdError.Code {
  /// A program is bound to a policy that no mapping model and no stage names.
  static let unusedPolicy = HopdError.Code("unused-policy", severity: .warning)
}

/// `--policy`, `--invalid-rows`, `--unmapped-entities`.
struct MappingOptions: ParsableArguments {
  @Option(
    name: .customLong("policy"),
    help: ArgumentHelp(
      "Program for a migration policy class; repeatable",
      discussion: "COMMAND is split as in a shell, with quotes and backslashes, but without expansion.",
      valueName: "class=command"))
  var policies: [PolicyArgument] = []

  @Option(
    name: .customLong("invalid-rows"),
    help: ArgumentHelp(
      "How to handle rows that fail validation: fail, skip, default or quarantine; repeatable",
      valueName: "rule|entity=rule"))
  var invalidRows: [InvalidRowsArgument] = []

  @Option(
    name: .customLong("unmapped-entities"),
    help: "How to handle rows of entities without an entity mapping: fail or drop")
  var unmappedEntities: UnmappedEntitiesRule?

  func validate() throws {
    var seen: Set<String> = []
    for binding in policies where !seen.insert(binding.name).inserted {
      throw ValidationError("--policy has \(binding.name) twice.")
    }
  }

  /// The options as typed.
  var words: [String] {
    var words = policies.flatMap { ["--policy", $0.text] } + invalidRows.flatMap { ["--invalid-rows", $0.text] }
    if let unmappedEntities { words += ["--unmapped-entities", unmappedEntities.rawValue] }
    return words
  }

  /// Overrides the configuration's rules with those of the command line.
  func override(_ rules: inout InvalidRowsRules) {
    for argument in invalidRows {
      if let entity = argument.entity { rules.byEntity[entity] = argument.rule } else { rules.standard = argument.rule }
    }
  }

  /// A warning for each `--policy` that no mapping model and no stage names: its program would never be started. None
  /// if a mapping model cannot be read, because it may name the policy.
  func unusedPolicies(of catalog: ModelCatalog) -> [HopdError] {
    guard !policies.isEmpty, catalog.mappings.isReadable else { return [] }
    var known = Set(catalog.mappings.stages.flatMap { [$0.willMigrate, $0.didMigrate].compactMap(\.self) })
    for bundle in catalog.bundles {
      let hops = catalog.mappings.hops(among: catalog.versions.filter { $0.path == bundle.path })
      for pair in hops.pairs {
        guard let hop = try? hops.hop(from: pair.source, to: pair.destination) else { continue }
        known.formUnion(hop.hop.policies)
      }
    }
    let bare = Set(known.map(PolicyClassName.bare))
    return policies.map(\.name).filter { !bare.contains(PolicyClassName.bare($0)) }.map { name in
      let near = NearestName.among(known, to: name)
      let names = known.sorted().map(\.printableLine).joined(separator: ", ")
      return HopdError(
        .unusedPolicy, "--policy: no mapping model or stage uses \(name.printableLine)",
        hint: near.map { "use '\($0.printableLine)'" }
          ?? (known.isEmpty ? "remove it; the mapping models use no policy" : "use one of: \(names)"))
    }
  }

  /// Throws if `--invalid-rows ENTITY=RULE` names an entity that no version has: the rule would never be used.
  func requireKnownEntities(of catalog: ModelCatalog) throws(HopdError) {
    guard let unknown = catalog.unknownEntity(among: invalidRows.compactMap(\.entity)) else { return }
    throw HopdError(
      .usage, "--invalid-rows: no version of the models has the entity \(unknown.name.printableLine)",
      hint: unknown.hint)
  }
}

/// CLASS=COMMAND.
struct PolicyArgument: ExpressibleByArgument {
  let text: String
  let name: String
  let command: [String]

  init?(argument: String) {
    guard let sign = argument.firstIndex(of: "="),
      let words = ShellWords.split(argument[argument.index(after: sign)...], escapedInQuotes: "\"\\$`")
    else { return nil }
    text = argument
    name = String(argument[..<sign])
    command = words
    if name.isEmpty || words.first?.isEmpty != false { return nil }
  }
}

/// RULE, or ENTITY=RULE.
struct InvalidRowsArgument: ExpressibleByArgument {
  let text: String
  let entity: String?
  let rule: InvalidRowsRule

  init?(argument: String) {
    let sign = argument.lastIndex(of: "=")
    let word = sign.map { argument[argument.index(after: $0)...] } ?? argument[...]
    guard let rule = InvalidRowsRule(rawValue: String(word)), sign != argument.startIndex else { return nil }
    text = argument
    self.rule = rule
    entity = sign.map { String(argument[..<$0]) }
  }
}

extension UnmappedEntitiesRule: ExpressibleByArgument {}
