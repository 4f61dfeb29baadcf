// VersionInfo.plist of a `.momd`: the hashes that Xcode's compiler gave each version (docs/formats/model-files.md,
// "VersionInfo.plist"). Every hash that hopd computes is compared with it before use; if hopd's depends on an unproven
// rule, the stated hash decides (docs/decisions/0011).

import Diagnostics
import PropertyLists
import SystemPackage

extension HopdError.Code {
  /// A compiled model contradicts the model it was compiled from, or its own VersionInfo.plist.
  package static let modelsDisagree = HopdError.Code("models-disagree", exit: .dataError)
}

/// The statements of a `.momd` about its versions.
struct ModelVersionInfo {
  /// The name of the file.
  static let fileName = "VersionInfo.plist"

  /// The file.
  let path: FilePath
  /// NSManagedObjectModel_CurrentVersionName, without extension.
  let currentVersionName: String?
  /// NSManagedObjectModel_VersionHashes: version, entity, hash; abstract entities included.
  let hashes: [String: [String: VersionHash]]
  /// NSManagedObjectModel_VersionChecksums, which only newer compilers write.
  let checksums: [String: String]

  /// Reads the file of a bundle; nil if the bundle has none, an error if it is damaged.
  static func read(ofBundleAt bundle: FilePath) throws(HopdError) -> ModelVersionInfo? {
    let path = bundle.appending(fileName)
    let place = Place(file: path)
    guard try ModelFiles.kind(of: path) != .missing else { return nil }
    let hint = "build the app again and copy the whole .momd, or pass the model's source form"
    let list: PropertyListValue
    do {
      list = try PropertyList.decode(try ModelFiles.bytes(of: path, limit: 4 << 20), at: place)
    } catch {
      throw error.hinted(hint)
    }
    guard let entries = list.dictionary, let versions = entries["NSManagedObjectModel_VersionHashes"]?.dictionary else {
      throw HopdError(
        .invalidModel, "the file does not state the hashes of the model's versions", at: place, hint: hint)
    }
    var hashes: [String: [String: VersionHash]] = [:]
    for (version, value) in versions {
      guard let entities = value.dictionary else {
        throw HopdError(
          .invalidModel, "the hashes of the version “\(version)” are not a dictionary", at: place, hint: hint)
      }
      hashes[version] = [:]
      for (entity, value) in entities {
        guard let hash = value.data.flatMap(VersionHash.init(bytes:)) else {
          throw HopdError(
            .invalidModel, "the hash in the version “\(version)” is not 32 bytes",
            at: place.filled(from: Place(entity: entity)), hint: hint)
        }
        hashes[version]?[entity] = hash
      }
    }
    return ModelVersionInfo(
      path: path, currentVersionName: entries["NSManagedObjectModel_CurrentVersionName"]?.string, hashes: hashes,
      checksums: (entries["NSManagedObjectModel_VersionChecksums"]?.dictionary ?? [:]).compactMapValues(\.string))
  }

  /// Returns the version with the stated hashes in place of its uncertain ones; throws if a certain hash or the
  /// checksum differs.
  func settled(_ model: ManagedObjectModel) throws(HopdError) -> ManagedObjectModel {
    guard let stated = hashes[model.name] else { return model }
    let settled = try HashAgreement.settle(
      model, by: stated, source: path.lastComponent?.string ?? path.string, at: Place(file: path))
    let checksum = settled.versionChecksum
    if let wanted = checksums[model.name], wanted != checksum {
      throw HopdError(
        .modelsDisagree,
        "the checksum of the version “\(model.name)” is \(checksum), but \(Self.fileName) states \(wanted)",
        at: Place(file: path), hint: HashAgreement.hint)
    }
    return settled
  }
}

/// Compares a model's hashes with those that a compiled form of it states.
enum HashAgreement {
  static let hint =
    "build the app again and copy source and .momd together, because they are of different states of the model, "
    + "or remove the .momd if it is not the app's"

  /// Returns `model` with the stated hashes in place of those that cannot be computed with certainty.
  ///
  /// The stated hashes of the entities `ignored` are themselves computed, and prove nothing.
  static func settle(
    _ model: ManagedObjectModel, by stated: [String: VersionHash], ignoring ignored: Set<String> = [], source: String,
    at place: Place
  ) throws(HopdError) -> ManagedObjectModel {
    let uncertain = model.entitiesOfUncertainHash
    let declared = stated.filter { uncertain.contains($0.key) && !ignored.contains($0.key) }
    let settled =
      declared.isEmpty ? model : model.declaring(model.declaredVersionHashes.merging(declared) { _, new in new })
    let computed = settled.versionHashes
    var reasons: [HopdError] = []
    for entity in Set(computed.keys).union(stated.keys).sorted() where computed[entity] != stated[entity] {
      if ignored.contains(entity), computed[entity] != nil, stated[entity] != nil { continue }
      let ours = computed[entity]?.description ?? "no such entity"
      let theirs = stated[entity]?.description ?? "no such entity"
      reasons.append(
        HopdError(
          .modelsDisagree,
          "version “\(model.name)”, entity “\(entity)”: the model gives \(ours), \(source) states \(theirs)"))
      if reasons.count == ModelLimits.findings { break }
    }
    guard reasons.isEmpty else {
      throw HopdError(
        .modelsDisagree, "the version hashes of “\(model.name)” are not those that \(source) states", at: place,
        hint: hint, reasons: reasons)
    }
    return settled
  }
}
