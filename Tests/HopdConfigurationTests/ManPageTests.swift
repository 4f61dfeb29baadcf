// docs/man/hopd.toml.5 against the list of keys: the page is what an operator with only the package reads.

import SystemPackage
import Testing

@testable import HopdConfiguration

@Suite struct ManPageTests {
  /// The keys of the page with their defaults, by dotted path: a `.Ss [table]`, then `.It Ic key No (kind, default …)`.
  private static func keys() throws -> [String: String] {
    var table = ""
    var keys: [String: String] = [:]
    for line in try Repository.read(Repository.root.appending("docs/man/hopd.toml.5")).split(separator: "\n") {
      if let heading = line.wholeMatch(of: /\.Ss \[+([a-z.]+)\]+/) { table = String(heading.1) }
      if let item = line.wholeMatch(of: /\.It Ic (\w+) No \((.+)\)/) {
        let text = item.2.replacing("\\(dq", with: "\"")
        let standard = text.firstRange(of: "default ").map { String(text[$0.upperBound...]) }
        keys["\(table).\(item.1)"] = standard ?? ""
      }
    }
    return keys
  }

  @Test func itHasEveryKeyWithItsDefaultAndNoOther() throws {
    var shown = try Self.keys()
    // The keys of a program are those of each entry of the table.
    for name in ["command", "timeout", "memory"] { #expect(shown.removeValue(forKey: "policies.\(name)") != nil) }
    for key in ConfigurationKey.all where key.path != "policies" {
      let standard = shown.removeValue(forKey: key.path)
      #expect(standard != nil, "docs/man/hopd.toml.5 does not have \(key.path)")
      #expect(standard == key.defaultText ?? "", "docs/man/hopd.toml.5: the default of \(key.path)")
    }
    #expect(shown.isEmpty, "docs/man/hopd.toml.5 has keys that nobody reads: \(shown.keys.sorted())")
  }
}
