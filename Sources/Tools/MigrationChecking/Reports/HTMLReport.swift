// A check as one page for a browser, without external resources and scripts. Made for a CI server's artifacts, for
// large and small screens, in light and dark mode.

import Diagnostics
import SystemPackage

/// Writes HTML.
package struct HTMLReport {
  private let report: CheckReport

  /// Makes the page of a check.
  package init(_ report: CheckReport) { self.report = report }

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
      <p class="verdict \(state)">\(report.summary.inXML)</p>
      <p class="figures">\(figures)</p>
      </header>
      <main>
      \(parts.joined(separator: "\n"))
      </main>
      </body>
      </html>

      """
  }

  private var figures: String {
    var parts: [String] = []
    if report.seconds > 0 { parts.append("\(Self.seconds(report.seconds))") }
    if report.peakMemory > 0 { parts.append("\(report.peakMemory >> 20) MiB of memory at most") }
    return parts.joined(separator: ", ").inXML
  }

  // MARK: Models

  private func section(_ model: ModelCheck) -> String {
    let id = Self.anchor(model.name)
    return """
      <section aria-labelledby="\(id)">
      <h2 id="\(id)">\(model.name.inXML)</h2>
      <p class="path">\(model.path.printable.inXML)</p>
      \(findings("What is broken", model.problems + model.findings))
      \(findings("What is perhaps not meant", model.warnings, kind: "finding warning"))
      \(findings("What is dropped", model.drops, kind: "finding warning"))
      \(findings("What stops rare rows only", model.extremes))
      \(model.versions.isEmpty ? "" : ways(of: model))
      </section>
      """
  }

  /// Returns the versions and the hops between them.
  private func ways(of model: ModelCheck) -> String {
    """
    <div class="columns">
    <figure>
    \(VersionGraph(model).svg(isDocument: false))
    <figcaption>\(VersionGraph(model).summary.inXML)</figcaption>
    </figure>
    \(matrix(model))
    </div>
    <h3>What each hop does</h3>
    \(model.hops.map(hop).joined(separator: "\n"))
    """
  }

  private func matrix(_ model: ModelCheck) -> String {
    let rows = model.versions.map { version -> String in
      let kinds = version.steps.map { "<span class=\"step \($0.kind.rawValue)\">\($0.kind.rawValue)</span>" }
      let way = version.note.map(\.inXML) ?? kinds.joined(separator: " ")
      let drops = version.drops.map { drop in
        let count = drop.property == nil ? "" : drop.count.map { ": \($0)" } ?? ""
        return "<span class=\"\(drop.isAllowed ? "" : "drop")\">\(drop.words.inXML)\(count)</span>"
      }
      return """
        <tr class="\(version.verdict.rawValue)"><th scope="row">\(version.name.inXML)</th>\
        <td data-label="Result">\(Self.word(version.verdict))</td>\
        <td data-label="Way">\(way)</td>\
        <td data-label="Dropped">\(drops.joined(separator: "<br>"))</td>\
        <td data-label="Objects" class="number">\(version.objects > 0 ? "\(version.objects)" : "")</td>\
        <td data-label="Size" class="number">\(version.bytes > 0 ? "\((version.bytes + 1023) / 1024) KiB" : "")</td>\
        <td data-label="Time" class="number">\(version.seconds > 0 ? Self.seconds(version.seconds) : "")</td></tr>
        """
    }
    return """
      <table class="matrix">
      <caption>Versions of \(model.name.inXML)\(model.target.map { ", each to \($0.inXML)" } ?? "")</caption>
      <thead><tr><th scope="col">Version</th><th scope="col">Result</th><th scope="col">Way</th>\
      <th scope="col">Dropped</th><th scope="col">Objects</th><th scope="col">Size</th>\
      <th scope="col">Time</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      """
  }

  /// Returns findings below a heading; empty if there are none.
  private func findings(_ title: String, _ findings: [CheckFinding], kind: String = "finding") -> String {
    guard !findings.isEmpty else { return "" }
    return "<h3>\(title)</h3>\n" + findings.map { article($0, kind) }.joined(separator: "\n")
  }

  private func article(_ finding: CheckFinding, _ kind: String) -> String {
    let error = finding.error
    let place = [error.place.entity, error.place.property].compactMap(\.self).joined(separator: ".")
    var lines = ["<article class=\"\(kind)\">"]
    let version = error.place.file.flatMap { $0.extension == "xcdatamodel" ? $0.stem : nil }
    let title = [error.place.hop ?? version, place.isEmpty ? nil : place].compactMap(\.self).joined(separator: ", ")
    lines.append("<h4>\((title.isEmpty ? "The model" : title).inXML)</h4>")
    lines.append("<p>\(error.message.printableLine.inXML) <code>\(error.code.name.inXML)</code></p>")
    if !finding.stopped.isEmpty {
      lines.append("<p>It stops \(finding.stopped.joined(separator: ", ").inXML).</p>")
    }
    if finding.isOfRows { lines.append("<p>Stores whose rows are not like that get through.</p>") }
    if finding.remedies.isEmpty, let hint = error.hint { lines.append("<p>\(hint.printableLine.inXML)</p>") }
    if !finding.remedies.isEmpty {
      let ways = finding.remedies.map { remedy in
        "<li>\(remedy.title.inXML)" + (remedy.text.isEmpty ? "" : "<pre tabindex=\"0\">\(remedy.text.inXML)</pre>")
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
      ? "<ul>" + hop.reasons.map { "<li>\($0.headline.inXML)</li>" }.joined() + "</ul>" : ""
    let suspicions = hop.difference.suspicions.map { "<p class=\"suspicion\">\($0.sentence.inXML)</p>" }
    let mappings = hop.step.mappings.isEmpty ? "" : " (\(hop.step.mappings.joined(separator: ", ").inXML))"
    return """
      <details\(isBad ? " open" : "")><summary>\(hop.title.inXML) \
      <span class="step \(style)">\(kind)</span>\(mappings)</summary>
      \(entities.isEmpty ? "<p>No entity differs.</p>" : entities.joined(separator: "\n"))\
      \(reasons)\(suspicions.joined())
      </details>
      """
  }

  private func entity(_ entity: EntityDifference) -> String {
    let changes = entity.changes.map { "<li>\(($0.words + DifferenceText.remark($0)).inXML)</li>" }
    let properties = entity.properties.map { property in
      let words = DifferenceText.words(property)
      return "<li class=\"\(property.effect.rawValue)\"><b>\(DifferenceText.sign(property.kind)) "
        + "\(DifferenceText.title(property).inXML)</b>\(words.isEmpty ? "" : " (\(words.inXML))"): "
        + "\(property.outcome.inXML)</li>"
    }
    return "<p class=\"entity \(entity.effect.rawValue)\"><b>\(DifferenceText.title(entity).inXML)</b>: "
      + "\(entity.outcome.inXML)</p>"
      + (changes.isEmpty && properties.isEmpty ? "" : "<ul>\((changes + properties).joined())</ul>")
  }

  // MARK: Stores

  private var stores: String {
    let rows = report.stores.map { store in
      """
      <tr class="\(store.verdict.rawValue)"><th scope="row">\(store.path.printable.inXML)</th>\
      <td data-label="Version">\((store.version ?? "").inXML)</td>\
      <td data-label="Result">\(Self.word(store.verdict))</td>\
      <td data-label="Why">\((store.findings.first?.error.message.printableLine ?? "").inXML)</td>\
      <td data-label="Objects" class="number">\(store.objects > 0 ? "\(store.objects)" : "")</td></tr>
      """
    }
    return """
      <section aria-labelledby="stores">
      <h2 id="stores">Stores</h2>
      <table class="matrix">
      <caption>Stores of users, each migrated on a copy</caption>
      <thead><tr><th scope="col">Store</th><th scope="col">Version</th><th scope="col">Result</th>\
      <th scope="col">Why</th><th scope="col">Objects</th></tr></thead>
      <tbody>
      \(rows.joined(separator: "\n"))
      </tbody>
      </table>
      </section>
      """
  }

  // MARK: Words

  private static func word(_ verdict: CheckVerdict) -> String {
    switch verdict {
    case .current: "current"
    case .same: "ok, same hashes"
    case .passed: "ok"
    case .failed: "<strong>FAILED</strong>"
    case .untried: "not tried"
    case .policy: "needs a policy"
    case .later: "later"
    case .empty: "empty"
    case .skipped: "not asked"
    }
  }

  private static func seconds(_ value: Double) -> String {
    let hundredths = Int64((max(0, min(value, 1e9)) * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 < 10 ? "0" : "")\(hundredths % 100) s"
  }

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
    background:var(--paper);overflow-wrap:anywhere}\
    header,main{max-width:72rem;margin:0 auto;padding:1rem}h1{font-size:1.5rem;margin:0}h2{font-size:1.25rem;\
    margin:1.5rem 0 0}\
    h3{font-size:1.05rem;margin:1.5rem 0 .5rem}h4{font-size:1rem;margin:0}p{margin:.4rem 0}\
    .path,.figures,figcaption{font-size:.85rem;opacity:.85}\
    .verdict{font-weight:700}.verdict.red{color:var(--bad)}.verdict.green{color:var(--good)}\
    .verdict.unproven{color:var(--warn)}\
    .columns{display:flex;flex-wrap:wrap;gap:1.5rem;align-items:flex-start;margin-top:1rem}figure{margin:0;\
    flex:0 1 22rem;min-width:0}\
    svg.graph{width:100%;height:auto;max-width:30rem}table{border-collapse:collapse;flex:1 1 30rem;min-width:0;\
    width:100%}\
    caption{text-align:left;font-weight:600;padding:.3rem 0}th,td{text-align:left;vertical-align:top;\
    padding:.35rem .5rem;border-bottom:1px solid var(--line)}\
    .number{text-align:right;font-variant-numeric:tabular-nums}\
    tr.failed strong,.drop,li.dropped,.entity.dropped,.entity.needs-mapping,li.needs-mapping{color:var(--bad)}\
    .step{display:inline-block;padding:0 .45rem;border:1px solid var(--line);border-radius:.6rem;\
    font-size:.8rem}.step.missing{color:var(--bad);border-color:currentColor}\
    .step.policy{color:var(--warn);border-color:currentColor}.step.mapping{color:var(--link);border-color:currentColor}\
    .finding{border-left:4px solid var(--bad);background:var(--soft);padding:.6rem .9rem;margin:.6rem 0}\
    .finding.warning{border-color:var(--warn)}.suspicion{color:var(--warn)}\
    pre{white-space:pre-wrap;background:var(--paper);border:1px solid var(--line);padding:.5rem;margin:.3rem 0;\
    font-size:.85rem}\
    code{font-size:.85rem}details{border-bottom:1px solid var(--line);padding:.4rem 0}summary{cursor:pointer;\
    font-weight:600}ul{margin:.2rem 0 .6rem}\
    @media (max-width:44rem){.matrix,.matrix tbody,.matrix tr,.matrix th,.matrix td{display:block;width:100%}\
    .matrix thead{display:none}\
    .matrix tr{border:1px solid var(--line);margin:.5rem 0}.matrix td:empty{display:none}.number{text-align:left}\
    .matrix td::before{content:attr(data-label) ": ";font-weight:600}}
    """
}
