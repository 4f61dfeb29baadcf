import CLinux

/// The version of hopd and hopctl, which are released together.
package enum ProgramVersion {
  /// The one place of the number; `tools/version --check` compares the packages with it.
  package static let number = "1.0.0"

  /// The output of `--version`: one line with the versions that matter for a report.
  package static func text(program: String, sqlite: String) -> String {
    "\(program) \(number)\(commit.isEmpty ? "" : ", commit \(commit)"), Swift \(swift), SQLite \(sqlite)"
  }

  /// The commit that `make release` built, as git describes it; empty for other builds.
  private static var commit: String { String(cString: clinux_commit()) }

  private static var swift: String {
    #if compiler(>=6.5)
      "6.5 or later"
    #elseif compiler(>=6.4)
      "6.4"
    #elseif compiler(>=6.3)
      "6.3"
    #else
      "6.2"
    #endif
  }
}
