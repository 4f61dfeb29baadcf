import ArgumentParser
import Diagnostics
import PersistentStore
import ServiceState
import StoreReplacement
import SystemPackage

/// `hopctl history [STORE]`.
struct HistoryCommand: HopctlCommand {
  static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List finished jobs, newest first",
    discussion: """
      hopd keeps the last 20,000 jobs for 400 days; the journal has their entries (HOPD_JOB). Other columns: started, \
      watch, job, code, reason, backup.
      """)

  @Argument(
    help: ArgumentHelp("Only jobs of this store, which may no longer exist", valueName: "store"), completion: .file())
  var store: String?

  @Option(help: ArgumentHelp("Maximum number of jobs", valueName: "number"))
  var limit: Int64 = 100

  @OptionGroup(title: "Daemon options") var daemon: DaemonOptions
  @OptionGroup(title: "Output options") var columns: ColumnsOption
  @OptionGroup(title: "Output options") var output: OutputOptions

  func validate() throws {
    if limit < 1 { throw ValidationError("--limit must be at least 1.") }
  }

  func execute() throws {
    let table = try Table(
      StoreText.jobColumns, shown: ["ended", "result", "versions", "rows", "time", "requested-by", "store"], columns)
    let recorded = try daemon.recorded()
    let path = try store.map { try name($0, recorded) }
    let jobs = try recorded.reader.jobs(of: path, limit: limit)
    try output.table(table, jobs) { job in
      [
        job.code.map { $0 == job.result ? "    \(StoreText.reason(job))" : "    \($0): \(StoreText.reason(job))" },
        job.backup.map { "    backup: \($0)" },
      ].compactMap { $0 }
    }
    if jobs.isEmpty { try output.line(store == nil ? "no jobs" : "no jobs of this store") }
    try output.object(["running": recorded.process != nil, "jobs": jobs.map(\.json)])
  }

  /// The path under which a store's jobs are recorded. A removed store has only its jobs in the record.
  private func name(_ store: String, _ recorded: RecordedState) throws -> String {
    do { return try recorded.path(of: store) } catch let error as HopdError where error.code == .notFound {
      let path = (try? StoreArgument.location(of: store).database.printable) ?? FilePath(store).printable
      for name in [path, FilePath(store).printable] where try !recorded.reader.jobs(of: name, limit: 1).isEmpty {
        return name
      }
      throw error
    }
  }
}
