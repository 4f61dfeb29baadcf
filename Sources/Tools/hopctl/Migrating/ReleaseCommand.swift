import ArgumentParser
import Diagnostics
import DurableFiles
import MigrationChecking
import PersistentStore
import StoreReplacement
import SystemPackage

/// `hopctl release STORE`.
struct ReleaseCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "release", abstract: "Lets hopd migrate a restored store again.",
    discussion: """
      hopctl restore pins a store to its version. This command removes the pin and changes nothing else. hopd migrates \
      the store after its next rescan, or at once after hopctl retry STORE.
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var output: OutputOptions

  func execute() throws {
    let location = try store.location()
    let pins = PinStore(location: location, files: LinuxFileSystem())
    var pin: RestorePin?
    do { pin = try pins.read() } catch let error as HopdError where error.code == .recordUnreadable {
      output.warn([error])
    }
    let released = try pins.remove()
    try output.line(
      released
        ? "released \(store.text)" + (pin.map { ": it was \($0.account)" } ?? "") + "; hopd migrates it again"
        : "\(store.text): not pinned, nothing to do")
    if released {
      try output.line(
        "  after its next rescan, or at once after: hopctl retry \(location.database.string.quotedForShell)")
    }
    try output.object([
      "store": location.database.string, "released": released, "pin": pin.map { PinShape($0) },
    ])
  }
}
