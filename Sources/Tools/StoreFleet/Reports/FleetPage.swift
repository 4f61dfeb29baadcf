// Scans and reports of fleets as one page for a browser: nothing from elsewhere, no script, by day and by night.

import Diagnostics
import MigrationChecking

/// Writes HTML.
package enum FleetPage {
  /// Returns the histogram of a scan; `time` is the present, as "2026-01-31T12:00:00Z".
  package static func text(of summary: FleetSummary, time: String) -> String {
    let groups = summary.inOrder
    let most = groups.map(\.stores).max() ?? 1
    let rows = groups.map { group in
      let name = group.version ?? group.state
      return """
        <tr class="\(group.state.inXML)"><th scope="row">\(name.inXML)</th><td>\(group.stores.grouped)</td>\
        <td>\(ByteCount.text(group.bytes))</td><td>\(group.route)</td>\
        <td class="bar">\(bar(group.stores, most))</td></tr>
        """
    }
    return page(
      "hopctl fleet scan", "\(summary.stores.counted("store")), \(ByteCount.text(summary.bytes))", time,
      notes(groups.compactMap { group in group.error.map { (group.example, $0) } })
        + table("Versions", ["Version", "Stores", "Size", "Route", "Share"], rows))
  }

  /// Returns the page of a report; `time` is the present, as "2026-01-31T12:00:00Z".
  package static func text(of report: FleetReport, time: String) -> String {
    let counts = [
      ("migrated", report.migrated), ("already current", report.current), ("failed", report.failed),
      ("waiting", report.waiting), ("without result", report.withoutResult), ("migrated twice", report.migratedTwice),
    ]
    let most = max(1, counts.map(\.1).max() ?? 1)
    let rows = counts.map { name, count in
      """
      <tr><th scope="row">\(name)</th><td>\(count.grouped)</td><td class="bar">\(bar(count, most))</td></tr>
      """
    }
    let versions = report.versions.map {
      """
      <tr><th scope="row">\(($0.before ?? "?").inXML)</th><td>\(($0.after ?? "?").inXML)</td>\
      <td>\($0.stores.grouped)</td></tr>
      """
    }
    let failures = report.failures.map { cause in
      """
      <tr><th scope="row">\(cause.error.message.inPage)</th><td>\(cause.stores.grouped)</td>\
      <td><code>\(cause.example.inXML)</code></td><td><code>\(cause.next.inXML)</code></td></tr>
      """
    }
    let shards = report.shards.map {
      """
      <tr class="\($0.state.rawValue)"><th scope="row">\($0.shard)/\($0.shards)</th><td>\($0.state.rawValue)</td>\
      <td>\($0.runs)</td><td>\(($0.host ?? "").inXML)</td></tr>
      """
    }
    let slowest = report.slowest.map {
      """
      <tr><th scope="row"><code>\($0.store.inXML)</code></th><td>\($0.seconds)</td>\
      <td>\(ByteCount.text($0.bytes ?? 0))</td></tr>
      """
    }
    let headline =
      "\(report.failed.grouped) failed of \(report.fleet.counted("store")) in "
      + report.shards.count.counted("shard")
    return page(
      "hopctl fleet report", report.runs == 0 ? "no worker has reported" : headline, time,
      table("Stores", ["Result", "Stores", "Share"], rows)
        + table("Failures by cause", ["Cause", "Stores", "Example", "Next"], failures)
        + table("Versions", ["Before", "After", "Stores"], versions)
        + table("Shards", ["Shard", "State", "Runs", "Host"], shards)
        + table("Slowest stores", ["Store", "Seconds", "Size"], slowest))
  }

  private static func bar(_ count: Int, _ most: Int) -> String {
    "<span style=\"width: \(count * 100 / max(1, most))%\"></span>"
  }

  private static func table(_ title: String, _ columns: [String], _ rows: [String]) -> String {
    guard !rows.isEmpty else { return "" }
    let head = columns.map { "<th scope=\"col\">\($0)</th>" }.joined()
    return """
      <section><h2>\(title)</h2><div class="wide" tabindex="0"><table><thead><tr>\(head)</tr></thead><tbody>
      \(rows.joined(separator: "\n"))
      </tbody></table></div></section>

      """
  }

  private static func notes(_ errors: [(String, LineError)]) -> String {
    guard !errors.isEmpty else { return "" }
    let items = errors.map { store, error in
      "<li><code>\(store.inXML)</code>: \(error.message.inPage)\(error.hint.map { "<br>\($0.inXML)" } ?? "")</li>"
    }
    return "<section><h2>What cannot be migrated</h2><ul>\n\(items.joined(separator: "\n"))\n</ul></section>\n"
  }

  private static func page(_ title: String, _ line: String, _ time: String, _ body: String) -> String {
    """
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <meta name="color-scheme" content="light dark">
    <title>\(title)</title>
    <style>\(style)</style>
    </head>
    <body>
    <header><h1>\(title)</h1><p><b>\(line.inXML)</b></p>
    <p>\(HTMLReport.origin(time))</p></header>
    <main>
    \(body)</main>
    </body>
    </html>

    """
  }

  private static let style = """
    body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; \
    color: light-dark(#222, #ddd); background: light-dark(#fff, #181818); }
    .wide { overflow-x: auto; }
    table { border-collapse: collapse; width: 100%; }
    th, td { padding: .3rem .6rem; text-align: left; border-bottom: 1px solid light-dark(#ddd, #444); }
    td { font-variant-numeric: tabular-nums; }
    code { overflow-wrap: break-word; }
    td code { white-space: nowrap; }
    .bar { min-width: 8rem; }
    .bar span { display: block; height: .8rem; background: light-dark(#2a6fb0, #6aa9e0); }
    """
}
