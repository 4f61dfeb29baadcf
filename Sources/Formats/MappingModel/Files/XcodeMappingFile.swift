// A mapping model in source form as a file, made for two versions that it names by their paths in a project.

import Diagnostics
import ManagedObjectModel
import PropertyLists
import SystemPackage

/// An `.xcmappingmodel`.
package struct XcodeMappingFile: MappingFile {
  package let path: FilePath
  package let name: String
  package let form = MappingForm.source
  package let sourceEntities: Set<String>
  private let destinationEntities: Set<String>
  /// The hint for a damaged file.
  private static let remedy = "copy the mapping model from the app's sources again, or open and save it with Xcode"
  private let mapping: XcodeMapping
  private let contents: Place

  /// Reads the folder; throws if it holds no mapping model.
  package init(at path: FilePath) throws(HopdError) {
    let file = path.appending("xcmapping.xml")
    guard try ModelFiles.kind(of: path) != .missing else {
      throw HopdError(.notFound, "no such file or directory", at: Place(file: path), hint: "check the path")
    }
    guard try ModelFiles.kind(of: file) != .missing else {
      throw HopdError(
        .invalidMapping, "the mapping model has no file “xcmapping.xml”", at: Place(file: path),
        hint: "copy the whole .xcmappingmodel from the app's sources again")
    }
    do throws(HopdError) {
      try self.init(
        contents: try ModelFiles.bytes(of: file, limit: XMLLimits.mapping.maximumBytes), path: path,
        at: Place(file: file))
    } catch {
      throw error.hinting(Self.remedy)
    }
  }

  /// Reads the mapping model from the bytes of an `xcmapping.xml`.
  package init(contents bytes: [UInt8], path: FilePath, at place: Place = Place()) throws(HopdError) {
    self.path = path
    name = path.stem ?? path.string
    contents = place
    mapping = try XcodeMappingReader.read(bytes, at: place)
    sourceEntities = Set(mapping.entityMappings.compactMap(\.source))
    destinationEntities = Set(mapping.entityMappings.compactMap(\.destination))
  }

  package func fit(source version: MappableVersion) -> MappingFit {
    let known = sourceEntities.filter { version.model.entity(named: $0) != nil }.count
    let all = sourceEntities.count
    return fit(mapping.source, mapping.sourceHashes, hasEntities: known == all, known: known, of: all, version)
  }

  package func fit(destination version: MappableVersion) -> MappingFit {
    // It lists the properties of the destination (docs/formats/mapping-models.md, "What a mapping covers").
    var known = destinationEntities.filter { version.model.entity(named: $0) != nil }.count
    var all = destinationEntities.count
    let hasEntities = known == all
    for entity in mapping.entityMappings {
      guard let name = entity.destination else { continue }
      let properties = (entity.attributes + entity.relationships).map(\.name)
      all += properties.count
      guard let found = version.model.entity(named: name) else { continue }
      known += properties.count { property in
        version.model.allAttributes(of: found)[property] != nil
          || version.model.allComposites(of: found)[property] != nil
          || version.model.allRelationships(of: found)[property] != nil
      }
    }
    return fit(mapping.destination, mapping.destinationHashes, hasEntities: hasEntities, known: known, of: all, version)
  }

  /// The copy of the model decides, by its hashes, unless the mapping model names what the copied version lacks: then
  /// the copy is older than the mapping model. Otherwise its path decides. The bundle may have been renamed since, or
  /// its versions may be given one by one; then the entities must be those of the version. `known` of the `all` names
  /// that the mapping model needs are in the version.
  private func fit(
    _ wanted: VersionPath, _ hashes: [String: VersionHash]?, hasEntities: Bool, known: Int, of all: Int,
    _ version: MappableVersion
  ) -> MappingFit {
    let isSameModel = wanted.bundle.map { $0 == version.modelName } ?? true
    let isNamed = isSameModel && wanted.version == version.model.name
    if let hashes, hashes == version.hashes, known == all {
      return .copied(
        isNamed
          ? nil
          : HopdError(
            .mappingRemark,
            "the mapping model was created for \(wanted); its copy of that model has the hashes of "
              + "“\(version.model.name)” of \(version.modelName), for which it is taken", at: Place(file: path)))
    }
    if isNamed { return .exact }
    if wanted.version == version.model.name {
      guard hasEntities else { return .unrelated }
      return .loose(
        HopdError(
          .mappingRemark,
          "the mapping model was created for \(wanted); it is used for that version of \(version.modelName)",
          at: Place(file: path)))
    }
    let closeness = all == 0 ? 0 : Double(known) / Double(all)
    guard isSameModel, closeness > 0.5 else { return .unrelated }
    return .stale(
      [HopdError(.staleMapping, "it was created for the version \(wanted), which is not among those of the model")],
      closeness: closeness)
  }

  package func load(
    source: ManagedObjectModel, destination: ManagedObjectModel, beside others: [MappingOutline]
  ) throws(HopdError) -> LoadedMapping {
    let reasons = mapping.entityMappings.map { Self.deadness($0, source, destination) }
    try MappingProblem.check(
      mapping.problems, isDead: { reasons.indices.contains($0) && reasons[$0] != nil }, self, remedy: Self.remedy)
    // The compiler sees only living entity mappings, so that no expression looks up objects of a dead one.
    var living = mapping
    living.entityMappings = zip(mapping.entityMappings, reasons).filter { $0.1 == nil }.map(\.0)
    let dead = zip(mapping.entityMappings, reasons).compactMap { entity, reason in
      reason.map {
        ExplicitEntityMapping.dead(
          MappingCompiler.name(of: entity), because: $0, of: entity.source, policy: entity.policy)
      }
    }
    let compiler = MappingCompiler(living, source: source, destination: destination)
    return LoadedMapping(
      mapping: ExplicitMapping(
        name: name, path: path, sourceVersion: source.name, destinationVersion: destination.name,
        entityMappings: try compiler.entityMappings(at: contents) + dead),
      warnings: mapping.warnings + dead.compactMap { $0.deathNotice(at: path) })
  }

  /// Returns which entity of an entity mapping is missing; nil if both exist.
  private static func deadness(
    _ entity: XcodeEntityMapping, _ source: ManagedObjectModel, _ destination: ManagedObjectModel
  ) -> String? {
    for (name, model) in [(entity.source, source), (entity.destination, destination)] {
      if let name, model.entity(named: name) == nil { return "the version “\(model.name)” has no entity “\(name)”" }
    }
    return nil
  }
}
