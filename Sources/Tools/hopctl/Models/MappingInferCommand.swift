import ArgumentParser
import Diagnostics
import DurableFiles
import Glibc
import ManagedObjectModel
import MappingModel
import SystemPackage

/// `hopctl mapping infer PATH FROM TO`.
struct MappingInferCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "infer", abstract: "Generate a text mapping from an inferred hop",
    discussion: """
      A hop that can be inferred needs no mapping model. Use the output as the start of a mapping model that differs \
      from it; see docs/MAPPINGS.md.
      """)

  @Argument(help: "Model with both versions", completion: .file())
  var path: String

  @Argument(help: "Source version")
  var from: String

  @Argument(help: "Destination version")
  var to: String

  @Option(
    name: .customLong("output"), help: "Write to this new file (default: standard output)",
    completion: .file())
  var file: String?

  @Flag(help: "Also write what cannot be inferred, as TODO comments")
  var skeleton = false

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if let file, !file.hasSuffix(TextMapping.fileNameEnd) {
      throw ValidationError("--output expects a name that ends with \(TextMapping.fileNameEnd).")
    }
  }

  func execute() throws {
    let bundle = try ModelCommand.bundle(at: path, source.reader)
    output.warn(ModelCommand.warnings(bundle))
    let text = try InferredTextMapping.text(
      from: ModelCommand.version(from, of: bundle), to: ModelCommand.version(to, of: bundle), isSkeleton: skeleton)
    if let file {
      try Self.write(text, to: FilePath(file))
      try output.line(FilePath(file).printable)
    } else if !output.json {
      // The text is the result itself, so --quiet does not suppress it.
      try StandardStreams.write(text, to: .output)
    }
    try output.object(["sourceVersion": from, "destinationVersion": to, "path": file, "text": text])
  }

  /// Writes a new file. An existing one is never replaced: it may hold an hour of edits.
  private static func write(_ text: String, to file: FilePath) throws(HopdError) {
    do {
      try create(file, Array(text.utf8))
    } catch {
      let known = error as? HopdError
      let code = known?.errno ?? error as? Errno
      let isThere = code == .fileExists
      throw HopdError(
        known?.code == .noSpace ? .noSpace : .cannotCreateMapping,
        isThere ? "file already exists" : "cannot write the file", at: Place(file: file),
        // The name in the error of a system call is that of the hidden file.
        cause: isThere ? nil : code.map { $0 as any Error } ?? error,
        hint: isThere ? "choose another name, or remove the file" : known?.hint)
    }
  }

  /// The name appears when the content is complete: every command that reads the models beside it reads the file too,
  /// and an empty one would make them all fail.
  private static func create(_ file: FilePath, _ content: [UInt8]) throws {
    let files = LinuxFileSystem()
    let path = try file.resolvedInFolder()
    guard let name = path.lastComponent, try files.status(path) == nil else { throw Errno.fileExists }
    let hidden = path.removingLastComponent().appending(".\(name.string).hop-\(RequestOptions.jobName()).tmp")
    try files.createFile(hidden, content, mode: 0o644)
    do {
      try files.renameNoReplace(hidden, to: path)
    } catch {
      _ = try? files.unlinkIfPresent(hidden)
      throw error
    }
    try files.syncDirectory(path.removingLastComponent())
  }
}

extension HopdError.Code {
  /// A text mapping cannot be written to the given path.
  static let cannotCreateMapping = HopdError.Code("cannot-create", exit: .cannotCreate)
}
