import ArgumentParser
import Diagnostics
import DurableFiles
import HopdConfiguration
import SystemPackage

/// `hopctl cat-config [FILE]`.
struct CatConfigCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "cat-config", abstract: "Prints the files of the configuration in the order in which they count.",
    discussion: """
      As systemd-analyze cat-config does: a comment line with the path, then the file. Later files win. It prints what is on the \
      disk; hopctl status names the files that are in force.
      """)

  @Argument(help: "A configuration file; its own drop-ins (FILE.d) belong to it.", completion: .file())
  var file: String?

  @OptionGroup var output: OutputOptions

  /// What is printed of one file at most.
  private static let most = 4 << 20

  struct Shape: Encodable {
    struct File: Encodable {
      let file: String
      let content: String
    }
    let files: [File]
  }

  func execute() throws {
    let files: [FilePath]
    if let file {
      files = try ConfigurationLoader.files(of: try LinuxFileSystem().canonical(FilePath(file)))
    } else {
      files = try ConfigurationLoader().files()
    }
    var shown: [Shape.File] = []
    for file in files {
      let text = String(decoding: try LinuxFileSystem().read(file, limit: Self.most), as: UTF8.self)
      // A file that is empty, or a link to /dev/null, is there to mask another one.
      try output.line("# \(file.printable)")
      try output.line(text.isEmpty ? "# (empty: it masks the vendor's file of this name)" : text, keepingNewlines: true)
      shown.append(Shape.File(file: file.string, content: text))
    }
    if files.isEmpty { try output.line("no configuration file") }
    try output.object(Shape(files: shown))
  }
}
