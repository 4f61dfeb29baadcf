// A check as one page for a browser, without external resources and scripts. Made for a CI server's artifacts, for
// large and small screens, in light and dark mode.

import Diagnostics
import SystemPackage

/// Writes HTML.
package struct HTMLReport {
  private let report: CheckReport
  private let time: String
  private let commits: [CheckedCommit]

  /// Creates the page of a check; `time` is the present, as "2026-01-31T12:00:00Z".
  package init(_ report: CheckReport, time: String, commits: [CheckedCommit]) {
    self.report = report
    self.time = time
    self.commits = commits
  }

  /// The page as HTML.
  package var text: String {
    let state = report.isRed ? "red" : report.needsPolicies || report.provesNothing ? "unproven" : "green"
    let parts = report.models.map(section) + (report.stores.isEmpty ? [] : [stores])
    return """
      <!DOCTYPE html>
      <html lang="en">
      <head>
      <meta charset="utf-8">
      <meta name="viewport" content="width=device-width, initial-scale=1">
      <meta name="color-scheme" content="light dark">
      <title>hopctl check: \(state)</title>
      <style>\(VersionGraph.style)\(Self.style)</style>
      </head>
      <body>
      <header>
      <h1>hopctl check</h1>
      <p class="verdict \(state)">\(report.summary.inPage)</p>
      \(report.models.map(losses).joined())<p class="figures">\(figures)</p>
      </header>
      <main>
      \(parts.joined(separator: "\n"))
      </main>
      </body>
      </html>

      """
  }

  /// Returns the line of what stores of a model lose.
  private func losses(of model: ModelCheck) -> String {
    let words = model.versions.flatMap(\.drops).words
    return words.isEmpty ? "" : "<p class=\"losses\"><b>Dropped in \(model.name.inPage):</b> \(words.inPage)</p>\n"
  }

  /// When the check ran, by which program, of which commit, and what it took.
  private var figures: String {
    var parts = [Self.origin(time)]
    parts += commits.map { commit in
      "commit <code title=\"\(commit.name.inXML)\">\(commit.name.prefix(12).description.inXML)</code>"
        + (commit.isChanged ? " with uncommitted changes" : "")
    }
    if report.seconds > 0 { parts.append(Self.seconds(report.seconds)) }
    if report.peakMemory > 0 { parts.append("\(report.peakMemory >> 20)\u{a0}MiB of memory at most") }
    return parts.joined(separator: ", ")
  }

  /// Returns when and by which version of the program a page was made.
  package static func origin(_ time: String) -> String {
    let readable = time.replacing("T", with: " ").replacing("Z", with: " UTC")
    return "<time datetime=\"\(time.inXML)\">\(readable.inXML)</time>, hopctl \(ProgramVersion.number)"
  }

  // MARK: Models

  private func section(_ model: ModelCheck) -> String {
    let id = Self.anchor(model.name)
    return """
      <section aria-labelledby="\(id)">
      <h2 id="\(id)">\(model.name.inPage)</h2>
      <p class="path">\(model.path.printable.inPage)</p>
      \(findings("What is broken", model.problems + model.findings))
      \(findings("What is dropped", model.drops, kind: "finding warning"))
      \(findings("What is perhaps not meant", model.warnings, kind: "finding warning"))
      \(findings("What stops rare rows only", model.extremes, kind: "finding rare"))
      \(model.versions.isEmpty ? "" : ways(of: model))
      </section>
      """
  }

  /// Returns the versions and the hops between them.
  private func ways(of model: ModelCheck) -> String {
    let graph = VersionGraph(model)
    return """
      <div class="columns">
      <figure>
      \(graph.svg(isDocument: false))
      <figcaption>\(graph.summary.inPage)</figcaption>
      </figure>
      \(matrix(model, graph.names))
      </div>
      <h3>What each hop does</h3>
      \(model.hops.map(hop).joined(separator: "\n"))
      """
  }

  private func matrix(_ model: ModelCheck, _ names: ShortNames) -> String {
    let rows = model.versions.map { version -> String in
      """
      <tr class="\(version.verdict.rawValue)">\
      <th scope="row" title="\(version.name.inXML)">\(names.label(version.name).inXML)</th>\
      <td data-label="Result">\(Self.word(version.verdict))</td>\
      <td data-label="Route">\(version.note?.inPage ?? Self.way(version.steps))</td>\
      <td data-label="Dropped" class="long">\(Self.drops(version.drops))</td>\
      <td data-label="Objects" class="number">\(version.objects > 0 ? "\(version.objects)" : "")</td>\
      <td data-label="Size" class="number">\(version.bytes > 0 ? Self.size(version.bytes) : "")</td>\
      <td data-label="Time" class="number">\(version.seconds > 0 ? Self.seconds(version.seconds) : "")</td></tr>
      """
    }
    return Self.table(
      "Versions of \(model.name)" + (model.target.map { ", each to \($0)" } ?? "")
        + (names.remark.isEmpty ? "" : "; \(names.remark)"),
      ["Version", "Result", "Route", "Dropped", "Objects", "Size", "Time"], rows)
  }

  /// Returns a table that scrolls in its own box where it is too wide for the page.
  private static func table(_ caption: String, _ columns: [String], _ rows: [String]) -> String {
    """
    <div class="wide" tabindex="0">
    <table class="matrix">
    <caption>\(caption.inPage)</caption>
    <thead><tr>\(columns.map { "<th scope=\"col\">\($0)</th>" }.joined())</tr></thead>
    <tbody>
    \(rows.joined(separator: "\n"))
    </tbody>
    </table>
    </div>
    """
  }

  /// Returns the hops of a chain, each kind once with its number.
  private static func way(_ steps: [HopStep]) -> String {
    [HopKind.inferred, .mapping, .policy, .missing].compactMap { kind in
      let count = steps.count { $0.kind == kind }
      return count == 0 ? nil : "<span class=\"step \(kind.rawValue)\">\(count) \(kind.rawValue)</span>"
    }.joined(separator: " ")
  }

  /// Returns what a chain drops; a long list is folded.
  private static func drops(_ drops: [CheckDrop]) -> String {
    let lines = drops.map { drop in
      let count = drop.property == nil ? "" : drop.count.map { ": \($0)" } ?? ""
      return "<span class=\"\(drop.isAllowed ? "" : "drop")\">\(drop.words.inPage)\(count)</span>"
    }.joined(separator: "<br>")
    return drops.count > 3 ? "<details><summary>\(drops.count.counted("drop"))</summary>\(lines)</details>" : lines
  }

  /// Returns findings below a heading; empty if there are none. Many that stop no store are folded, so that the
  /// versions stay in sight.
  private func findings(_ title: String, _ findings: [CheckFinding], kind: String = "finding") -> String {
    guard !findings.isEmpty else { return "" }
    let articles = findings.map { article($0, kind) }.joined(separator: "\n")
    guard kind != "finding", findings.count > 3 else { return "<h3>\(title)</h3>\n\(articles)" }
    return "<details><summary><h3>\(title): \(findings.count)</h3></summary>\n\(articles)\n</details>"
  }

  private func article(_ finding: CheckFinding, _ kind: String) -> String {
    let error = finding.error
    let place = [error.place.entity, error.place.property].compactMap(\.self).joined(separator: ".")
    var lines = ["<article class=\"\(kind)\">"]
    let version = error.place.file.flatMap { $0.extension == "xcdatamodel" ? $0.stem : nil }
    let title = [error.place.hop ?? version, place.isEmpty ? nil : place].compactMap(\.self).joined(separator: ", ")
    lines.append("<h4>\((title.isEmpty ? "The model" : title).inPage)</h4>")
    lines.append("<p>\(error.message.printableLine.inPage) <code>\(error.code.name.inXML)</code></p>")
    if !finding.stopped.isEmpty {
      lines.append("<p>Affected versions: \(finding.stopped.joined(separator: ", ").inPage).</p>")
    }
    if finding.isOfRows { lines.append("<p>Stores without such rows are migrated.</p>") }
    if finding.remedies.isEmpty, let hint = error.hint { lines.append("<p>\(hint.printableLine.inPage)</p>") }
    if !finding.remedies.isEmpty {
      let ways = finding.remedies.map { remedy in
        "<li>\(remedy.title.inPage)" + (remedy.text.isEmpty ? "" : "<pre tabindex=\"0\">\(remedy.text.inXML)</pre>")
          + "</li>"
      }
      lines.append("<ol>\(ways.joined())</ol>")
    }
    return (lines + ["</article>"]).joined(separator: "\n")
  }

  // MARK: Hops

  private func hop(_ hop: HopCheck) -> String {
    let isBad = hop.isBroken || hop.step.kind == .missing
    let style = isBad ? "missing" : hop.step.kind.rawValue
    let kind = hop.isBroken ? "broken" : hop.step.kind.rawValue
    let entities = hop.difference.entities.map(entity)
    let reasons =
      hop.step.kind == .missing
      ? "<ul>" + hop.reasons.map { "<li>\($0.headline.inPage)</li>" }.joined() + "</ul>" : ""
    let suspicions = hop.difference.suspicions.map { "<p class=\"suspicion\">\($0.sentence.inPage)</p>" }
    let mappings = hop.step.mappings.isEmpty ? "" : " (\(hop.step.mappings.joined(separator: ", ").inPage))"
    return """
      <details\(isBad ? " open" : "")><summary>\(hop.title.inPage) \
      <span class="step \(style)">\(kind)</span>\(mappings)</summary>
      \(entities.isEmpty ? "<p>No entity differs.</p>" : entities.joined(separator: "\n"))\
      \(reasons)\(suspicions.joined())
      </details>
      """
  }

  private func entity(_ entity: EntityDifference) -> String {
    let changes = entity.changes.map { "<li>\(($0.words + DifferenceText.remark($0)).inPage)</li>" }
    let properties = entity.properties.map { property in
      let words = DifferenceText.words(property)
      return "<li class=\"\(property.effect.rawValue)\"><b>\(DifferenceText.sign(property.kind)) "
        + "\(DifferenceText.title(property).inPage)</b>\(words.isEmpty ? "" : " (\(words.inPage))"): "
        + "\(property.outcome.inPage)</li>"
    }
    return "<p class=\"entity \(entity.effect.rawValue)\"><b>\(DifferenceText.title(entity).inPage)</b>: "
      + "\(entity.outcome.inPage)</p>"
      + (changes.isEmpty && properties.isEmpty ? "" : "<ul>\((changes + properties).joined())</ul>")
  }

  // MARK: Stores

  private var stores: String {
    let rows = report.stores.map { store in
      """
      <tr class="\(store.verdict.rawValue)"><th scope="row">\(store.path.printable.inPage)</th>\
      <td data-label="Version">\((store.version ?? "").inPage)</td>\
      <td data-label="Result">\(Self.word(store.verdict))</td>\
      <td data-label="Why">\((store.findings.first?.error.message.printableLine ?? "").inPage)</td>\
      <td data-label="Objects" class="number">\(store.objects > 0 ? "\(store.objects)" : "")</td></tr>
      """
    }
    let columns = ["Store", "Version", "Result", "Why", "Objects"]
    return """
      <section aria-labelledby="stores">
      <h2 id="stores">Stores</h2>
      \(Self.table("Stores of users, each migrated on a copy", columns, rows))
      </section>
      """
  }

  // MARK: Messages

  private static func word(_ verdict: CheckVerdict) -> String {
    switch verdict {
    case .current: "current"
    case .same: "ok, same hashes"
    case .passed: "ok"
    case .failed: "<strong>FAILED</strong>"
    case .untested: "untested"
    case .policy: "needs a policy"
    case .later: "later"
    case .empty: "empty"
    case .skipped: "skipped"
    }
  }

  private static func seconds(_ value: Double) -> String {
    let hundredths = Int64((max(0, min(value, 1e9)) * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100)\u{a0}s"
  }

  private static func size(_ bytes: Int64) -> String { "\((bytes + 1023) / 1024)\u{a0}KiB" }

  /// Returns an id that is valid in a page for any name.
  private static func anchor(_ name: String) -> String {
    "model-" + name.utf8.map { String($0, radix: 16) }.joined()
  }

  private static let style = """
    :root{color-scheme:light dark;--ink:#1b1b1b;--paper:#fff;--soft:#f4f4f4;--line:#c9c9c9;--bad:#b3261e;\
    --good:#146c2e;--warn:#7a4f00;--link:#0b57d0}\
    @media (prefers-color-scheme:dark){:root{--ink:#eee;--paper:#141414;--soft:#222;--line:#4a4a4a;\
    --bad:#f2b8b5;--good:#81c995;--warn:#fdd663;--link:#a8c7fa}}\
    *{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);\
    background:var(--paper);overflow-wrap:break-word}\
    header,main{max-width:76rem;margin:0 auto;padding:1rem 1rem 0}main{padding:0 1rem 2rem}\
    h1{font-size:1.5rem;margin:0}h2{font-size:1.25rem;margin:1.25rem 0 0}\
    h3{font-size:1.05rem;margin:1.25rem 0 .5rem}h4{font-size:1rem;margin:0}p{margin:.4rem 0}\
    .path,.figures,figcaption{font-size:.85rem;opacity:.85}\
    .verdict{font-weight:700}.verdict.red{color:var(--bad)}.verdict.green{color:var(--good)}\
    .verdict.unproven{color:var(--warn)}.losses b{color:var(--bad)}\
    .columns{display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start;margin-top:1rem}\
    figure{margin:0;flex:0 1 16rem;min-width:0}svg.graph{width:100%;height:auto;max-width:24rem}\
    .wide{flex:1 1 34rem;min-width:0;max-width:100%;overflow-x:auto}\
    table{border-collapse:collapse;width:100%;font-size:.9rem}\
    caption{text-align:left;font-weight:600;padding:.3rem 0}th,td{text-align:left;vertical-align:top;\
    padding:.35rem .5rem;border-bottom:1px solid var(--line)}\
    tbody th{min-width:7rem}.number{text-align:right;font-variant-numeric:tabular-nums}\
    tr.failed strong,.drop,li.dropped,.entity.dropped,.entity.needs-mapping,li.needs-mapping{color:var(--bad)}\
    .step{display:inline-block;padding:0 .45rem;border:1px solid var(--line);border-radius:.6rem;\
    font-size:.8rem;white-space:nowrap}.step.missing{color:var(--bad);border-color:currentColor}\
    .step.policy{color:var(--warn);border-color:currentColor}.step.mapping{color:var(--link);border-color:currentColor}\
    .finding{border-left:4px solid var(--bad);background:var(--soft);padding:.6rem .9rem;margin:.6rem 0}\
    .finding.warning{border-color:var(--warn)}.suspicion{color:var(--warn)}\
    pre{white-space:pre-wrap;overflow-wrap:normal;overflow-x:auto;background:var(--paper);\
    border:1px solid var(--line);padding:.5rem;margin:.3rem 0;font-size:.85rem}\
    code{font-size:.85rem;white-space:nowrap}summary{cursor:pointer}summary h3{display:inline}\
    section>details{border-bottom:1px solid var(--line);padding:.4rem 0}section>details>summary{font-weight:600}\
    ol,ul{margin:.2rem 0 .6rem;padding-left:1.5rem}\
    @media (max-width:44rem){.matrix,.matrix caption,.matrix tbody,.matrix th,.matrix td{display:block}\
    .matrix thead,.matrix td:empty{display:none}\
    .matrix tr{display:flex;flex-wrap:wrap;gap:0 1rem;border:1px solid var(--line);padding:.3rem .6rem;margin:.5rem 0}\
    .matrix th,.matrix td{border:0;padding:0;min-width:0}.matrix th,.matrix .long{flex:1 0 100%}\
    .matrix td::before{content:attr(data-label) ": ";opacity:.75}}
    """
}
