// What the versions of a model lose on their way to the current one, by the models alone: the rows of a trial may have
// no value where those of a user have one. A drop that is meant is noted in the lock, where a review reads it.

import Diagnostics
import ManagedObjectModel
import MigrationPlanning
import TOMLDocuments

/// Makes findings from the drops of checked versions.
struct DroppedData {
  let bundle: ModelBundle
  let hops: [HopCheck]
  /// The lock in the working tree.
  let lock: LockFile?

  /// Returns the drops of a chain; `counted` are those of the store that was tried, if one was.
  func drops(
    of edges: [MigrationGraph.Edge], from version: CatalogedVersion, frameworkVersion: Int64, counted: [CheckDrop]?
  ) -> [CheckDrop] {
    let search = DropSearch(edges, from: version.model, frameworkVersion: frameworkVersion)
    var drops = search.losses.map { part in
      let hop = HopStep(edges[part.hop]).title
      let found = counted?.filter { $0.hop == hop && $0.entity == part.entity && $0.property == part.property }
      return CheckDrop(
        hop: hop, entity: part.entity, property: part.property,
        count: found?.reduce(0) { $0 &+ ($1.count ?? 0) })
    }
    // What only the rows after a policy show.
    drops += counted?.filter { drop in !drops.contains { $0.hop == drop.hop && $0.part == drop.part } } ?? []
    let allowed = lock?.model(named: bundle.name)?.allowedDrops ?? [:]
    for index in drops.indices {
      let step = edges.lazy.map { HopStep($0) }.first { $0.title == drops[index].hop }
      drops[index].isAllowed = step.flatMap { allowed[$0.destination]?[drops[index].part] } != nil
    }
    return drops
  }

  /// Returns the drops that the lock does not allow, each once, with the versions whose stores lose the data.
  func findings(_ versions: [VersionCheck]) -> [CheckFinding] {
    var order: [CheckDrop] = []
    var losers: [CheckDrop: [String]] = [:]
    for version in versions {
      for drop in version.drops where !drop.isAllowed {
        let key = CheckDrop(hop: drop.hop, entity: drop.entity, property: drop.property)
        if losers[key] == nil { order.append(key) }
        if losers[key]?.last != version.name { losers[key, default: []].append(version.name) }
      }
    }
    return order.map { drop in finding(drop, losers[drop] ?? [], versions) }
  }

  private func finding(_ drop: CheckDrop, _ losers: [String], _ versions: [VersionCheck]) -> CheckFinding {
    let step = versions.lazy.flatMap(\.steps).first { $0.title == drop.hop }
    let what = drop.property == nil ? "the entity is dropped with all its rows" : "the values are dropped"
    return CheckFinding(
      HopdError(
        .dataDropped, "\(what), in stores of \(losers.joined(separator: ", "))",
        at: Place(hop: drop.hop, entity: drop.entity, property: drop.property)),
      remedies: [keeping(drop, step), step.map { allowing(drop, in: $0.destination) }].compactMap(\.self))
  }

  private func keeping(_ drop: CheckDrop, _ step: HopStep?) -> Remedy? {
    guard let step else { return nil }
    guard step.kind == .inferred else {
      return Remedy(.mappingModel, "to preserve them, read them in \(step.mappings.joined(separator: ", "))")
    }
    let name = drop.property ?? drop.entity
    let suspicion = hops.first { $0.title == drop.hop }?.difference.suspicions.first { suspicion in
      suspicion.old == name && suspicion.oldEntity == (drop.property == nil ? nil : drop.entity)
    }
    let renamed = suspicion.map { "renamed to \($0.new)" } ?? "renamed"
    return Remedy(
      .renamingIdentifier,
      "if it was \(renamed) in \(step.destination), set the renaming identifier \(name) there"
    )
  }

  /// Returns the line of the lock that allows the drop.
  private func allowing(_ drop: CheckDrop, in version: String) -> Remedy {
    let line = LockFile.allowance(of: drop.part, in: version, because: "REASON")
    let start = lock == nil ? "format = 1\n" : ""
    let table = "[[model]]\nname = \(TOMLText.quoted(bundle.name))\n"
    let isNoted = lock?.model(named: bundle.name) != nil
    return Remedy(
      .other,
      isNoted
        ? "to allow the drop, add the reason to hop.lock, below name = \(TOMLText.quoted(bundle.name))"
        : "to allow the drop, add the reason to hop.lock",
      text: isNoted ? line : start + table + line)
  }
}
