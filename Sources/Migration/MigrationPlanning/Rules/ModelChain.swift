// Versions of one model that are given one by one. SwiftData ships no bundle of versions, so often only stores of each
// version exist, which hold their models; compiled and single source versions may be given the same way.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// Creates one model from single versions.
enum ModelChain {
  /// Returns stores in the order of their version identifiers, if each has one and no two are equal; otherwise nil.
  ///
  /// SwiftData writes the `versionIdentifier` of a VersionedSchema, or 1.0.0 if a schema has none.
  static func byIdentifier(_ parts: [ModelBundle]) -> [ModelBundle]? {
    let numbers = parts.map { part -> [Int]? in
      let identifiers = part.versions.first?.versionIdentifiers.filter { !$0.isEmpty } ?? []
      guard identifiers.count == 1, let identifier = identifiers.first else { return nil }
      return StoreModels.schemaVersion(identifier)
    }
    let known = numbers.compactMap(\.self)
    guard known.count == parts.count, Set(known).count == known.count else { return nil }
    return zip(known, parts).sorted { $0.0.lexicographicallyPrecedes($1.0) }.map(\.1)
  }

  /// Returns the versions in the given order, the last one current; `declaredOrder` may change the order.
  ///
  /// A name that several of them have is extended by the file's name, and by a number if that is not sufficient.
  static func bundle(of parts: [ModelBundle], declaredOrder: [String]) throws(HopdError) -> ModelBundle {
    var versions: [ManagedObjectModel] = []
    var taken: Set<String> = []
    let names = parts.map { $0.versions.first?.name ?? $0.name }
    for (part, name) in zip(parts, names) {
      guard let model = part.versions.first else { continue }
      let isShared = names.filter { $0 == name }.count > 1
      let stem = part.path.stem ?? part.name
      let base = isShared && stem != name ? "\(name) (\(stem))" : name
      var unique = base
      var number = 2
      while !taken.insert(unique).inserted {
        unique = "\(base) #\(number)"
        number += 1
      }
      versions.append(unique == model.name ? model : model.renamed(unique))
    }
    if !declaredOrder.isEmpty {
      let all = versions.map(\.name)
      guard Set(declaredOrder) == Set(all), declaredOrder.count == all.count else {
        throw HopdError(
          .versionOrder, "the declared order of versions does not match the models, which were given one by one",
          at: Place(file: parts.last?.path),
          hint: "declare every version once, oldest first: " + all.map { "\"\($0)\"" }.joined(separator: ", ")
            + ". Or declare none, to take the order in which the models were given")
      }
      versions = declaredOrder.compactMap { name in versions.first { $0.name == name } }
    }
    let last = parts.last
    return ModelBundle(
      name: last?.name ?? "", path: last?.path ?? "", versions: versions, order: .declared,
      currentVersionName: versions.last?.name,
      warnings: parts.flatMap { part in
        part.warnings.map { ModelWarning($0.message, at: $0.place.filled(from: Place(file: part.path))) }
      })
  }
}
