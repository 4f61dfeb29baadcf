import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import MigrationChecking
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl release STORE|WATCH|--group NAME`.
struct ReleaseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Lets hopd migrate restored stores again.",
    discussion: """
      hopctl restore pins a store to its version. This command removes the pin and changes nothing else. hopd migrates \
      the store after its next rescan, or at once after hopctl retry STORE. The name of a watch or a folder means the \
      stores in it that hopctl restore --watch pinned.
      """)

  @Argument(
    help: ArgumentHelp("A store; or a watch or folder, for all stores restored as a set.", valueName: "store"),
    completion: .file())
  var name: String?

  @Option(help: ArgumentHelp("All stores of this group.", valueName: "name"))
  var group: String?

  @Option(
    help: "The configuration file with the watches, instead of the installed ones.",
    completion: .file(extensions: ["toml"]))
  var config: String?

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if name == nil, group == nil { throw ValidationError("Give a store, a watch, or --group.") }
  }

  func execute() throws {
    if let name, group == nil, try !isSet(name) { return try release(name) }
    try releaseGroups()
  }

  /// Whether a name is that of a folder or of a watch, rather than of a store.
  private func isSet(_ name: String) throws -> Bool {
    switch try? LinuxFileSystem().status(FilePath(name).resolved())?.kind {
    case .directory: return true
    case .some: return false
    case nil: return try !name.contains("/") && loaded().watch(named: name) != nil
    }
  }

  private func loaded() throws -> Configuration {
    guard let config else { return try ConfigurationLoader().load().configuration }
    return try ConfigurationLoader.load(file: FilePath(config).resolved()).configuration
  }

  private func release(_ name: String) throws {
    let location = try StoreArgument.location(of: name)
    let pins = PinStore(location: location, files: LinuxFileSystem())
    var pin: RestorePin?
    do { pin = try pins.read() } catch let error as HopdError where error.code == .recordUnreadable {
      output.warn([error])
    }
    let released = try pins.remove()
    let text = FilePath(name).printable
    try output.line(
      released
        ? "released \(text)" + (pin.map { ": it was \($0.account)" } ?? "") + "; hopd migrates it again"
        : "\(text): not pinned, nothing to do")
    if released {
      try output.line(
        "  after its next rescan, or at once after: hopctl retry \(location.database.string.quotedForShell)")
    }
    try output.object([
      "store": location.database.string, "released": released, "pin": pin.map { PinShape($0) },
    ])
  }

  private func releaseGroups() throws {
    let places: [SetPlace]
    if let name {
      var options = RestoreSetOptions()
      options.config = config
      options.recursive = true
      places = [try options.place(name)]
    } else {
      places = GroupRelease.places(in: try loaded())
    }
    var problems: [HopdError] = []
    let released = try GroupRelease(places: places, group: group).run { problems.append($0) }
    for store in released { try output.line("released \(store.store.printable): it was \(store.pin.account)") }
    for problem in problems { ErrorReport.report(problem) }
    if released.isEmpty, problems.isEmpty {
      throw HopdError(
        .notFound, "no store is pinned as \(group.map { "the group \($0.printableLine)" } ?? "a group") here",
        hint: "`hopctl list --state held-back` lists pinned stores; the group may be in another --config")
    }
    try output.line(
      "\(MessageFormatter.count(released.count, "store", "stores")) released; hopd migrates them after its next "
        + "rescan, or at once after: hopctl retry --failed")
    try output.object([
      "group": group,
      "stores": released.map { ["store": $0.store.string, "pin": PinShape($0.pin)] as JSONObject },
      "problems": problems.map(\.json),
    ])
    if let first = problems.first { throw Finished(status: first.code.exit) }
  }
}
