import ArgumentParser
import Diagnostics
import DurableFiles
import ManagedObjectModel
import PersistentStore
import StoreReplacement
import SwiftDataReading
import SwiftDataSource
import SystemPackage

/// `hopctl model calibrate FOLDER --store STORE`.
struct ModelCalibrateCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "calibrate", abstract: "Settle unproven forms of Swift source by a store",
    discussion: """
      It tries what each form could be until the version hashes are those of a store that the app made, or the \
      checksum that a test of the app prints, and keeps what was found in hop.calibration.toml in the folder.
      """)

  @Argument(help: "A folder of Swift source.", completion: .file())
  var path: String

  @Option(help: "A store that the app made with a version of this source.", completion: .file())
  var store: String?

  @Option(help: ArgumentHelp("NSManagedObjectModel.versionChecksum of such a version.", valueName: "base64"))
  var checksum: String?

  @OptionGroup(title: "Swift source options") var source: SourceOptions
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if (store == nil) == (checksum == nil) { throw ValidationError("Give either --store or --checksum.") }
  }

  func execute() throws {
    let folder = FilePath(path)
    let known = try known()
    let before = try CalibrationFile.read(besides: folder)
    let target = try SwiftDataSourceReader(source.choice).target(at: folder)
    let calibration: Calibration
    do {
      calibration = try Calibration.find(known, in: target, schema: source.schema, calibrated: before)
    } catch {
      throw error.located(Place(file: folder))
    }
    let new = calibration.found.found.filter { before.found[$0.key] != $0.value }
    let file = try CalibrationFile.path(besides: folder)
    if !new.isEmpty {
      let evidence = store.map { "the version hashes of \(FilePath($0).lastComponent?.string ?? $0)" } ?? "a checksum"
      let text = CalibrationFile.text(calibration.found, evidence: "\(evidence), version \(calibration.version)")
      try LinuxFileSystem().writeDurably(
        Array(text.utf8), to: file.resolvedInFolder(), mode: 0o644,
        temporarySuffix: ".hop-\(RequestOptions.jobName()).tmp")
    }
    try output.line("the hashes are those of \(calibration.version)")
    for (name, model) in new.sorted(by: { $0.key < $1.key }) { try output.line("  \(name): \(model)") }
    try output.line(new.isEmpty ? "nothing had to be settled" : "written to \(file.printable)")
    try output.object([
      "version": calibration.version, "forms": calibration.found.found, "path": new.isEmpty ? nil : file.string,
    ])
  }

  private func known() throws -> KnownVersion {
    if let checksum { return .checksum(checksum) }
    let location = try StoreArgument.location(of: store ?? "").store
    return .hashes(try StoreReader.withUnchangedStore(at: location) { try $0.metadata().versionHashes })
  }
}
