// The results of a check: for each model its versions and the hops between them, for each version how far it gets and
// why not further. Plain values, from which every report is written.

import Diagnostics
import ManagedObjectModel
import MappingModel
import SystemPackage

/// The result for a version or a store.
package enum CheckVerdict: String, Sendable, Hashable, CaseIterable {
  /// It is the target version.
  case current
  /// It has the same hashes as the target version: its stores need no migration.
  case same
  /// Its store reached the target at once and hop by hop, and the results agree.
  case passed
  /// Its store did not reach the target.
  case failed
  /// No store of it was tried; according to the models there is a chain.
  case untested
  /// A policy has no program, so nothing after it was tried.
  case policy
  /// It comes after the target version.
  case later
  /// It has no entities, so its stores hold no objects.
  case empty
  /// It was left out on request.
  case skipped

  /// Whether a check with this result fails.
  package var isRed: Bool { self == .failed }
}

/// One remedy for a finding, with the text to type or to paste.
package struct Remedy: Sendable, Hashable {
  package enum Kind: String, Sendable, Hashable {
    case renamingIdentifier = "renaming-identifier"
    case modelDefault = "default"
    case mappingModel = "mapping-model"
    case other
  }

  package let kind: Kind
  /// Its meaning, as a sentence without a full stop.
  package let title: String
  /// The text to paste; empty if there is none.
  package let text: String

  /// Creates a remedy.
  package init(_ kind: Kind, _ title: String, text: String = "") {
    self.kind = kind
    self.title = title
    self.text = text
  }

  /// Returns the remedy for a rename; `text` is the text to paste.
  static func renaming(_ old: String, to new: String, text: String) -> Remedy {
    Remedy(
      .renamingIdentifier, "if \(old) was renamed to \(new), set its renaming identifier",
      text: text)
  }
}

/// One reason why a store does not reach the target.
package struct CheckFinding: Sendable {
  /// Code, message and place: hop, entity, property.
  package var error: HopdError
  /// Whether it affects only some stores, because of rows that others do not have.
  package var isOfRows: Bool
  /// The remedies.
  package var remedies: [Remedy]
  /// Versions whose stores cannot be migrated because of it.
  package var stopped: [String]

  /// Creates a finding.
  package init(_ error: HopdError, isOfRows: Bool = false, remedies: [Remedy] = [], stopped: [String] = []) {
    self.error = error
    self.isOfRows = isOfRows
    self.remedies = remedies
    self.stopped = stopped
  }
}

/// The kind of a hop between two versions.
package enum HopKind: String, Sendable, Hashable {
  case inferred
  case mapping
  case policy
  case missing
}

/// One hop of a chain.
package struct HopStep: Sendable, Hashable {
  package let source: String
  package let destination: String
  package let kind: HopKind
  /// Names of the mapping models.
  package let mappings: [String]

  /// Its title in errors.
  package var title: String { "\(source) → \(destination)" }
}

/// A hop between two versions.
package struct HopCheck: Sendable {
  package let step: HopStep
  /// Whether the two versions are consecutive.
  package let isConsecutive: Bool
  /// Its effects, entity by entity.
  package let difference: ModelDifference
  /// The reasons why it is missing.
  package let reasons: [HopdError]
  /// Whether a store failed on it.
  package var isBroken = false

  /// Its title in errors.
  package var title: String { step.title }
}

/// An entity or a property that a chain drops.
package struct CheckDrop: Sendable, Hashable {
  package let hop: String
  /// Names in the version that the hop begins with; no property if the entity goes with all its rows.
  package let entity: String
  package let property: String?
  /// Values or objects of the store that was tried; nil if none was.
  package var count: Int64?
  /// Whether the lock says that they may go.
  package var isAllowed = false

  /// The name of the part: "Book.shelfMark".
  package var part: String { [entity, property].compactMap(\.self).joined(separator: ".") }
  /// The same for readers: "Customer (all rows)".
  package var words: String { part + (property == nil ? " (all rows)" : "") + (isAllowed ? " (allowed)" : "") }
}

extension [CheckDrop] {
  /// The parts for readers, each once: "Customer (all rows), Book.shelfMark".
  package var words: String {
    var known: Set<String> = []
    return map(\.words).filter { known.insert($0).inserted }.joined(separator: ", ")
  }
}

/// One version.
package struct VersionCheck: Sendable {
  package let name: String
  package let position: Int
  package var verdict: CheckVerdict
  /// Why it is untested or skipped, as a phrase.
  package var note: String?
  /// The tags whose releases have this version.
  package var tags: [String] = []
  /// The chain of its stores.
  package var steps: [HopStep] = []
  /// The reasons why it fails.
  package var findings: [CheckFinding] = []
  /// Findings about rows at the limits of their types, or equal rows where they must differ, that affect no everyday
  /// row.
  package var extremes: [CheckFinding] = []
  /// Remarks of the plan.
  package var warnings: [HopdError] = []
  /// What its chain drops according to the models.
  package var drops: [CheckDrop] = []
  /// Values on which one direct hop from this version and the chain through the versions disagree.
  package var directDifferences: [StoreDisagreement] = []
  /// Whether there is a direct hop.
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

  /// Records that it failed, with the reasons.
  mutating func fail(_ findings: [CheckFinding], note: String? = nil) {
    verdict = .failed
    self.note = note ?? self.note
    self.findings = findings
  }

  /// Records that it is untested, and why.
  mutating func leaveUntried(_ note: String, _ warnings: [HopdError] = []) {
    verdict = .untested
    self.note = note
    self.warnings = warnings
  }
}

/// One model.
package struct ModelCheck: Sendable {
  package let name: String
  package let path: FilePath
  /// The target version; nil if the model does not mark one.
  package let target: String?
  package let order: VersionOrder
  package var versions: [VersionCheck]
  package var hops: [HopCheck]
  /// Mistakes in the model itself.
  package var problems: [CheckFinding]
  /// All findings that stop a version, without duplicates.
  package var findings: [CheckFinding] = []
  /// Findings that stop no store but may be unintended: renames without an identifier, a lock that lacks a version.
  package var warnings: [CheckFinding] = []
  /// The drops that the lock does not allow, each once; with `--fail-on-drop` they are problems instead.
  package var drops: [CheckFinding] = []
  /// Findings that stop only rare rows, without duplicates.
  package var extremes: [CheckFinding] = []
  /// Where the models come from; nil unless they were derived from source.
  package var origin: ModelOrigin?

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

  /// Creates a report.
  package init(models: [ModelCheck], stores: [StoreCheck], warnings: [HopdError]) {
    self.models = models
    self.stores = stores
    self.warnings = warnings
  }

  /// The report of a check that was impossible; without it, the reports of an earlier run could be mistaken for its
  /// own.
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

  /// Why nothing was checked; nil if the check ran.
  package private(set) var refusal: HopdError?

  /// Whether the check found something broken.
  package var isRed: Bool { models.contains(where: \.isRed) || stores.contains { $0.verdict.isRed } }
  /// Whether something needs a policy that has no program.
  package var needsPolicies: Bool {
    models.contains { $0.versions.contains { $0.verdict == .policy } } || stores.contains { $0.verdict == .policy }
  }

  /// Whether no store of a version that was asked for reached the target, though nothing is red.
  package var provesNothing: Bool { !isRed && !asked.isEmpty && good == 0 }

  /// The versions of which a store was to be tried.
  private var asked: [VersionCheck] {
    models.flatMap(\.versions).filter { ![.current, .skipped, .later, .empty].contains($0.verdict) }
  }

  /// The number of these whose stores are at the target.
  private var good: Int { asked.count { [.passed, .same].contains($0.verdict) } }

  /// The exit status: every version reaches the target, one does not, or policies lack their programs.
  package var status: ExitStatus { isRed ? .dataError : needsPolicies ? .configuration : .success }

  /// The result in one line, without times.
  package var summary: String {
    if let refusal { return "red: nothing checked: \(refusal.message.printableLine)" }
    let (asked, good) = (self.asked, self.good)
    // The reason for a red result comes first, before the number of versions that reach the target.
    let problems = models.reduce(0) { $0 + $1.problems.count }
    var parts = problems == 0 ? [] : ["\(problems.counted("problem")) of the model"]
    parts.append(asked.isEmpty ? nothingAsked : "\(good) of \(asked.count) versions reach the current one")
    for (verdict, words) in [(CheckVerdict.failed, "failed"), (.policy, "need a policy"), (.untested, "untested")] {
      let count = asked.count { $0.verdict == verdict }
      if count > 0 { parts.append("\(count) \(words)") }
    }
    if !stores.isEmpty {
      let good = stores.count { [.passed, .current].contains($0.verdict) }
      parts.append("\(good.grouped) of \(stores.count.grouped) stores")
    }
    let warnings = models.reduce(0) { $0 + $1.warnings.count }
    if warnings > 0 { parts.append(warnings.counted("warning")) }
    let drops = models.reduce(0) { $0 + $1.drops.count }
    if drops > 0 { parts.append(drops.counted("drop")) }
    let result = isRed ? "red" : needsPolicies || provesNothing ? "not proven" : "green"
    return "\(result): " + parts.joined(separator: ", ")
  }

  /// Why no version was tried.
  private var nothingAsked: String {
    let verdicts = models.flatMap { $0.versions.map(\.verdict) }
    if verdicts.contains(.later), !verdicts.contains(.skipped) {
      return "nothing to check: the current version is the oldest, and stores only go forward"
    }
    return verdicts.contains(.skipped) ? "no version was checked" : "nothing to check: only one version"
  }
}
