// The mapping models at hand, and which of them serve which pair of versions. Choosing never follows the order of a
// folder: where two claim the same entities of the same hop, the user decides (docs/formats/mapping-models.md,
// "Choosing a mapping").

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// All mapping models that were given.
package struct MappingCatalog: Sendable {
  /// A mapping model, and which of the given paths it was found at.
  struct Entry: Sendable {
    let file: any MappingFile
    let position: Int
  }

  let entries: [Entry]
  /// Mapping models of a folder that cannot be read. Each may be for any hop, so nothing should be inferred while there
  /// are any.
  package let unreadable: [HopdError]
  /// The stages that files among them declare, in the order of the files.
  package let stages: [DeclaredStage]

  /// The mapping models in the order they were given.
  package var files: [any MappingFile] { entries.map(\.file) }
  /// Are there none?
  package var isEmpty: Bool { entries.isEmpty && unreadable.isEmpty }

  /// A catalog without mapping models.
  package static let empty = MappingCatalog(files: [])

  /// A catalog of mapping models that were read, in the order of execution that was asked for.
  package init(files: [any MappingFile]) {
    self.init(
      entries: files.enumerated().map { Entry(file: $0.element, position: $0.offset) }, unreadable: [], stages: [])
  }

  private init(entries: [Entry], unreadable: [HopdError], stages: [DeclaredStage]) {
    (self.entries, self.unreadable, self.stages) = (entries, unreadable, stages)
  }

  /// Reads mapping models, and folders that are searched for them.
  ///
  /// One that is named must be readable; one that a folder merely holds becomes one of `unreadable`. Files of stages
  /// must be readable wherever they are: without them hooks would be left out, and no row would show it.
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

  /// The stages that files at or below these paths declare; nothing else is read.
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

  /// What serves which pair of `versions`, which are those of one model, oldest first.
  package func hops(among versions: [MappableVersion]) -> MappingHops { MappingHops(entries, versions) }
}

/// The hops among the versions of one model that mapping models serve.
package struct MappingHops: Sendable {
  /// A pair of versions, by index.
  package struct Pair: Sendable, Hashable {
    package let source: Int
    package let destination: Int

    /// Makes a pair.
    package init(source: Int, destination: Int) {
      self.source = source
      self.destination = destination
    }
  }

  /// A hop that can be followed.
  package struct Served: Sendable {
    package let hop: MappedHop
    /// Remarks: what the readers left out, and names of models that differ.
    package let warnings: [HopdError]
  }

  /// The pairs that mapping models serve, by source, then destination.
  package let pairs: [Pair]
  /// Mapping models that serve no pair but were nearly made for one: what differs, by entity, with both hashes.
  package var stale: [HopdError] { misfits.map(\.error) }
  /// The same with the pair that each was nearly made for.
  package let misfits: [MappingMisfit]

  private let versions: [MappableVersion]
  private let candidates: [Pair: [Candidate]]

  /// A mapping model that fits a pair.
  private struct Candidate: Sendable {
    let entry: MappingCatalog.Entry
    let remarks: [HopdError]
    /// Source entities that it takes; what it names besides is dead.
    let sources: Set<String>
    /// Do only some of its entity mappings fit?
    var isPartial = false
  }

  init(_ entries: [MappingCatalog.Entry], _ versions: [MappableVersion]) {
    self.versions = versions
    var candidates: [Pair: [Candidate]] = [:]
    var served: [[Pair]] = []
    var misfits: [MappingMisfit] = []
    for entry in entries {
      let sources = MappingSide(versions, entry.file.fit(source:))
      let destinations = MappingSide(versions, entry.file.fit(destination:))
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
      if pairs.isEmpty, let misfit = MappingMisfit(entry.file, sources, destinations) { misfits.append(misfit) }
    }
    candidates = candidates.mapValues(Self.withoutOvertaken)
    // A compiled mapping model of a few entities fits every pair that agrees on them (1 to 20 of 20 pairs, M): it
    // serves those of which, together with the others there, it leaves nothing unmapped, if there are such.
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
    pairs = candidates.keys.sorted { ($0.source, $0.destination) < ($1.source, $1.destination) }
  }

  /// Paths of the mapping models that fit a pair, before anything is chosen among them.
  package func files(for pair: Pair) -> [FilePath] { (candidates[pair] ?? []).map(\.entry.file.path) }

  /// The hop from one version to another, checked against both; nil where no mapping model serves the pair.
  ///
  /// Throws `mapping-ambiguous` with the candidates, `mapping-stale` with every name that leads nowhere, or
  /// `mapping-invalid` with everything that is not supported.
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

  /// The models of a pair.
  package func models(of pair: Pair) -> (source: ManagedObjectModel, destination: ManagedObjectModel) {
    (versions[pair.source].model, versions[pair.destination].model)
  }

  /// What is to be said of a pair because its versions were found by name only.
  package func remarks(on pair: Pair) -> [HopdError] { (candidates[pair] ?? []).flatMap(\.remarks) }

  /// All mapping models that fit a pair, each with the others beside it, unchecked.
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

  // MARK: Choosing

  private struct Choice {
    let entry: MappingCatalog.Entry
    let mapping: ExplicitMapping
    /// What it says how to make: at most one mapping model of a hop may do so.
    let claims: Set<String>
    /// Those of them that it makes by filters only: others may take the rest of the objects. That no object is taken
    /// twice is seen at the rows.
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

  /// Each content once: a source and what was compiled of it are one, and so are two copies.
  private static func withoutTwins(_ choices: [Choice]) -> [Choice] {
    var kept: [Choice] = []
    for choice in choices {
      if let index = kept.firstIndex(where: { $0.mapping.isEquivalent(as: choice.mapping) }) {
        // What Apple's compiler made stands for both; its place in the order is that of the first.
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

  /// Versions of equal hashes are one version with several names, so mapping models for each of them fit one hop: where
  /// they claim the same, those that name the hop's very versions go before those that name the others.
  private func meant(of choices: [Choice], _ pair: Pair) -> (choices: [Choice], remarks: [HopdError]) {
    let named = choices.filter { isNamed(by: $0.entry.file, pair) == true }
    guard !named.isEmpty, named.count < choices.count else { return (choices, []) }
    let claims = Set(named.flatMap(\.claims))
    var remarks: [HopdError] = []
    let kept = choices.filter { choice in
      // One that names no versions may be meant for these.
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

  /// Does a mapping model name both versions of a pair, in its content or, where that has hashes only, in its own name?
  /// nil where it names no versions at all.
  private func isNamed(by file: any MappingFile, _ pair: Pair) -> Bool? {
    let (source, destination) = (versions[pair.source], versions[pair.destination])
    if file.form != .compiled {
      guard case .exact = file.fit(source: source), case .exact = file.fit(destination: destination) else {
        return false
      }
      return true
    }
    func names(_ first: MappableVersion, _ second: MappableVersion) -> Bool {
      NaturalOrder.names(file.name, first.model.name, before: second.model.name)
    }
    if names(source, destination) { return true }
    let sources = versions.filter { $0.hashes == source.hashes }
    let destinations = versions.filter { $0.hashes == destination.hashes }
    return sources.contains { first in destinations.contains { names(first, $0) } } ? false : nil
  }

  /// Why nothing of the mapping models can be followed; nil where something can.
  private static func deathOfAll(_ choices: [Choice]) -> HopdError? {
    let mappings = choices.flatMap(\.mapping.entityMappings)
    guard !mappings.isEmpty, mappings.allSatisfy({ $0.deadness != nil }) else { return nil }
    return HopdError(
      .staleMapping, "no entity mapping has an effect between these versions",
      at: Place(file: choices.first?.mapping.path),
      hint: "open the mapping model in Xcode with these versions of the model, correct it and save it",
      reasons: mappings.prefix(MappingLimits.findings).compactMap { $0.deathNotice(at: choices[0].mapping.path) })
  }

  /// A pair is served by some entity mappings of a model that fits none as a whole, where these join two states of an
  /// entity: the pairs of which it has the most (docs/formats/mapping-models.md, "Choosing a mapping").
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

  /// What fits as a whole goes before what fits in part and takes the same entities.
  private static func withoutOvertaken(_ candidates: [Candidate]) -> [Candidate] {
    let whole = Set(candidates.filter { !$0.isPartial }.flatMap(\.sources))
    return candidates.filter { !$0.isPartial || $0.sources.isDisjoint(with: whole) }
  }

  /// Do the mapping models together map every concrete entity that both versions have?
  private static func isComplete(
    _ candidates: [Candidate], _ source: MappableVersion, _ destination: MappableVersion
  ) -> Bool {
    let mapped = Set(candidates.flatMap(\.sources))
    let kept = Set(destination.model.entities.map(\.renamingIdentifier) + destination.model.entities.map(\.name))
    return source.model.entities.allSatisfy { $0.isAbstract || !kept.contains($0.name) || mapped.contains($0.name) }
  }

  /// The mapping models in the order of execution; throws where two of them claim the same.
  private static func chosen(from choices: [Choice]) throws(HopdError) -> [Choice] {
    var owners: [String: Choice] = [:]
    for choice in choices {
      for claim in choice.claims.sorted() {
        guard let other = owners.updateValue(choice, forKey: claim) else { continue }
        if choice.parts.contains(claim), other.parts.contains(claim) { continue }
        throw HopdError(
          .ambiguousMapping,
          "\(choices.count) mapping models serve this hop, and nothing says which is meant: "
            + choices.map(\.mapping.path.printable).joined(separator: ", "),
          hint: "name the one that is meant with --mappings (`mappings` in the configuration), remove the others, or "
            + "give each a filter, so that each takes a part of the objects",
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
      // In one folder: a part with policies may look for objects that the other parts made.
      let (first, second) = (left.mapping.hasPolicies, right.mapping.hasPolicies)
      if first != second { return second }
      return NaturalOrder.precedes(left.mapping.name, right.mapping.name)
    }
  }
}

extension ExplicitMapping {
  /// Does any entity mapping name a policy?
  package var hasPolicies: Bool { entityMappings.contains { $0.policy != nil } }

  /// Do both do the same? Types are bookkeeping and do not count (docs/formats/mapping-models.md, "Mapping types").
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
