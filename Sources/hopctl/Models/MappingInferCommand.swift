import ArgumentParser
import Diagnostics
import Glibc
import ManagedObjectModel
import MappingModel
import SystemPackage

/// `hopctl mapping infer PATH FROM TO`.
struct MappingInferCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "infer", abstract: "Writes the inferred mapping between two versions as a text mapping.",
    discussion: """
      A hop that can be inferred needs no mapping model. This command shows what inference does, as a start for a \
      mapping model that differs from it. docs/MAPPINGS.md says how to continue.
      """)

  @Argument(help: "The model that has both versions.", completion: .file())
  var path: String

  @Argument(help: "The version to begin at.")
  var from: String

  @Argument(help: "The version to end at.")
  var to: String

  @Option(
    name: .customLong("output"), help: "Write to this file, which must not exist yet; else to standard output.",
    completion: .file())
  var file: String?

  @Flag(help: "Write also what cannot be inferred, as comments that begin with TODO.")
  var skeleton = false

  @OptionGroup var output: OutputOptions

  func validate() throws {
    if let file, !file.hasSuffix(TextMapping.fileNameEnd) {
      throw ValidationError("--output takes a name that ends with \(TextMapping.fileNameEnd).")
    }
  }

  func execute() throws {
    let bundle = try ModelCommand.bundle(at: path)
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
      let descriptor = try FileDescriptor.open(
        file, .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
        permissions: [.ownerReadWrite, .groupRead, .otherRead])
      _ = try descriptor.closeAfter { try descriptor.writeAll(text.utf8) }
    } catch {
      let code = error as? Errno
      throw HopdError(
        code == .noSpace ? .noSpace : .cannotCreateMapping,
        code == .fileExists ? "the file is there already" : "the file cannot be written", at: Place(file: file),
        cause: code == .fileExists ? nil : error,
        hint: code == .fileExists ? "give another name, or remove it first" : nil)
    }
  }
}

extension HopdError.Code {
  /// A text mapping cannot be written to the given path.
  static let cannotCreateMapping = HopdError.Code("cannot-create", exit: .cannotCreate)
}
