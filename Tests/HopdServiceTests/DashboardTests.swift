// The examples for Prometheus and Grafana against the metrics that hopd writes: a panel over a metric that hopd does
// not write stays empty, and no user notices.

import FoundationEssentials
import SystemPackage
import Testing

@testable import HopdService

@Suite struct DashboardTests {
  private struct Dashboard: Decodable {
    struct Panel: Decodable {
      struct Target: Decodable {
        let expr: String
        let datasource: [String: String]
      }
      struct Place: Decodable { let x, y, w, h: Int }
      let id: Int
      let type: String
      let title: String
      let targets: [Target]
      let gridPos: Place
    }
    struct Templating: Decodable {
      struct Variable: Decodable {
        let name: String
        let type: String
      }
      let list: [Variable]
    }
    let title: String
    let uid: String
    let schemaVersion: Int
    let templating: Templating
    let panels: [Panel]
  }

  private static func file(_ name: String) throws -> Data {
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    return try Data(contentsOf: URL(filePath: root.appending("Examples/Monitoring").appending(name).string))
  }

  /// Names of all metrics, as their file has them.
  private static var written: Set<String> {
    var gauges = Metrics.Gauges()
    gauges.stores = [("1", "current", 1)]
    gauges.backupBytes = 1
    return Set(
      Metrics().text(gauges, version: "1").split(separator: "\n").filter { !$0.hasPrefix("#") }
        .map { String($0.prefix { $0 != " " && $0 != "{" }) })
  }

  private static func metrics(in text: String) -> Set<String> {
    Set(
      text.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" }).map { String($0) }
        .filter { $0.hasPrefix("hopd_") })
  }

  @Test func everyPanelAsksForAMetricThatHopdWrites() throws {
    let dashboard = try JSONDecoder().decode(Dashboard.self, from: Self.file("hopd-dashboard.json"))
    var asked: Set<String> = []
    for panel in dashboard.panels {
      #expect(!panel.targets.isEmpty && !panel.title.isEmpty)
      for target in panel.targets {
        let names = Self.metrics(in: target.expr)
        #expect(!names.isEmpty && names.isSubset(of: Self.written), "\(panel.title): \(target.expr)")
        #expect(target.datasource == ["type": "prometheus", "uid": "${datasource}"])
        // A parenthesis, a brace or a bracket too many makes the panel an error.
        for pair in ["()", "{}", "[]"] {
          #expect(target.expr.count { $0 == pair.first } == target.expr.count { $0 == pair.last }, "\(target.expr)")
        }
        asked.formUnion(names)
      }
    }
    // Nothing that hopd writes is left out.
    #expect(asked.union(["hopd_hop_seconds_sum", "hopd_hop_seconds_count"]).isSuperset(of: Self.written))
  }

  @Test func grafanaCanImportIt() throws {
    let dashboard = try JSONDecoder().decode(Dashboard.self, from: Self.file("hopd-dashboard.json"))
    #expect(dashboard.schemaVersion >= 36 && dashboard.title == "hopd" && !dashboard.uid.isEmpty)
    let variables = dashboard.templating.list
    #expect(variables.contains { $0.name == "datasource" && $0.type == "datasource" })
    #expect(Set(dashboard.panels.map(\.id)).count == dashboard.panels.count)
    // No panel overlaps another, and none crosses the edge.
    for (index, panel) in dashboard.panels.enumerated() {
      let place = panel.gridPos
      #expect(place.x >= 0 && place.x + place.w <= 24)
      for other in dashboard.panels.dropFirst(index + 1).map(\.gridPos) {
        let isApart =
          place.x + place.w <= other.x || other.x + other.w <= place.x || place.y + place.h <= other.y
          || other.y + other.h <= place.y
        #expect(isApart, "\(panel.title)")
      }
    }
  }

  @Test func everyAlertAsksForAMetricThatHopdWrites() throws {
    let text = String(decoding: try Self.file("hopd.rules.yml"), as: UTF8.self)
    let expressions = text.split(separator: "\n").filter { $0.contains("expr:") }.joined(separator: "\n")
    let names = Self.metrics(in: expressions).filter { $0 != "hopd_prom" }
    #expect(names.count > 4 && names.isSubset(of: Self.written), "\(names.subtracting(Self.written))")
  }
}
