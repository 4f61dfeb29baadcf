// How the commands of --fetch and --store are split into words, and which of them are refused.

import Diagnostics
import MigrationPipeline
import StoreFleet
import SystemPackage
import Testing

@Suite struct CommandTemplateTests {
  private static let values: [CommandTemplate.Placeholder: String] = [
    .key: "a b/'c\" $(d).sqlite", .path: "/work/x y.sqlite", .directory: "/work", .version: "\"abc\"",
  ]

  @Test(arguments: [
    ("p {key}", ["a b/'c\" $(d).sqlite"]),
    ("p '{key}' \"x{path}\" {directory}/{version}", [values[.key] ?? "", "x/work/x y.sqlite", "/work/\"abc\""]),
    (#"p a\ b 'c\d' "e\"f\g" '' h"i"j"#, ["a b", #"c\d"#, #"e"f\g"#, "", "hij"]),
    ("p {} {Key} {key {1} }{", ["{}", "{Key}", "{key", "{1}", "}{"]),
    ("p --query '{a: b}' $HOME *", ["--query", "{a: b}", "$HOME", "*"]),
    (" p\t{version}\n", ["\"abc\""]), ("p", []),
  ])
  func wordsAreSplitWithoutAShell(_ text: String, _ expected: [String]) throws {
    let template = try CommandTemplate(text, option: "--fetch")
    #expect(template.program == "p" && template.arguments(Self.values) == expected)
  }

  @Test(arguments: ["", "  ", "{key} x", "p {etag}", "p 'a", "p \"a", "p a\\", "p {path}{versoin}", "p a\u{0}b"])
  func whatCannotBeRightIsRefused(_ text: String) {
    let error = #expect(throws: HopdError.self) { try CommandTemplate(text, option: "--store") }
    #expect(error?.code == .usage && error?.message.contains("--store") == true && error?.hint != nil)
  }

  @Test func aValueNeverBecomesAnOption() throws {
    let values: [CommandTemplate.Placeholder: String] = [.key: "-rf"]
    #expect(try CommandTemplate("p {key}", option: "--fetch").arguments(values) == nil)
    #expect(try CommandTemplate("p --key={key}", option: "--fetch").arguments(values) == ["--key=-rf"])
  }

  /// Nothing is stored without the condition, whatever else a command has.
  @Test(arguments: [
    ("f {key} {path}", "s {key} {path} {version}", true), ("f {key} {directory}", "s {key} {directory}{version}", true),
    ("f {key} {path}", "s {key} {path}", false), ("f {path}", "s {key} {path} {version}", false),
    ("f {key}", "s {key} {path} {version}", false), ("f {key} {path} {version}", "s {key} {path} {version}", false),
    ("f {key} {path}", "s {path} {version}", false), ("f {key} {path}", "s {key} {version}", false),
  ])
  func commandsNeedTheirPlaceholders(_ fetch: String, _ store: String, _ isRight: Bool) {
    func commands() throws {
      let retries = RemoteCommands.Retries(tries: 1, first: .zero)
      _ = try RemoteCommands(
        fetch: .init(CommandTemplate(fetch, option: "--fetch"), program: "/bin/true"),
        store: .init(CommandTemplate(store, option: "--store"), program: "/bin/true"), retries: retries
      ) { _, _, _ in RemoteCommands.Answer(output: [], errors: "", end: .stopped) }
    }
    if isRight {
      #expect(throws: Never.self) { try commands() }
    } else {
      #expect(throws: HopdError.self) { try commands() }
    }
  }
}
