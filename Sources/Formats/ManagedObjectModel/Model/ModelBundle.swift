// The result of a reader: the versions of one model in order, and warnings that do not stop the reading.

import Diagnostics
import SystemPackage

/// A warning about a model that does not prevent its reading.
package struct ModelWarning: Sendable, Hashable, CustomStringConvertible {
  /// What was found and what follows from it.
  package let message: String
  /// Where it was found.
  package let place: Place

  /// Creates a warning.
  package init(_ message: String, at place: Place = Place()) {
    self.message = message
    self.place = place
  }

  package var description: String { place.isEmpty ? message : "\(place): \(message)" }
}

extension [ModelWarning] {
  /// Adds a warning.
  mutating func add(_ message: String, at place: Place) { append(ModelWarning(message, at: place)) }
}

/// A version of the bundle that cannot be read or used; the other versions remain usable.
package struct OmittedVersion: Sendable {
  /// Its name.
  package let name: String
  /// Why.
  package let reason: HopdError
  /// Its version hashes, if the app's compiled model states them.
  package var hashes: [String: VersionHash]?
  /// Whether it is the current version of its bundle.
  package var isCurrent = false

  /// Creates the note of a version.
  package init(name: String, reason: HopdError, hashes: [String: VersionHash]? = nil, isCurrent: Bool = false) {
    self.name = name
    self.reason = reason
    self.hashes = hashes
    self.isCurrent = isCurrent
  }
}

/// The source of the order of a model's versions.
package enum VersionOrder: String, Sendable, Hashable {
  /// A declared list of the versions.
  case declared
  /// The project file beside or above the bundle, which has the time at which each version was added.
  case project
  /// The names: a guess.
  case names
}

extension HopdError.Code {
  /// The app runs code in a stage, which hopd does not have.
  package static let stageNeedsProgram = HopdError.Code("stage-needs-program", severity: .warning)
}

/// A stage of the app's migration plan that runs code of the app.
package struct AppStage: Sendable, Hashable {
  /// Names of its versions.
  package let source: String
  package let destination: String
  /// Where the app declares it.
  package let place: Place
  /// Whether it runs code before the hop, and after it.
  package let hasWillMigrate: Bool
  package let hasDidMigrate: Bool
  /// The hashes of its first version and of those before it in the plan.
  private let earlier: Set<[String: VersionHash]>
  /// The hashes of its last version and of those after it.
  private let later: Set<[String: VersionHash]>

  /// Takes a stage with the versions of the plan before and after it.
  package init(
    from source: String, to destination: String, at place: Place, hasWillMigrate: Bool, hasDidMigrate: Bool,
    earlier: Set<[String: VersionHash]>, later: Set<[String: VersionHash]>
  ) {
    (self.source, self.destination, self.place) = (source, destination, place)
    (self.hasWillMigrate, self.hasDidMigrate) = (hasWillMigrate, hasDidMigrate)
    (self.earlier, self.later) = (earlier, later.subtracting(earlier))
  }

  /// Whether a version is the stage's first one, or before it.
  package func begins(at hashes: [String: VersionHash]) -> Bool { earlier.contains(hashes) }

  /// Whether a version is the stage's last one, or after it.
  package func ends(at hashes: [String: VersionHash]) -> Bool { later.contains(hashes) }
}

/// The values that an attribute can have, where they are the raw values of an enum.
package struct EnumValues: Sendable, Hashable {
  package let values: [AttributeDefault]
  /// Whether it may have no value.
  package let isOptional: Bool

  package init(_ values: [AttributeDefault], isOptional: Bool) { (self.values, self.isOptional) = (values, isOptional) }
}

/// A version that a release had and that the current source does not have any more.
package struct ShippedSchema: Sendable {
  /// Name of its VersionedSchema.
  package let name: String
  /// The releases that have it.
  package let tags: [String]
  /// The model as it was shipped.
  package let model: ManagedObjectModel
  /// The version of that name, otherwise of that identifier, in the current source; nil if there is none.
  package let now: ManagedObjectModel?
  /// Where it is declared now, or was declared.
  package let place: Place

  package init(name: String, tags: [String], model: ManagedObjectModel, now: ManagedObjectModel?, place: Place) {
    (self.name, self.tags, self.model, self.now, self.place) = (name, tags, model, now, place)
  }
}

/// What is known of models that were derived from an app's source.
package struct ModelOrigin: Sendable {
  /// Where entities and their properties are declared, by version; the property of an entity itself is empty.
  package var places: [String: [PropertyKey: Place]] = [:]
  /// The raw values of enums, by version and by the key path of the attribute.
  package var enumValues: [String: [PropertyKey: EnumValues]] = [:]
  /// The tags of the repository whose releases have a version, by its name.
  package var tags: [String: [String]] = [:]
  /// What the source shows and the models do not.
  package var findings: [HopdError] = []
  /// Names that the current migration plan has for versions which are named after a release.
  package var otherNames: [String: String] = [:]
  /// Stages of the current plan that run code of the app.
  package var stages: [AppStage] = []
  /// Versions of releases that the current source has changed or removed.
  package var shipped: [ShippedSchema] = []

  package init() {}

  /// Returns the place of a property, otherwise that of its entity.
  package func place(version: String, entity: String, property: String?) -> Place? {
    let known = places[version]
    return known?[PropertyKey(entity: entity, property: property ?? "")]
      ?? known?[PropertyKey(entity: entity, property: "")]
  }
}

/// All versions of one model.
package struct ModelBundle: Sendable {
  /// The bundle's name without extension.
  package let name: String
  /// The path that it was read from.
  package let path: FilePath
  /// The usable versions, oldest first.
  package let versions: [ManagedObjectModel]
  /// The source of their order.
  package let order: VersionOrder
  /// Whether the order was declared.
  package var isOrderDeclared: Bool { order == .declared }
  /// The version that the bundle marks as current; nil if it has several and marks none, and if the marked one is left
  /// out.
  package let currentVersionName: String?
  /// Versions that are left out, in their order.
  package let omitted: [OmittedVersion]
  /// Warnings of all versions.
  package let warnings: [ModelWarning]
  /// Where the models come from; nil unless they were derived from source.
  package var origin: ModelOrigin?

  /// Creates a bundle.
  package init(
    name: String, path: FilePath, versions: [ManagedObjectModel], order: VersionOrder = .names,
    currentVersionName: String?, omitted: [OmittedVersion] = [], warnings: [ModelWarning] = []
  ) {
    self.name = name
    self.path = path
    self.versions = versions
    self.order = order
    self.currentVersionName = currentVersionName
    self.omitted = omitted
    self.warnings = warnings
  }

  /// Whether it has the same versions in the same order, with the same hashes, and the same current one.
  package func isCopy(of other: ModelBundle) -> Bool {
    name == other.name && versions == other.versions && currentVersionName == other.currentVersionName
      && order == other.order && omitted.map(\.name) == other.omitted.map(\.name)
      && versions.map(\.versionHashes) == other.versions.map(\.versionHashes)
  }

  /// The version of that name.
  package func version(named name: String) -> ManagedObjectModel? { versions.first { $0.name == name } }

  /// The version marked as current.
  package var currentVersion: ManagedObjectModel? { currentVersionName.flatMap { version(named: $0) } }

  /// One sentence for each version that is left out, with the reason.
  package var omissions: [ModelWarning] {
    omitted.map { version in
      // The complete list of faults is reported where the version is needed; here its beginning is enough.
      let reasons = version.reason.reasons.prefix(3).map { ": " + $0.message }.joined()
      return ModelWarning(
        "the version “\(version.name)” is ignored: \(version.reason.message)\(reasons)", at: version.reason.place)
    }
  }
}
