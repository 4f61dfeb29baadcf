// Words that are no command: misspelt ones, former names, the verbs of other tools, a file where a command belongs. The
// answer names the command that was meant.

import ArgumentParser
import Diagnostics
import Glibc
import PersistentStore
import SystemPackage

/// A first word that names no command.
struct UnknownCommand {
  /// The word as typed.
  let word: String
  /// The command whose subcommands do not have it: "hopctl", or "hopctl model".
  let parent: String
  /// Names of those subcommands.
  let siblings: [String]

  /// A word below a command with those subcommands.
  init(word: String, parent: String, siblings: [String]) {
    (self.word, self.parent, self.siblings) = (word, parent, siblings)
  }

  /// Finds the first word of a command line that should name a command and names none.
  init?(_ words: ArraySlice<String>) {
    var command: any ParsableCommand.Type = Hopctl.self
    var parent = "hopctl"
    for word in words {
      let children = command.configuration.subcommands
      guard !children.isEmpty, !word.hasPrefix("-") else { return nil }
      if let child = children.first(where: { $0.configuration.commandName == word }) {
        command = child
        parent += " \(word)"
      } else if word == "help" {
        // What follows is checked by itself.
        return nil
      } else {
        (self.word, self.parent) = (word, parent)
        siblings = children.compactMap { $0.configuration.commandName }
        return
      }
    }
    return nil
  }

  /// Returns what a former name or a verb of other tools is here; nil for any other word.
  private static func meaning(of verb: String) -> String? {
    switch verb {
    case "abort", "cancel", "kill": "`hopctl pause STORE --now` stops the migration of a store"
    case "apply", "run", "up": "run `hopctl migrate STORE`, or `hopctl fleet run DIR` for many stores"
    case "backup", "snapshot", "snapshots": "`hopctl backups DIR` lists the backups; each migration creates one"
    case "cat", "get", "ls", "query", "select", "show":
      "run `hopctl identify STORE` for version and rows, `hopctl dump STORE` for the objects"
    case "cat-config", "config": "`hopctl check-config --print` prints the configuration"
    case "clean", "clear", "forget", "gc": "`hopctl prune DIR --dry-run --keep 1` lists the backups that can go"
    case "completion", "completions":
      "`hopctl --generate-completion-script bash` prints the completions, also for zsh and fish"
    case "convert": "run `hopctl export STORE` for JSON lines, CSV or SQLite; `hopctl import` reads them"
    case "describe", "info", "inspect": "run `hopctl identify STORE` for version and rows of a store"
    case "diff": "`hopctl model diff` compares models"
    case "down", "revert", "rollback", "undo":
      "run `hopctl restore STORE`, or `hopctl restore --watch NAME --since TIME` for many stores"
    case "fix", "repair", "unlock": "`hopctl recover DIR` lists interrupted migrations and repairs them with --yes"
    case "freeze": "`hopctl check MODEL --freeze` records the shipped versions in hop.lock"
    case "graph": "`hopctl explain MODEL --graph mermaid` draws versions and hops"
    case "hash": "`hopctl model hash MODEL` prints the version hashes"
    case "init", "new": "`hopctl create STORE --models MODEL` creates a store"
    case "jobs", "log": "`hopctl history` lists the last jobs"
    case "lint", "test", "validate":
      "run `hopctl check MODEL` for the hops of a model, `hopctl mapping lint FILE` for a mapping model, "
        + "`hopctl verify STORE` for a store"
    case "logs": "`hopctl history` lists the last jobs, and `journalctl -t hopd` is the log"
    case "next": "`hopctl retry STORE --first` moves a store to the front of the queue"
    case "pin": "`hopctl restore STORE` pins the store that it restores; `hopctl pause STORE` pauses a store"
    case "ps", "queue": "`hopctl top --once` shows running migrations and the queue"
    case "release", "unpin": "`hopctl resume STORE` unpins a restored store"
    case "report": "`hopctl fleet report` summarizes the results of all workers"
    case "restart": "`systemctl restart hopd`"
    case "scan": "`hopctl fleet scan DIR` finds stores and records their versions"
    case "schema": "`hopctl model schema MODEL` prints the tables of a version"
    case "start": "`systemctl start hopd`"
    case "stop": "`systemctl stop hopd`"
    case "unit-dropin": "`hopctl check-config --drop-in` prints the drop-in of the unit"
    case "update", "upgrade": "`hopctl migrate STORE` migrates a store to the current version"
    case "version": "`hopctl --version` prints the version"
    case "work": "`hopctl fleet run` migrates a fleet of stores"
    default: nil
    }
  }

  /// The usage error that names what was meant.
  var error: HopdError {
    let isTop = parent == "hopctl"
    let what = isTop ? "unknown command '\(word.printableLine)'" : "\(parent) has no command \(word.printableLine)"
    if isTop, let meaning = Self.meaning(of: word) { return HopdError(.usage, what, hint: meaning) }
    let near = NearestName.among(siblings, to: word)
    if near == nil, isTop, word.contains(where: { "./".contains($0) }) || FilePath(word).linkStatus() != nil {
      let path = FilePath(word)
      let isModel = ["xcdatamodeld", "xcdatamodel", "momd", "mom"].contains(path.extension ?? "")
      let isFolder = path.linkStatus().map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
      let command = isModel ? "check" : isFolder ? "fleet scan" : "identify"
      return HopdError(
        .usage, "\(what): a command comes before the file", hint: "run `hopctl \(command) \(word.quotedForShell)`")
    }
    let help = "`\(parent) --help` for its commands"
    return HopdError(.usage, what, hint: "run " + (near.map { "`\(parent) \($0)`, or \(help)" } ?? help))
  }
}
