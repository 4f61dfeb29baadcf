// What a check has found: per model its versions and the hops between them, per version how far it gets and why not.
// Plain values, from which every report is written.

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

/// How a version or a store fares.
package enum CheckVerdict: String, Sendable, Hashable, CaseIterable {
  /// It is the version to reach.
  case current
  /// It has the same hashes as the version to reach: its stores need no migration.
  case same
  /// Its store reached the version by all ways, and the results agree.
  case passed
  /// Its store did not get there.
  case failed
  /// No store of it was tried; the models alone say that there is a way.
  case untried
  /// A policy has no program, so nothing behind it was tried.
  case policy
  /// It comes after the version to reach.
  case later
  /// It has no entities, so no store of it holds anything.
  case empty
  /// It was left out on request.
  case skipped

  /// Does a check with it fail?
  package var isRed: Bool { self == .failed }
}

/// One way out of a finding, with what to type or to paste.
package struct Remedy: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    case renamingIdentifier = "renaming-identifier"
    case modelDefault = "default"
    case mappingModel = "mapping-model"
    case other
  }

  package let kind: Kind
  /// What it means, in a sentence without a point.
  package let title: String
  /// The text to paste; empty where there is none.
  package let text: String

  /// Makes one.
  package init(_ kind: Kind, _ title: String, text: String = "") {
    self.kind = kind
    self.title = title
    self.text = text
  }

  /// The way out where something has another name now; `text` is what to paste.
  static func renaming(_ old: String, to new: String, text: String) -> Remedy {
    Remedy(
      .renamingIdentifier, "if \(new) is \(old) under a new name, give it the renaming identifier of the old one",
      text: text)
  }
}

/// One reason why a store does not get there.
package struct CheckFinding: Sendable {
  /// Code, message and place: hop, entity, property.
  package var error: HopdError
  /// Is it met by some stores only, because of rows that others do not have?
  package var isOfRows: Bool
  /// The ways out.
  package var remedies: [Remedy]
  /// Versions whose stores it stops.
  package var stopped: [String]

  /// Makes a finding.
  package init(_ error: HopdError, isOfRows: Bool = false, remedies: [Remedy] = [], stopped: [String] = []) {
    self.error = error
    self.isOfRows = isOfRows
    self.remedies = remedies
    self.stopped = stopped
  }
}

/// What joins two versions.
package enum HopKind: String, Sendable, Hashable {
  case inferred
  case mapping
  case policy
  case missing
}

/// One step of a way.
package struct HopStep: Sendable, Hashable {
  package let source: String
  package let destination: String
  package let kind: HopKind
  /// Names of the mapping models.
  package let mappings: [String]
}

/// A hop between two versions.
package struct HopCheck: Sendable {
  package let step: HopStep
  /// Do the two follow each other?
  package let isConsecutive: Bool
  /// What it does, entity by entity.
  package let difference: ModelDifference
  /// Why it is missing.
  package let reasons: [HopdError]
  /// Did a store fail on it?
  package var isBroken = false

  /// Its title as errors name it.
  package var title: String { "\(step.source) → \(step.destination)" }
}

/// What a way drops.
package struct CheckDrop: Sendable, Hashable {
  package let hop: String
  package let entity: String
  /// nil where objects go.
  package let property: String?
  /// Values or objects of the store that was tried.
  package let count: Int64
}

/// One version.
package struct VersionCheck: Sendable {
  package let name: String
  package let position: Int
  package var verdict: CheckVerdict
  /// Why it is not tried or left out, in a phrase.
  package var note: String?
  /// The way of its stores.
  package var steps: [HopStep] = []
  /// What stops it.
  package var findings: [CheckFinding] = []
  /// What stops rows at the limits of their types, or rows that are alike where they must differ, and no everyday row.
  package var extremes: [CheckFinding] = []
  /// Remarks of the plan.
  package var warnings: [HopdError] = []
  package var drops: [CheckDrop] = []
  /// Values that the hop from this version at once keeps or drops, other than the way through the versions.
  package var directDifferences: [StoreDisagreement] = []
  /// Is there a direct hop?
  package var hasDirectHop: Bool?
  package var objects: Int64 = 0
  /// Bytes of the store that was tried.
  package var bytes: Int64 = 0
  package var seconds: Double = 0

  init(_ name: String, at position: Int, _ verdict: CheckVerdict, note: String? = nil) {
    self.name = name
    self.position = position
    self.verdict = verdict
    self.note = note
  }

  /// Notes that it failed, and what stops it.
  mutating func fail(_ findings: [CheckFinding], note: String? = nil) {
    verdict = .failed
    self.note = note ?? self.note
    self.findings = findings
  }

  /// Notes that it is not tried, and why.
  mutating func leaveUntried(_ note: String, _ warnings: [HopdError] = []) {
    verdict = .untried
    self.note = note
    self.warnings = warnings
  }
}

/// One model.
package struct ModelCheck: Sendable {
  package let name: String
  package let path: FilePath
  /// The version to reach; nil where the model does not say it.
  package let target: String?
  package let order: VersionOrder
  package var versions: [VersionCheck]
  package var hops: [HopCheck]
  /// What is wrong with the model itself.
  package var problems: [CheckFinding]
  /// Everything that stops a version, each once.
  package var findings: [CheckFinding] = []
  /// What stops no store and is perhaps not meant: renames without an identifier, a lock that lacks a version.
  package var warnings: [CheckFinding] = []
  /// What stops only rare rows, each once.
  package var extremes: [CheckFinding] = []

  package var isRed: Bool { !problems.isEmpty || versions.contains { $0.verdict.isRed } }
}

/// A store of a user.
package struct StoreCheck: Sendable {
  package let path: FilePath
  package var version: String?
  package var verdict: CheckVerdict
  package var findings: [CheckFinding] = []
  package var drops: [CheckDrop] = []
  package var objects: Int64 = 0
  package var bytes: Int64 = 0
  package var seconds: Double = 0
}

/// The whole check.
package struct CheckReport: Sendable {
  package var models: [ModelCheck]
  package var stores: [StoreCheck]
  /// Remarks on models and mapping models.
  package var warnings: [HopdError]
  package var seconds: Double = 0
  package var peakMemory: Int64 = 0

  /// Makes a report.
  package init(models: [ModelCheck], stores: [StoreCheck], warnings: [HopdError]) {
    self.models = models
    self.stores = stores
    self.warnings = warnings
  }

  /// The report of a check that was impossible: reports of an earlier run must not be taken for its own.
  package init(refusal: HopdError, of models: [FilePath]) {
    let path = models.first ?? "."
    var model = ModelCheck(
      name: models.first?.stem ?? "hopctl check", path: path, target: nil, order: .names,
      versions: [], hops: [], problems: [])
    model.problems = ([refusal].filter { $0.reasons.isEmpty } + refusal.reasons).map { reason in
      CheckFinding(refusal.reasons.isEmpty ? reason : reason.located(refusal.place))
    }
    self.init(models: [model], stores: [], warnings: [])
    self.refusal = refusal
  }

  /// Why nothing was checked; nil where it was.
  package private(set) var refusal: HopdError?

  /// Is something broken?
  package var isRed: Bool { models.contains(where: \.isRed) || stores.contains { $0.verdict.isRed } }
  /// Does something need a policy that has no program?
  package var needsPolicies: Bool {
    models.contains { $0.versions.contains { $0.verdict == .policy } } || stores.contains { $0.verdict == .policy }
  }

  /// How it ends: every version reaches the target, one does not, or policies lack their programs.
  package var status: ExitStatus { isRed ? .dataError : needsPolicies ? .configuration : .success }

  /// How it ended, in a line without times.
  package var summary: String {
    if let refusal { return "red: nothing was checked: \(refusal.message.printableLine)" }
    let versions = models.flatMap(\.versions)
    let asked = versions.filter { ![.current, .skipped, .later, .empty].contains($0.verdict) }
    let good = asked.count { [.passed, .same].contains($0.verdict) }
    // What makes it red comes first: versions that get there are no reason.
    let problems = models.reduce(0) { $0 + $1.problems.count }
    var parts = problems == 0 ? [] : ["\(problems.counted("problem")) of the model"]
    parts.append(asked.isEmpty ? nothingAsked : "\(good) of \(asked.count) versions reach the current one")
    for (verdict, words) in [(CheckVerdict.failed, "failed"), (.policy, "need a policy"), (.untried, "not tried")] {
      let count = asked.count { $0.verdict == verdict }
      if count > 0 { parts.append("\(count) \(words)") }
    }
    if !stores.isEmpty {
      parts.append("\(stores.count { [.passed, .current].contains($0.verdict) }) of \(stores.count) stores")
    }
    let warnings = models.reduce(0) { $0 + $1.warnings.count }
    if warnings > 0 { parts.append(warnings.counted("warning")) }
    return "\(isRed ? "red" : needsPolicies ? "not proven" : "green"): " + parts.joined(separator: ", ")
  }

  /// Why no version was tried.
  private var nothingAsked: String {
    let verdicts = models.flatMap { $0.versions.map(\.verdict) }
    if verdicts.contains(.later), !verdicts.contains(.skipped) {
      return "nothing to check: the current version is the oldest, and stores only go forward"
    }
    return verdicts.contains(.skipped) ? "no version was checked" : "nothing to check: there is one version only"
  }
}
