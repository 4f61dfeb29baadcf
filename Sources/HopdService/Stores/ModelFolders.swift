// The folders of models, which are watched like those of stores: when their files have been quiet for a while, they are
// read again. Pure but for the reading itself, which blocks.

import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import StoreWatching
import SystemPackage

/// What is to be done about the models of each watch.
struct ModelFolders: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// What a look at the models of a watch has found.
  enum Finding: Sendable {
    /// What is in force, with the times of now.
    case same(WatchModels?)
    /// Other models, or other mapping models.
    case changed(WatchModels)
    /// They cannot be read; `mark` says which files these are.
    case broken(HopdError, mark: ModelsMark)
    /// They changed while they were read.
    case moving
  }

  private struct Watch {
    /// When to look.
    var due: Instant?
    /// Files that could not be read, and whether that was told: they may be half of what somebody is writing.
    var broken: (mark: ModelsMark, isTold: Bool)?
    var isLooking = false
  }

  private var watches: [String: Watch] = [:]

  // MARK: Names for the watcher

  private static let mark = "\u{1f}models\u{1f}"

  /// The folders of a watch for the watcher; the files in them that count are those of models.
  static func directories(of watch: Configuration.Watch) -> [WatchedDirectory] {
    Set(watch.models + watch.mappings).sorted { $0.string < $1.string }.enumerated().map { index, path in
      // A path may be a folder or a file; which one is it, when it is there again? Its name says so.
      let isFile = ["mom", "cdm", "toml"].contains(path.extension ?? "")
      var directory = WatchedDirectory(
        name: "\(index)\(mark)\(watch.name)", path: isFile ? path.removingLastComponent() : path,
        include: isFile ? path.lastComponent.map { [Glob($0.string)] } ?? [] : ModelsMark.patterns.map { Glob($0) },
        recursive: !isFile, settle: watch.settle, rescan: watch.rescan)
      directory.takesEverything = true
      return directory
    }
  }

  /// The watch to whose models an event belongs; nil for events of stores.
  static func watch(of event: WatchEvent) -> String? {
    guard let name = event.watch, let range = name.firstRange(of: mark) else { return nil }
    return String(name[range.upperBound...])
  }

  // MARK: When

  /// Something happened there: it is looked at when nothing has happened for `quiet`.
  mutating func touched(_ watch: String, quiet: Duration, now: Instant) {
    watches[watch, default: Watch()].due = now.advanced(by: quiet)
  }

  /// Forgets what is due: everything was read a moment ago.
  mutating func forgetAll() { watches = [:] }

  /// When the next look is due.
  var nextDue: Instant? { watches.values.filter { !$0.isLooking }.compactMap(\.due).min() }

  /// Watches whose look is due; they count as looked at until `looked`.
  mutating func takeDue(now: Instant) -> [String] {
    let due = watches.filter { !$0.value.isLooking && $0.value.due.map { $0 <= now } == true }.keys.sorted()
    for watch in due {
      watches[watch]?.due = nil
      watches[watch]?.isLooking = true
    }
    return due
  }

  /// A look has ended; the answer says whether a failure is to be told now.
  mutating func looked(_ watch: String, _ finding: Finding, quiet: Duration, now: Instant) -> Bool {
    var known = watches[watch] ?? Watch()
    defer { watches[watch] = known }
    known.isLooking = false
    switch finding {
    case .same, .changed: known.broken = nil
    case .moving: known.due = known.due ?? now.advanced(by: quiet)
    case .broken(_, let mark):
      guard let before = known.broken, before.mark.content == mark.content else {
        // Files that are written slowly get a second chance before an error is reported.
        known.broken = (mark, false)
        known.due = known.due ?? now.advanced(by: quiet * 2)
        return false
      }
      if before.isTold { return false }
      known.broken = (mark, true)
      return true
    }
    return false
  }

  /// Looks at the models of a watch; `inForce` are those that the watch has.
  static func look(at watch: Configuration.Watch, inForce: WatchModels) -> Finding {
    if ModelsMark.times(of: watch) == inForce.mark.times { return .same(nil) }
    let mark = ModelsMark(of: watch)
    if mark.content == inForce.mark.content {
      var same = inForce
      same.mark = mark
      return .same(same)
    }
    do throws(HopdError) {
      let models = try WatchModels.load(watch)
      guard ModelsMark.times(of: watch) == models.mark.times else { return .moving }
      // A version that cannot be read is left out when hopd starts; here it may be one that somebody is still writing.
      if let new = models.unread.subtracting(inForce.unread).sorted().first {
        return .broken(
          HopdError(.invalidModel, "a model or a version of it cannot be read: \(new)"), mark: models.mark)
      }
      return .changed(models)
    } catch {
      return .broken(error, mark: mark)
    }
  }
}
