// Settles forms that are not proven: what each could be is tried until the hashes of the model are those that SwiftData
// wrote. The hash of one entity is enough for the forms that it has; a value over all hashes settles those of all.

import Diagnostics
import ManagedObjectModel
import PropertyLists

/// What was found out about the unproven forms of a source.
package struct Calibration: Sendable {
  /// How much of a version is known by its hashes.
  package struct Fit: Sendable {
    /// The name of the version.
    package let version: String
    /// The number of its entities whose hashes are known, of all.
    package let equal: Int
    package let all: Int

    package var isWhole: Bool { equal == all }
  }

  /// A form on which the hashes do not decide.
  package struct OpenForm: Sendable {
    package let form: UnprovenForm
    package let places: [Place]
    /// The model of one of the readings: tables and columns are those of all.
    package let model: ManagedObjectModel
  }

  /// The source of a release, or of the folder.
  package struct Source: Sendable {
    /// The tag of the release; nil for the folder.
    package let tag: String?
    package let target: SourceTarget

    package init(tag: String? = nil, target: SourceTarget) {
      self.tag = tag
      self.target = target
    }
  }

  /// The versions of which at least one hash is known, newest first.
  package private(set) var fits: [Fit] = []
  /// What is known now, with what was known before.
  package private(set) var found: CalibratedForms
  /// What stays unproven.
  package private(set) var open: [OpenForm] = []

  /// The maximum number of models that are tried for a version.
  private static let most = 20_000

  /// Tries all readings of the unproven forms in all versions; `calibrated` is what is known already.
  package static func find(
    _ known: PinnedHashes, in sources: [Source], schema: String?, calibrated: CalibratedForms
  ) throws(HopdError) -> Calibration {
    var trials: [Trial] = []
    var failure: HopdError?
    for source in sources {
      do throws(HopdError) {
        let versions = try VersionSearch(source.target, calibrated: calibrated).versions(schema: schema).versions
        for version in versions {
          guard let trial = try Trial(version, source, known, calibrated) else { continue }
          trials.append(trial)
        }
      } catch {
        // A release without models, or with an unreadable plan, is none of several.
        guard sources.count > 1 else { throw error }
        failure = error
      }
    }
    if trials.isEmpty, let failure { throw failure }
    var result = Calibration(found: calibrated)
    let explained = Set(trials.flatMap(\.explained))
    for trial in trials.reversed() { try result.settle(by: trial, explained, known) }
    for trial in trials.reversed() { result.note(trial) }
    return result
  }

  private init(found: CalibratedForms) { self.found = found }

  // MARK: Test runs

  /// One way to read the unproven forms of a version.
  private struct Reading {
    let forms: CalibratedForms
    /// The hashes that are known, by entity; that of the whole version has an empty name.
    let matched: [String: VersionHash]
    /// Where a value over all hashes is written.
    let whole: String?
    /// The number of all entities.
    let entities: Int

    var equal: Int { matched.keys.count { !$0.isEmpty } }
  }

  /// All ways to read a version.
  private struct Trial {
    let name: String
    var readings: [Reading] = []
    var model: ManagedObjectModel?
    var forms: [UnprovenForm: [Place]] = [:]

    /// Derives the model under every combination of the forms that it has; nil if the version has no model.
    init?(
      _ version: SourceVersion, _ source: Source, _ known: PinnedHashes, _ start: CalibratedForms
    ) throws(HopdError) {
      guard case .success(let roots) = version.models else { return nil }
      name = source.tag.map { "\(version.name) of \($0)" } ?? version.name
      var open = [start]
      var tried = 0
      while let forms = open.popLast() {
        tried += 1
        guard tried <= most else {
          throw HopdError(
            .sourceUnclear, "\(name) has too many unproven forms to try them all", at: version.place,
            hint: "pass fewer classes: --schema A,B")
        }
        let derived = ModelDerivation.derive(
          roots, of: source.target, name: version.name, identifiers: [version.identifier], calibrated: forms)
        self.forms.merge(derived.forms) { first, _ in first }
        if let model = derived.model {
          if self.model == nil { self.model = model }
          readings.append(Self.reading(model, forms, known))
          continue
        }
        let unsettled = derived.forms.keys.filter { forms.found[$0.name] == nil }
        // A form without alternatives, or another refusal, stays.
        guard let form = unsettled.filter({ !$0.alternatives.isEmpty }).min(by: { $0.name < $1.name }) else { continue }
        for alternative in form.alternatives.reversed() {
          var next = forms
          next.found[form.name] = alternative
          open.append(next)
        }
      }
    }

    private static func reading(
      _ model: ManagedObjectModel, _ forms: CalibratedForms, _ known: PinnedHashes
    ) -> Reading {
      var matched = model.versionHashes.filter { known.place(of: $0.value) != nil }
      let whole = known.place(of: model)
      if whole != nil { matched[""] = Base64.decode(model.versionChecksum.utf8).flatMap { VersionHash(bytes: $0) } }
      return Reading(forms: forms, matched: matched, whole: whole, entities: model.entities.count)
    }

    /// The known hashes that this version has whatever its forms are. If another version has one of them only under
    /// some reading of a form, that does not prove the reading: a property was an array once, say, and is Data now.
    var explained: [VersionHash] {
      guard let first = readings.first else { return [] }
      return first.matched.filter { name, hash in readings.allSatisfy { $0.matched[name] == hash } }.map(\.value)
    }
  }

  // MARK: Decisions

  private mutating func settle(
    by trial: Trial, _ explained: Set<VersionHash>, _ known: PinnedHashes
  ) throws(HopdError) {
    let possible = readings(of: trial)
    var fitting = possible
    var evidence: [String: Set<VersionHash>] = [:]
    for entity in Set(possible.flatMap(\.matched.keys)).sorted() {
      let hashes = Set(possible.compactMap { $0.matched[entity] })
      guard hashes.isDisjoint(with: explained) else { continue }
      fitting = fitting.filter { $0.matched[entity] != nil }
      evidence[entity] = hashes
    }
    guard let first = fitting.first else {
      guard possible.isEmpty else {
        throw HopdError(
          .sourceUnclear, "the known hashes contradict each other: no reading of \(trial.name) gives all of them",
          hint: "pass hashes of one app only")
      }
      return
    }
    // Forms on which the hashes do not decide stay unknown.
    for (name, value) in first.forms.found where found.found[name] == nil {
      guard fitting.allSatisfy({ $0.forms.found[name] == value }) else { continue }
      let deciding = evidence.filter { entity, _ in
        possible.allSatisfy { $0.matched[entity] == nil || $0.forms.found[name] == value }
      }
      guard !deciding.isEmpty else { continue }
      found.found[name] = value
      let place = deciding[""] != nil ? first.whole : nil
      found.evidence[name] = Self.words(deciding, place, trial, known)
    }
  }

  /// The readings of a trial that agree with what was found.
  private func readings(of trial: Trial) -> [Reading] {
    trial.readings.filter { reading in
      reading.forms.found.allSatisfy { found.found[$0.key] == nil || found.found[$0.key] == $0.value }
    }
  }

  private static func words(
    _ deciding: [String: Set<VersionHash>], _ whole: String?, _ trial: Trial, _ known: PinnedHashes
  ) -> String {
    if let whole { return "the version hashes of \(whole), version \(trial.name)" }
    let names = deciding.keys.filter { !$0.isEmpty }.sorted()
    let place = names.first.flatMap { deciding[$0]?.first }.flatMap { known.place(of: $0) }
    let more = names.count > 3 ? " and \(names.count - 3) more" : ""
    return "the version hash of \(names.prefix(3).joined(separator: ", "))\(more)"
      + (place.map { " in \($0)" } ?? "") + ", version \(trial.name)"
  }

  /// Notes how well a version fits, and which forms it leaves open.
  private mutating func note(_ trial: Trial) {
    let readings = readings(of: trial)
    func rank(_ reading: Reading) -> Int { reading.whole == nil ? reading.equal : reading.entities }
    if let best = readings.max(by: { rank($0) < rank($1) }), rank(best) > 0 {
      fits.append(Fit(version: trial.name, equal: rank(best), all: best.entities))
    }
    for (form, places) in trial.forms.sorted(by: { $0.key.name < $1.key.name })
    where found.found[form.name] == nil && !form.alternatives.isEmpty {
      guard let model = trial.model, !open.contains(where: { $0.form == form }) else { continue }
      open.append(OpenForm(form: form, places: places, model: model))
    }
  }

  /// Takes what rows show about an open form.
  package mutating func settle(_ form: UnprovenForm, as alternative: String, evidence: String) {
    guard form.alternatives.contains(alternative), found.found[form.name] == nil else { return }
    found.found[form.name] = alternative
    found.evidence[form.name] = evidence
    open.removeAll { $0.form == form }
  }
}
