// Commands in texts are there to be pasted, and paths come from strangers: a path behind the word of a command is
// quoted for the shell. A printable path is for prose.

import Testing

@Suite struct HintCommandTests {
  /// The words that begin a command in a text.
  private static let commands = [
    "cat", "chmod", "chown", "cp", "df", "find", "fuser", "hopctl", "journalctl", "kill", "ls", "lsof", "mkdir",
    "mount", "mv", "rm", "rmdir", "setfacl", "sqlite3", "stat", "systemctl", "touch", "umount",
  ]

  @Test func noCommandNamesAPathThatIsNotQuoted() {
    var quoted = 0
    for source in ArchitectureTests.sources where source.text.contains("printable") || source.text.contains("Shell") {
      for line in Self.joined(source.code) where line.contains("printable") || line.contains("quotedForShell") {
        let arguments = Self.arguments(in: line)
        quoted += arguments.filter { $0.contains("quotedForShell") }.count
        guard arguments.contains(where: { Self.hasPrintable($0) }) else { continue }
        Issue.record("\(source.target)/\(source.name): use quotedForShell in \(line)")
      }
    }
    #expect(quoted > 20, "the scanner finds the commands")
  }

  /// A hint goes on after "hint: ", so it begins in lower case, unless with a name.
  @Test func hintsBeginInLowerCase() {
    var hints = 0
    for source in ArchitectureTests.sources {
      for range in source.code.ranges(of: "hint: \"") + source.code.ranges(of: ".hinted(\"") {
        hints += 1
        let text = source.code[range.upperBound...].prefix(40)
        guard text.first?.isUppercase == true, !text.hasPrefix("Core Data") else { continue }
        Issue.record("\(source.target)/\(source.name): \(text)")
      }
    }
    #expect(hints > 200, "the scanner finds the hints")
  }

  /// Tests the scanner.
  @Test func theCommandsOfALine() {
    for bad in [
      #"hint: "chown \(user) \(path.printable) gives it""#, #""`df -i \(path.removingLastComponent().printable)`""#,
      #"hint: isRefused ? "a" : "then: hopctl prune \(folder.printable) removes it")"#,
      #""hopctl retry --first \(name.printableLine)""#, #""hopctl retry --first \(path.printable.quotedForShell)""#,
      #""`chmod -R go+rX`, a group, or `setfacl -R -m u:\(user.name):rX \(barred.printable)`""#,
    ] { #expect(Self.arguments(in: bad).contains(where: { Self.hasPrintable($0) }), "\(bad)") }
    for good in [
      #"hint: "chown \(user) \(path.quotedForShell) gives it""#, #""remove \(folder.printable)""#,
      #""\(path.printable): chmod go-w \(path.quotedForShell)""#, #""hopctl: \(store.printable) is not restored""#,
      #""`hopctl fleet run` takes the lock over; else remove \(folder.printable)""#,
      #""by hopctl check-config --drop-in from \(files.map(\.printable).joined(separator: ", "))""#,
      #""the models \(model.printable) and tools \(path.printable)""#,
    ] { #expect(!Self.arguments(in: good).contains(where: { Self.hasPrintable($0) }), "\(good)") }
    #expect(Self.joined("a(\n  \"hopctl \"\n    + \"prune\")\nb") == ["a(", "  \"hopctl prune\")", "b"])
  }

  /// The lines of a code, with a text that goes on below in one line.
  private static func joined(_ code: String) -> [String] {
    var lines: [String] = []
    for line in code.split(separator: "\n") {
      let rest = line.drop { $0 == " " }
      if rest.hasPrefix("+ \""), let last = lines.last, last.hasSuffix("\"") {
        lines[lines.count - 1] = String(last.dropLast() + rest.dropFirst(3))
      } else {
        lines.append(String(line))
      }
    }
    return lines
  }

  /// What follows each word of a command, to the end of the text or of the command.
  private static func arguments(in line: String) -> [Substring] {
    commands.flatMap { command in
      line.ranges(of: command + " ").compactMap { range -> Substring? in
        let before = line[..<range.lowerBound].last ?? " "
        guard !before.isLetter, !before.isNumber, !"_-./".contains(before) else { return nil }
        return line[range.upperBound...].prefix { !"\"`;".contains($0) }
      }
    }
  }

  /// Whether a printable path stands in it; a key path is none.
  private static func hasPrintable(_ text: Substring) -> Bool {
    text.ranges(of: ".printable").contains { text[..<$0.lowerBound].last != "\\" }
  }
}
