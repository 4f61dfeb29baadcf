// Writes the stages whose code hopd does not have as a file of stages, to be completed by programs.

import Diagnostics
import DurableFiles
import ManagedObjectModel
import MappingModel
import MigrationChecking
import SystemPackage

/// A new file of stages.
struct StagesSkeleton {
  private let file: FilePath

  private static let header = """
    # Stages of the app's migration plan. hopd does not have their code: each hook names a program that does the same
    # (docs/POLICIES.md, "Stages"). Pass it with --policy NAME=PROGRAM, or remove the line of a hook that is not needed.

    """

  /// Takes the path of a file; throws if it exists, because it may have work in it.
  init(at file: FilePath) throws(HopdError) {
    guard try ModelFiles.kind(of: file) == .missing else {
      throw HopdError(
        .usage, "file already exists", at: Place(file: file), hint: "add the stages that hopctl check prints to it")
    }
    self.file = file
  }

  /// Writes the stages of a check that need a program; returns what was done.
  func write(_ report: CheckReport) throws -> String {
    let stages = report.models.flatMap(\.warnings).filter { $0.error.code == .stageNeedsProgram }
    guard !stages.isEmpty else { return "no stage needs a program: nothing was written" }
    let parts = stages.map { finding in
      (["# \(finding.error.place)"] + finding.remedies.map(\.text)).joined(separator: "\n") + "\n"
    }
    let text = Self.header + "\n" + parts.joined(separator: "\n")
    // Read back, so that no later command stops at it.
    let hooks = try StagesFile.stages(of: text, file: file).flatMap {
      [$0.willMigrate, $0.didMigrate].compactMap(\.self)
    }
    try LinuxFileSystem().writeDurably(
      Array(text.utf8), to: file.resolvedInFolder(), mode: 0o644,
      temporarySuffix: ".hop-\(RequestOptions.jobName()).tmp")
    let programs = hooks.map { " --policy \("\($0)=PROGRAM".quotedForShell)" }.joined()
    return "written to \(file.printable)" + (hooks.isEmpty ? "" : "; bind the programs:\(programs)")
  }
}
