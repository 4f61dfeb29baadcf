// The text of the metrics: every counter where it belongs, and no name that could be anybody's.

import Diagnostics
import Glibc
import SystemPackage
import Testing

@testable import HopdService

@Suite struct MetricsTests {
  private func value(_ name: String, _ text: String) -> String? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }.map { String($0.dropFirst(name.utf8.count + 1)) }
  }

  @Test func countersAndClassesAddUp() {
    var metrics = Metrics()
    metrics.migrated(rows: 30, hops: [0.05, 5, 7000], at: 100)
    metrics.migrated(rows: 12, hops: [.nan, -1], at: 200)
    metrics.ended("refused")
    metrics.overflowed()
    let text = metrics.text(Metrics.Gauges(), version: "1")
    #expect(value("hopd_store_migrations_total{result=\"migrated\"}", text) == "2")
    #expect(value("hopd_store_migrations_total{result=\"refused\"}", text) == "1")
    #expect(value("hopd_store_migrations_total{result=\"failed\"}", text) == "0")
    #expect(value("hopd_rows_total", text) == "42")
    #expect(value("hopd_hop_seconds_bucket{le=\"0.01\"}", text) == "0")
    #expect(value("hopd_hop_seconds_bucket{le=\"0.1\"}", text) == "1")
    #expect(value("hopd_hop_seconds_bucket{le=\"10.0\"}", text) == "2")
    #expect(value("hopd_hop_seconds_bucket{le=\"3600.0\"}", text) == "2")
    #expect(value("hopd_hop_seconds_bucket{le=\"+Inf\"}", text) == "3")
    #expect(value("hopd_hop_seconds_count", text) == "3")
    #expect(value("hopd_last_success_timestamp_seconds", text) == "200")
    #expect(value("hopd_watch_overflows_total", text) == "1")
    #expect(value("hopd_backup_bytes", text) == nil)
  }

  @Test func labelsAreEscapedAndEveryMetricIsExplained() {
    var gauges = Metrics.Gauges()
    gauges.stores = [("v \"1\"\\\n2", "current", 7)]
    gauges.backupBytes = 5
    let text = Metrics().text(gauges, version: "1")
    #expect(text.contains("hopd_stores{version=\"v \\\"1\\\"\\\\\\n2\",state=\"current\"} 7\n"))
    #expect(value("hopd_backup_bytes", text) == "5")
    var explained: Set<Substring> = []
    for line in text.split(separator: "\n") {
      if line.hasPrefix("# HELP ") { explained.insert(line.dropFirst(7).prefix { $0 != " " }) }
      guard !line.hasPrefix("#") else { continue }
      var name = line.prefix { $0 != " " && $0 != "{" }
      for suffix in ["_bucket", "_sum", "_count"] where name.hasSuffix(suffix) { name = name.dropLast(suffix.count) }
      #expect(explained.contains(name), "\(name)")
    }
  }

  @Test func theFileIsReplacedAsAWhole() throws {
    let file = FilePath("/tmp/hopd-metrics-\(UInt64.random(in: 0 ... .max)).prom")
    defer { unlink(file.string) }
    for text in ["a 1\n", "b 2\n"] { try MetricsWriter.replace(file, with: Array(text.utf8)) }
    var status = stat()
    #expect(stat(file.string, &status) == 0 && status.st_mode & 0o777 == 0o644 && status.st_size == 4)
    #expect(access(file.string + ".tmp", F_OK) != 0)
  }

  /// The folder belongs to the collector's user, who puts a link to a private file of hopd's in the place of the draft.
  @Test func anExchangedDraftOpensNoPrivateFile() throws {
    var template = Array("/tmp/hopd-metrics-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = FilePath(platformString: template.map { $0 })
    let (file, draft, secret) = (
      folder.appending("hopd.prom"), folder.appending("hopd.prom.tmp"), folder.appending("secret")
    )
    defer {
      for path in [file, draft, secret] { unlink(path.string) }
      rmdir(folder.string)
    }
    let descriptor = open(secret.string, O_CREAT | O_WRONLY, 0o600)
    close(descriptor)
    let error = #expect(throws: HopdError.self) {
      try MetricsWriter.replace(file, with: Array("a 1\n".utf8)) {
        unlink(draft.string)
        symlink("secret", draft.string)
      }
    }
    #expect(error?.message.contains("replaced") == true)
    var status = stat()
    #expect(stat(secret.string, &status) == 0 && status.st_mode & 0o777 == 0o600 && status.st_size == 0)
    #expect(lstat(file.string, &status) != 0, "a link has become the file of the metrics")
  }
}
