import ArgumentParser
import Diagnostics
import DurableFiles
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
    if let name, group == nil, !GroupRelease.isSet(name, config: config) { return try release(name) }
    try GroupRelease(name: name, group: group, config: config).run(output)
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
}
