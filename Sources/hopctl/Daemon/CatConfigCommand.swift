import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import ServiceState
import SystemPackage

/// `hopctl cat-config [FILE]`.
struct CatConfigCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat-config", abstract: "Prints the files of the configuration in the order in which they count.",
    discussion: """
      Like systemd-analyze cat-config: a comment line with the path, then the file. Later files win. It prints the \
      files on the disk; hopctl status names those that the running hopd uses. What hopctl set has changed in the \
      running hopd follows as comments.
      """)

  @Argument(help: "A configuration file; its own drop-ins (FILE.d) belong to it.", completion: .file())
  var file: String?

  @OptionGroup var daemon: DaemonOptions
  @OptionGroup var output: OutputOptions

  /// The most bytes to read of one file.
  private static let most = 4 << 20

  func execute() throws {
    let files =
      try file.map { try ConfigurationLoader.files(of: FilePath($0).resolved()) } ?? ConfigurationLoader().files()
    var shown: [JSONObject] = []
    for file in files {
      let text = String(decoding: try LinuxFileSystem().read(file, limit: Self.most), as: UTF8.self)
      // An empty file, or a link to /dev/null, masks the vendor's file of the same name.
      try output.line("# \(file.printable)")
      try output.line(text.isEmpty ? "# (empty: it masks the vendor's file of this name)" : text, keepingNewlines: true)
      shown.append(["file": file.string, "content": text])
    }
    if files.isEmpty { try output.line("no configuration file") }
    let changed = changes(to: files)
    if !changed.isEmpty { try output.line("# hopctl set, until hopd restarts") }
    for change in changed { try output.line("# \(change.key) = \(change.value) (configured: \(change.configured))") }
    try output.object(["files": shown, "changed": changed.map(\.json)])
  }

  /// The changes by `hopctl set` in the hopd that runs with these files; none if its state cannot be read.
  private func changes(to files: [FilePath]) -> [RecordedState.Change] {
    guard let state = try? daemon.recorded() else { return [] }
    return Set(state.lines(.configuration)).isDisjoint(with: files.map(\.printable)) ? [] : state.changes
  }
}
