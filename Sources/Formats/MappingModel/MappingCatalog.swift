// All given mapping models, and which of them serve which pair of versions. The order of a folder never decides: if two
// claim the same entities of the same hop, the user must choose (docs/formats/mapping-models.md, "Choosing a mapping").

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// All mapping models that were given.
package struct MappingCatalog: Sendable {
  /// A mapping model with the position of the given path under which it was found.
  struct Entry: Sendable {
    let file: any MappingFile
    let position: Int
  }

  let entries: [Entry]
  /// Mapping models of a folder that cannot be read. Each may be for any hop, so no hop should be inferred while there
  /// are any.
  package let unreadable: [HopdError]
  /// The stages that files among the given paths declare, in the order of the files.
  package let stages: [DeclaredStage]

  /// The mapping models in the order they were given.
  package var files: [any MappingFile] { entries.map(\.file) }
  /// Whether there are none, readable or not.
  package var isEmpty: Bool { entries.isEmpty && unreadable.isEmpty }

  /// A catalog without mapping models.
  package static let empty = MappingCatalog(files: [])

  /// Creates a catalog of mapping models that were read, in the requested order of execution.
  package init(files: [any MappingFile]) {
    self.init(
      entries: files.enumerated().map { Entry(file: $0.element, position: $0.offset) }, unreadable: [], stages: [])
  }

  private init(entries: [Entry], unreadable: [HopdError], stages: [DeclaredStage]) {
    (self.entries, self.unreadable, self.stages) = (entries, unreadable, stages)
  }

  /// Reads mapping models, and searches folders for them.
  ///
  /// A named one must be readable; an unreadable one inside a folder is added to `unreadable`. Files of stages must
  /// always be readable: otherwise hooks would be left out, and no row would show it.
  package static func load(_ paths: [FilePath]) throws(HopdError) -> MappingCatalog {
    var entries: [Entry] = []
    var unreadable: [HopdError] = []
    var stages: [DeclaredStage] = []
    var seen: Set<FilePath> = []
    for (position, path) in paths.enumerated() {
      let isNamed = MappingForm(path) != nil
      for found in try MappingFileSearch.find(at: path) where seen.insert(found.lexicallyNormalized()).inserted {
        if MappingForm.isStages(found) {
          stages += try StagesFile.read(at: found)
          continue
        }
        do throws(HopdError) {
          entries.append(Entry(file: try MappingReader.read(at: found), position: position))
        } catch {
          if isNamed { throw error }
          unreadable.append(error)
        }
      }
    }
    return MappingCatalog(entries: entries, unreadable: unreadable, stages: stages)
  }

  /// Returns the stages that files at or below these paths declare; no other files are read.
  package static func stages(at paths: [FilePath]) throws(HopdError) -> [DeclaredStage] {
    var stages: [DeclaredStage] = []
    var seen: Set<FilePath> = []
    for path in paths {
      for found in try MappingFileSearch.find(at: path)
      where MappingForm.isStages(found) && seen.insert(found.lexicallyNormalized()).inserted {
        stages += try StagesFile.read(at: found)
      }
    }
    return stages
  }

  /// Returns the hops among `versions`, which are those of one model, oldest first.
  package func hops(among versions: [MappableVersion]) -> MappingHops { MappingHops(entries, versions) }
}

/// The hops among the versions of one model that mapping models serve.
package struct MappingHops: Sendable {
  /// A pair of versions, by index.
  package struct Pair: Sendable, Hashable {
    package let source: Int
    package let destination: Int

    /// Creates a pair.
    package init(source: Int, destination: Int) {
      self.source = source
      self.destination = destination
    }
  }

  /// A hop that can be followed.
  package struct Served: Sendable {
    package let hop: MappedHop
    /// Remarks: parts that the readers left out, and differing names of models.
    package let warnings: [HopdError]
  }

  /// The pairs that mapping models serve, by source, then destination.
  package let pairs: [Pair]
  /// Mapping models that serve no pair but were nearly made for one: the differences by entity, with both hashes.
  package var stale: [HopdError] { misfits.map(\.error) }
  /// The same, each with the pair for which it was nearly made.
  package let misfits: [MappingMisfit]
  /// Mapping models between versions of equal hashes, which no hop follows, each with such a pair.
  package let idle: [(path: FilePath, pair: Pair)]

  private let versions: [MappableVersion]
  private let candidates: [Pair: [Candidate]]

  /// A mapping model that fits a pair.
  private struct Candidate: Sendable {
    let entry: MappingCatalog.Entry
    let remarks: [HopdError]
    /// Source entities that it takes; its other entities are dead.
    let sources: Set<String>
    /// Whether only some of its entity mappings fit.
    var isPartial = false
  }

  init(_ entries: [MappingCatalog.Entry], _ versions: [MappableVersion]) {
    self.versions = versions
    var candidates: [Pair: [Candidate]] = [:]
    var served: [[Pair]] = []
    var misfits: [MappingMisfit] = []
    var idle: [(path: FilePath, pair: Pair)] = []
    for entry in entries {
      let (sources, destinations) = Self.sides(of: entry.file, versions)
      var pairs: [Pair] = []
      for (source, first) in sources.fitting {
        for (destination, second) in destinations.fitting
        where versions[source].hashes != versions[destination].hashes {
          let pair = Pair(source: source, destination: destination)
          pairs.append(pair)
          candidates[pair, default: []].append(
            Candidate(
              entry: entry, remarks: [first, second].compactMap(\.self), sources: entry.file.sourceEntities))
        }
      }
      if pairs.isEmpty {
        for (pair, living) in Self.partlyFitting(entry.file, versions) {
          pairs.append(pair)
          candidates[pair, default: []].append(
            Candidate(entry: entry, remarks: [], sources: living.sources, isPartial: true))
        }
      }
      served.append(pairs)
      if pairs.isEmpty, let first = sources.fitting.first, Self.isIdle(sources, destinations, versions) {
        let second = destinations.fitting.first { $0.index != first.index } ?? first
        idle.append((entry.file.path, Pair(source: first.index, destination: second.index)))
      }
      if pairs.isEmpty, let misfit = MappingMisfit(entry.file, sources, destinations) { misfits.append(misfit) }
    }
    candidates = candidates.mapValues(Self.withoutOvertaken)
    // A compiled mapping model of a few entities fits every pair that agrees on them (1 to 20 of 20 pairs, M). It
    // serves only those pairs where it and the others leave no entity unmapped, if there are any.
    for (entry, pairs) in zip(entries, served) where pairs.count > 1 {
      let complete = pairs.filter {
        Self.isComplete(candidates[$0] ?? [], versions[$0.source], versions[$0.destination])
      }
      guard !complete.isEmpty else { continue }
      for pair in pairs where !complete.contains(pair) {
        candidates[pair]?.removeAll { $0.entry.file.path == entry.file.path }
        if candidates[pair]?.isEmpty == true { candidates[pair] = nil }
      }
    }
    self.candidates = candidates
    self.misfits = misfits
    self.idle = idle
    pairs = candidates.keys.sorted { ($0.source, $0.destination) < ($1.source, $1.destination) }
  }

  /// Returns how both sides of a mapping model fit the versions.
  private static func sides(
    of file: any MappingFile, _ versions: [MappableVersion]
  ) -> (sources: MappingSide, destinations: MappingSide) {
    var sources = MappingSide(versions, file.fit(source:))
    var destinations = MappingSide(versions, file.fit(destination:))
    // Copies that were made before a version was edited say nothing of the hop: then the paths tell.
    if isIdle(sources, destinations, versions) {
      sources = MappingSide(versions, byCopy: false, file.fit(source:))
      destinations = MappingSide(versions, byCopy: false, file.fit(destination:))
    }
    // The other forms name their versions by hashes, or as they are called now.
    guard file.form == .source else { return (sources, destinations) }
    let found = sources
    sources.eliminate(destinations, isSource: true, versions, file)
    destinations.eliminate(found, isSource: false, versions, file)
    return (sources, destinations)
  }

  /// Returns the paths of the mapping models that fit a pair, before any is chosen.
  package func files(for pair: Pair) -> [FilePath] { (candidates[pair] ?? []).map(\.entry.file.path) }

  /// Returns the hop from one version to another, checked against both; nil if no mapping model serves the pair.
  ///
  /// - Throws: `mapping-ambiguous` with the candidates, `mapping-stale` with every unknown name, or `mapping-invalid`
  ///   with every unsupported part.
  package func hop(_ pair: Pair) throws(HopdError) -> Served? {
    guard let fitting = candidates[pair], !fitting.isEmpty else { return nil }
    let (source, destination) = models(of: pair)
    let place = Place(hop: "\(source.name) → \(destination.name)")
    do throws(HopdError) {
      let loaded = try loaded(pair)
      let warnings = remarks(on: pair) + loaded.flatMap(\.warnings)
      let choices = zip(fitting, loaded).map { Choice(entry: $0.entry, mapping: $1.mapping) }
      let (meant, passedOver) = meant(of: Self.withoutTwins(choices), pair)
      let chosen = try Self.chosen(from: meant)
      if let reason = Self.deathOfAll(chosen) { throw reason }
      let mappings = try MappingChecker.checked(chosen.map(\.mapping), source: source, destination: destination)
      return Served(hop: MappedHop(mappings: mappings.mappings), warnings: warnings + passedOver + mappings.warnings)
    } catch {
      throw error.located(place)
    }
  }

  /// Returns the models of a pair.
  package func models(of pair: Pair) -> (source: ManagedObjectModel, destination: ManagedObjectModel) {
    (versions[pair.source].model, versions[pair.destination].model)
  }

  /// Returns the remarks on a pair whose versions were found by name only.
  package func remarks(on pair: Pair) -> [HopdError] { (candidates[pair] ?? []).flatMap(\.remarks) }

  /// Returns all mapping models that fit a pair, each loaded together with the others, unchecked.
  package func loaded(_ pair: Pair) throws(HopdError) -> [LoadedMapping] {
    let (source, destination) = models(of: pair)
    let files = (candidates[pair] ?? []).map(\.entry.file)
    if files.count == 1 { return [try files[0].load(source: source, destination: destination)] }
    let outlines = try files.map { file throws(HopdError) in
      try file.outlines(source: source, destination: destination)
    }
    return try files.indices.map { index throws(HopdError) in
      let others = outlines.enumerated().filter { $0.offset != index }.map(\.element)
      let beside = MappingOutline.foreign(others, beside: outlines[index])
      return try files[index].load(source: source, destination: destination, beside: beside)
    }
  }

  /// Whether both sides fit, but only versions of the same hashes.
  private static func isIdle(
    _ sources: MappingSide, _ destinations: MappingSide, _ versions: [MappableVersion]
  ) -> Bool {
    guard !sources.fitting.isEmpty, !destinations.fitting.isEmpty else { return false }
    return Set((sources.fitting + destinations.fitting).map { versions[$0.index].hashes }).count == 1
  }

  // MARK: Choosing

  private struct Choice {
    let entry: MappingCatalog.Entry
    let mapping: ExplicitMapping
    /// The sources and new entities that it maps: at most one mapping model of a hop may claim each.
    let claims: Set<String>
    /// The claims that it takes by filters only: others may take the rest of the objects. The rows show whether an
    /// object is taken twice.
    let parts: Set<String>

    init(entry: MappingCatalog.Entry, mapping: ExplicitMapping) {
      self.entry = entry
      self.mapping = mapping
      var (claims, wholes): (Set<String>, Set<String>) = ([], [])
      for mapping in mapping.entityMappings where mapping.deadness == nil {
        let claim = mapping.source.map { "source \($0)" } ?? "new \(mapping.destination ?? "")"
        claims.insert(claim)
        if mapping.source == nil || mapping.filter == nil { wholes.insert(claim) }
      }
      self.claims = claims
      parts = claims.subtracting(wholes)
    }
  }

  /// Keeps each content once: a source and its compiled form are the same, and so are two copies.
  private static func withoutTwins(_ choices: [Choice]) -> [Choice] {
    var kept: [Choice] = []
    for choice in choices {
      if let index = kept.firstIndex(where: { $0.mapping.isEquivalent(as: choice.mapping) }) {
        // The form that Apple's compiler made is kept, at the first one's position in the order.
        if choice.entry.file.form == .compiled, kept[index].entry.file.form != .compiled {
          kept[index] = Choice(
            entry: MappingCatalog.Entry(file: choice.entry.file, position: kept[index].entry.position),
            mapping: choice.mapping)
        }
      } else {
        kept.append(choice)
      }
    }
    return kept
  }

  /// Versions of equal hashes are one version with several names, so mapping models for each of them fit one hop. If
  /// they claim the same, those that name the hop's own versions take precedence over those that name the others.
  private func meant(of choices: [Choice], _ pair: Pair) -> (choices: [Choice], remarks: [HopdError]) {
    let named = choices.filter { isNamed(by: $0.entry.file, pair) == true }
    guard !named.isEmpty, named.count < choices.count else { return (choices, []) }
    let claims = Set(named.flatMap(\.claims))
    var remarks: [HopdError] = []
    let kept = choices.filter { choice in
      // A mapping model that names no versions may be meant for these.
      if isNamed(by: choice.entry.file, pair) != false || choice.claims.isDisjoint(with: claims) { return true }
      let (source, destination) = models(of: pair)
      remarks.append(
        HopdError(
          .mappingRemark,
          "the mapping model is not used: it is for other versions of the same hashes, and "
            + "\(named.map(\.mapping.path.printable).joined(separator: ", ")) names \(source.name) and "
            + "\(destination.name) themselves", at: Place(file: choice.mapping.path)))
      return false
    }
    return (kept, remarks)
  }

  /// Whether a mapping model names both versions of a pair, in its content or, if that has only hashes, in its own
  /// name; nil if it names no versions.
  private func isNamed(by file: any MappingFile, _ pair: Pair) -> Bool? {
    let (source, destination) = (versions[pair.source], versions[pair.destination])
    if file.form != .compiled {
      return [file.fit(source: source), file.fit(destination: destination)].allSatisfy { fit in
        switch fit {
        case .exact, .copied(nil): true
        case .copied, .loose, .stale, .unrelated: false
        }
      }
    }
    func names(_ first: MappableVersion, _ second: MappableVersion) -> Bool {
      NaturalOrder.names(file.name, first.model.name, before: second.model.name)
    }
    if names(source, destination) { return true }
    let sources = versions.filter { $0.hashes == source.hashes }
    let destinations = versions.filter { $0.hashes == destination.hashes }
    return sources.contains { first in destinations.contains { names(first, $0) } } ? false : nil
  }

  /// Returns the error if no entity mapping of the mapping models can be followed; nil if one can.
  private static func deathOfAll(_ choices: [Choice]) -> HopdError? {
    let mappings = choices.flatMap(\.mapping.entityMappings)
    guard !mappings.isEmpty, mappings.allSatisfy({ $0.deadness != nil }) else { return nil }
    return HopdError(
      .staleMapping, "no entity mapping has an effect between these versions",
      at: Place(file: choices.first?.mapping.path),
      hint: "open the mapping model in Xcode with these versions of the model, correct it and save it",
      reasons: mappings.prefix(MappingLimits.findings).compactMap { $0.deathNotice(at: choices[0].mapping.path) })
  }

  /// Returns the pairs that some entity mappings of a mapping model serve although it fits none as a whole, if they
  /// join two states of an entity: the pairs with the most such entity mappings (docs/formats/mapping-models.md,
  /// "Choosing a mapping").
  private static func partlyFitting(
    _ file: any MappingFile, _ versions: [MappableVersion]
  ) -> [(pair: Pair, living: LivingMappings)] {
    var best: [(pair: Pair, living: LivingMappings)] = []
    for (source, before) in versions.enumerated() {
      for (destination, after) in versions.enumerated() where before.hashes != after.hashes {
        guard let living = file.living(source: before, destination: after), living.joinsStates,
          living.count >= best.first?.living.count ?? 1
        else { continue }
        if living.count > best.first?.living.count ?? 0 { best = [] }
        best.append((Pair(source: source, destination: destination), living))
      }
    }
    return best
  }

  /// Leaves out candidates that fit in part if one that fits as a whole takes the same entities.
  private static func withoutOvertaken(_ candidates: [Candidate]) -> [Candidate] {
    let whole = Set(candidates.filter { !$0.isPartial }.flatMap(\.sources))
    return candidates.filter { !$0.isPartial || $0.sources.isDisjoint(with: whole) }
  }

  /// Whether the mapping models together map every concrete entity that both versions have.
  private static func isComplete(
    _ candidates: [Candidate], _ source: MappableVersion, _ destination: MappableVersion
  ) -> Bool {
    let mapped = Set(candidates.flatMap(\.sources))
    let kept = Set(destination.model.entities.map(\.renamingIdentifier) + destination.model.entities.map(\.name))
    return source.model.entities.allSatisfy { $0.isAbstract || !kept.contains($0.name) || mapped.contains($0.name) }
  }

  /// Returns the mapping models in the order of execution; throws if two of them claim the same.
  private static func chosen(from choices: [Choice]) throws(HopdError) -> [Choice] {
    var owners: [String: Choice] = [:]
    for choice in choices {
      for claim in choice.claims.sorted() {
        guard let other = owners.updateValue(choice, forKey: claim) else { continue }
        if choice.parts.contains(claim), other.parts.contains(claim) { continue }
        throw HopdError(
          .ambiguousMapping,
          "\(choices.count) mapping models match this hop: "
            + choices.map(\.mapping.path.printable).joined(separator: ", "),
          hint: "choose one with --mappings (`mappings` in the configuration), remove the others, or "
            + "set a filter in each, so that each maps some of the objects",
          reasons: [
            HopdError(
              .ambiguousMapping,
              "\(other.mapping.path.printable) and \(choice.mapping.path.printable) both map the \(claim)"
                + (other.mapping.name == choice.mapping.name ? ", and not in the same way" : ""))
          ])
      }
    }
    return choices.sorted { left, right in
      if left.entry.position != right.entry.position { return left.entry.position < right.entry.position }
      // In one folder, the files with policies run last: a policy may look up objects that the others made.
      let (first, second) = (left.mapping.hasPolicies, right.mapping.hasPolicies)
      if first != second { return second }
      return NaturalOrder.precedes(left.mapping.name, right.mapping.name)
    }
  }
}

extension ExplicitMapping {
  /// Whether any entity mapping names a policy.
  package var hasPolicies: Bool { entityMappings.contains { $0.policy != nil } }

  /// Whether both do the same. Types are bookkeeping and do not count (docs/formats/mapping-models.md, "Mapping
  /// types").
  package func isEquivalent(as other: ExplicitMapping) -> Bool {
    func withoutTypes(_ mapping: ExplicitMapping) -> [ExplicitEntityMapping] {
      mapping.entityMappings.map { entityMapping in
        var copy = entityMapping
        copy.type = .undefined
        return copy
      }
    }
    return withoutTypes(self) == withoutTypes(other)
  }
}
