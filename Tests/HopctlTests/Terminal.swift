// A terminal of a real size for tests of what is on the screen: tmux plays it.

import Glibc
import SystemPackage
import Testing

/// A terminal with a shell in it; it ends with the value.
final class Terminal {
  static let isThere = access("/usr/bin/tmux", X_OK) == 0
  static let absence: Comment = "tmux is not there: tools/bootstrap"

  private let room: Room
  private let name = "t\(UInt32.random(in: 0 ... .max))"

  init(_ room: Room, columns: Int, rows: Int = 24) throws {
    self.room = room
    try tmux("new-session", "-d", "-s", name, "-x", "\(columns)", "-y", "\(rows)", "PS1='$ ' exec /bin/sh")
    try waits("the prompt") { try lines().contains("$") }
  }

  deinit { _ = try? tmux("kill-session", "-t", name) }

  @discardableResult
  private func tmux(_ words: String...) throws -> String {
    // Each has a server of its own: that of a terminal that ends would refuse the next one.
    let started = try room.start(
      program: "/usr/bin/tmux", ["-u", "-S", room.path(name), "-f", "/dev/null"] + words,
      variables: ["TERM=xterm-256color", "LC_ALL=C.UTF-8"])
    let outcome = try room.wait(started)
    try #require(outcome.status == 0, "tmux \(words): \(outcome.errors)")
    return outcome.output
  }

  /// Types a command and the return key.
  func run(_ command: String) throws {
    try tmux("send-keys", "-t", name, "-l", command)
    try press("Enter")
  }

  /// Presses a key by tmux's name.
  func press(_ key: String) throws { try tmux("send-keys", "-t", name, key) }

  func resize(columns: Int, rows: Int) throws {
    try tmux("resize-window", "-t", name, "-x", "\(columns)", "-y", "\(rows)")
  }

  /// The lines on the screen that are not empty, without spaces at their ends.
  func lines() throws -> [String] {
    try tmux("capture-pane", "-p", "-t", name).split(separator: "\n").map { line in
      String(line.reversed().drop { $0 == " " }.reversed())
    }.filter { !$0.isEmpty }
  }

  /// Whether a program shows the alternate screen, and whether the cursor is hidden.
  func isRestored() throws -> Bool {
    try tmux("display-message", "-p", "-t", name, "#{alternate_on}#{cursor_flag}").hasPrefix("01")
  }

  /// Waits for at most a minute.
  func waits(_ what: String, _ condition: () throws -> Bool) throws {
    for _ in 0..<1200 {
      if try condition() { return }
      usleep(50_000)
    }
    Issue.record("\(what): it did not come to that within a minute: \(try lines())")
  }
}
