// A compiled mapping model as a file. It names no versions: it fits those whose entities have the hashes it was
// compiled for (docs/formats/mapping-models.md, "Choosing a mapping").

import Diagnostics
import ManagedObjectModel
import PropertyLists
import SystemPackage

/// A `.cdm`.
package struct CompiledMappingFile: MappingFile {
  package let path: FilePath
  package let name: String
  package let form = MappingForm.compiled
  package let sourceEntities: Set<String>
  /// The hint for a damaged file.
  private static let remedy = "copy the .cdm from the app again, or pass the mapping model's source form"
  private let mapping: CompiledMapping

  /// Reads the file; throws if it is not a mapping model.
  package init(at path: FilePath) throws(HopdError) {
    do throws(HopdError) {
      try self.init(
        contents: try ModelFiles.bytes(of: path, limit: PropertyListLimits.archive.maximumBytes), path: path,
        at: Place(file: path))
    } catch {
      throw error.hinting(Self.remedy)
    }
  }

  /// Reads the mapping model from the bytes of a `.cdm`.
  package init(contents bytes: [UInt8], path: FilePath, at place: Place = Place()) throws(HopdError) {
    self.path = path
    name = path.stem ?? path.string
    mapping = try CompiledMappingReader.read(bytes, at: place)
    sourceEntities = Set(mapping.sources.map(\.entity))
  }

  package func fit(source version: MappableVersion) -> MappingFit { fit(mapping.sources, version) }

  package func fit(destination version: MappableVersion) -> MappingFit { fit(mapping.destinations, version) }

  /// Compares only the entities that the file names: it never names abstract and dropped ones.
  private func fit(_ ends: [CompiledMapping.End], _ version: MappableVersion) -> MappingFit {
    var reasons: [HopdError] = []
    var (known, equal) = (0, 0)
    for end in Set(ends).sorted(by: { ($0.entity, $0.hash.description) < ($1.entity, $1.hash.description) }) {
      let hash = version.hashes[end.entity]
      if hash != nil { known += 1 }
      guard hash != end.hash else {
        equal += 1
        continue
      }
      reasons.append(
        HopdError(
          .staleMapping,
          "it was created for the hash \(end.hash); the version “\(version.model.name)” has "
            + (hash?.description ?? "no entity of that name"), at: Place(entity: end.entity)))
    }
    if reasons.isEmpty { return .exact }
    // Half of the names must exist; among versions that qualify, equal hashes show which one was meant.
    let all = equal + reasons.count
    guard known * 2 >= all else { return .unrelated }
    return .stale(reasons, closeness: Double(known + 2 * equal) / Double(3 * all))
  }

  package func load(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) throws(HopdError) -> LoadedMapping {
    let (before, after) = (source.versionHashes, destination.versionHashes)
    let entityMappings = zip(mapping.entityMappings, mapping.ends).map { entityMapping, ends in
      let reasons = [
        ends.source.flatMap { Self.misfit($0, before, source.name) },
        ends.destination.flatMap { Self.misfit($0, after, destination.name) },
      ].compactMap(\.self)
      return reasons.isEmpty
        ? entityMapping
        : .dead(
          entityMapping.name, because: reasons.joined(separator: ", and "), of: entityMapping.source,
          policy: entityMapping.policy)
    }
    return try loaded(entityMappings, source: source, destination: destination)
  }

  /// Returns the mapping as if it had been compiled for these versions, and ignores their hashes.
  package func loadAsCompiled(for source: ManagedObjectModel, _ destination: ManagedObjectModel) throws(HopdError)
    -> LoadedMapping
  { try loaded(mapping.entityMappings, source: source, destination: destination) }

  private func loaded(
    _ entityMappings: [ExplicitEntityMapping], source: ManagedObjectModel, destination: ManagedObjectModel
  ) throws(HopdError) -> LoadedMapping {
    try MappingProblem.check(
      mapping.problems,
      isDead: { entityMappings.indices.contains($0) && entityMappings[$0].deadness != nil }, self, remedy: Self.remedy)
    return LoadedMapping(
      mapping: ExplicitMapping(
        name: name, path: path, sourceVersion: source.name, destinationVersion: destination.name,
        entityMappings: entityMappings),
      warnings: mapping.warnings + entityMappings.compactMap { $0.deathNotice(at: path) })
  }

  /// Returns why an entity is not the one that the mapping was compiled for; nil if it is.
  private static func misfit(_ end: CompiledMapping.End, _ hashes: [String: VersionHash], _ version: String) -> String?
  {
    guard let hash = hashes[end.entity] else {
      return "the version “\(version)” has no entity “\(end.entity)”"
    }
    return hash == end.hash
      ? nil
      : "it was created for a different state of the entity “\(end.entity)” of “\(version)” (\(end.hash), now \(hash))"
  }

  package func living(source: MappableVersion, destination: MappableVersion) -> LivingMappings? {
    var living = LivingMappings()
    for ends in mapping.ends {
      guard ends.source.map({ source.hashes[$0.entity] == $0.hash }) ?? true,
        ends.destination.map({ destination.hashes[$0.entity] == $0.hash }) ?? true
      else { continue }
      living.count += 1
      if let entity = ends.source?.entity { living.sources.insert(entity) }
      if let first = ends.source, let second = ends.destination, first.hash != second.hash { living.joinsStates = true }
    }
    return living
  }
}
