// Watches the folders of models like those of stores, to read the models again when their files have been quiet for a
// while. Pure except for `inspect`, which reads files and blocks.

import ConfigurationInspection
import Diagnostics
import HopdConfiguration
import ManagedObjectModel
import StoreWatching
import SystemPackage

/// The pending inspections of the models of each watch.
struct ModelFolders: Sendable {
  typealias Instant = ContinuousClock.Instant

  /// The result of an inspection of a watch's models.
  enum Finding: Sendable {
    /// The models in force; with a value, their files have new times.
    case same(WatchModels?)
    /// Other models, or other mapping models.
    case changed(WatchModels)
    /// The models cannot be read; `mark` identifies their files.
    case broken(HopdError, mark: ModelsMark)
    /// The models changed while they were read.
    case moving
  }

  private struct Watch {
    /// Time of the next inspection.
    var due: Instant?
    /// Files that could not be read, and whether that was reported: another program may still be writing them.
    var broken: (mark: ModelsMark, isReported: Bool)?
    var isInspecting = false
  }

  private var watches: [String: Watch] = [:]

  // MARK: Names for the watcher

  private static let mark = "\u{1f}models\u{1f}"

  /// The model folders of a watch, for the watcher; only files of models count in them.
  static func directories(of watch: Configuration.Watch) -> [WatchedDirectory] {
    Set(watch.models + watch.mappings).sorted { $0.string < $1.string }.enumerated().map { index, path in
      // A path may be a folder or a file. The name decides, because the file may not exist now.
      let isFile = ["mom", "cdm", "toml"].contains(path.extension ?? "")
      var directory = WatchedDirectory(
        name: "\(index)\(mark)\(watch.name)",
        // A link to the models in force may be set anew at any time.
        root: WatchRoot(isFile ? path.removingLastComponent() : path, isFixed: false),
        include: isFile ? path.lastComponent.map { [Glob($0.string)] } ?? [] : ModelsMark.patterns.map { Glob($0) },
        recursive: !isFile, settle: watch.settle, rescan: watch.rescan)
      directory.takesEverything = true
      return directory
    }
  }

  /// The watch whose models an event refers to; nil for events of stores.
  static func watch(of event: WatchEvent) -> String? {
    guard let name = event.watch, let range = name.firstRange(of: mark) else { return nil }
    return String(name[range.upperBound...])
  }

  // MARK: Timing

  /// Notes a change of the models: they are inspected when nothing has changed for `quiet`.
  mutating func touched(_ watch: String, quiet: Duration, now: Instant) {
    watches[watch, default: Watch()].due = now.advanced(by: quiet)
  }

  /// Forgets pending inspections, because everything was just read.
  mutating func forgetAll() { watches = [:] }

  /// When the next inspection is due.
  var nextDue: Instant? { watches.values.filter { !$0.isInspecting }.compactMap(\.due).min() }

  /// Returns the watches whose inspection is due, and marks them as being inspected until `inspected`.
  mutating func takeDue(now: Instant) -> [String] {
    let due = watches.filter { !$0.value.isInspecting && $0.value.due.map { $0 <= now } == true }.keys.sorted()
    for watch in due {
      watches[watch]?.due = nil
      watches[watch]?.isInspecting = true
    }
    return due
  }

  /// Takes in the result of an inspection; true if its failure is to be reported now.
  mutating func inspected(_ watch: String, _ finding: Finding, quiet: Duration, now: Instant) -> Bool {
    var known = watches[watch] ?? Watch()
    defer { watches[watch] = known }
    known.isInspecting = false
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
      if before.isReported { return false }
      known.broken = (mark, true)
      return true
    }
    return false
  }

  /// Inspects the models of a watch; `inForce` are its current ones.
  static func inspect(_ watch: Configuration.Watch, inForce: WatchModels) -> Finding {
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
      // A start leaves out a version that cannot be read; here another program may still be writing it.
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
