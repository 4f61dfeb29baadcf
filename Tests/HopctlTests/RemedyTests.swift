// The hints that name a command or an option of hopctl, taken at their word: each is provoked, what it says is typed,
// and the problem is gone, or the next thing that stands in the way is told. The proposals of `hopctl check` are in
// WayOutTests; hints of the daemon, and of machines that a test cannot make, are listed below with the reason.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

/// A problem, what the hint says, and what is typed then; all as lines for a shell in the room of the test.
struct Remedy: Sendable, CustomTestStringConvertible {
  /// The code of the error or the warning.
  let code: String
  /// What makes the state in which it occurs.
  let setup: String
  /// The command that reports it.
  let command: String
  /// Words of the hint: those that are typed.
  let says: String
  /// What the hint's reader types.
  let typed: String
  /// The code of what is told then; nil if nothing is in the way any more.
  let next: String?

  init(_ code: String, _ setup: String = "", _ command: String, says: String, typed: String, next: String? = nil) {
    (self.code, self.setup, self.command, self.says, self.typed, self.next) = (code, setup, command, says, typed, next)
  }

  var testDescription: String { "\(code): \(command)" }
}

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(
    if: ["git", "python3", "sqlite3"].allSatisfy { access("/usr/bin/\($0)", X_OK) == 0 },
    "git, python3 and sqlite3 are not all there"))
struct RemedyTests {
  /// The words of the lines below.
  private static let words = #"""
    cd -- "$FOLDER"
    hopctl() { "$HOPCTL" "$@"; }
    zoo=(--models Zoo.xcdatamodeld)
    # version FOLDER ENTITIES; current BUNDLE VERSION
    version() { mkdir -p "$1"; printf '<?xml version="1.0"?><model>%s</model>' "$2" >"$1/contents"; }
    current() {
      printf '<?xml version="1.0"?><plist version="1.0"><dict><key>_XCCurrentVersionName</key>%s</dict></plist>' \
        "<string>$2.xcdatamodel</string>" >"$1/.xccurrentversion"
    }
    # store FILE [VERSION]; migrated FILE
    store() { hopctl create "$1" "${zoo[@]}" --model-version "${2:-Zoo}" --rows 30 --seed 3 >words; }
    migrated() { store "$1"; hopctl migrate "$1" "${zoo[@]}" >words 2>&1; }
    # book PROPERTIES: the entities of a model of books; books V1 V2 [V3]: the model, and a store of the first version
    book() { printf "<entity name='Book'><attribute name='title' optional='YES' attributeType='String'/>%s</entity>" \
      "$1"; }
    pages() { printf "<attribute name='pages' optional='YES' attributeType='%s' %s/>" "$1" "${2:-}"; }
    size() { printf "<attribute name='size' optional='YES' attributeType='Integer 16'/>"; }
    books() {
      local number=0 entities
      for entities in "$@"; do version "B.xcdatamodeld/B $((number += 1)).xcdatamodel" "$entities"; done
      current B.xcdatamodeld "B $number"
      hopctl create b.sqlite --models B.xcdatamodeld --model-version 'B 1' --rows 5 >words
    }
    # mapping FILE SOURCE DESTINATION ENTITY…
    mapping() {
      mkdir -p "$(dirname "$1")"
      { printf '[mapping]\nsource = "%s"\ndestination = "%s"\n' "$2" "$3"
        for name in "${@:4}"; do printf '[[entity]]\nsource = "%s"\ndestination = "%s"\n' "$name" "$name"; done; } >"$1"
    }
    # watch NAME [LINE]: adds a watch of a folder to hopd.toml
    watch() {
      mkdir -p "$1"
      printf '[[watch]]\nname = "%s"\ndirectory = "%s"\nmodels = ["%s"]\n%s\n' "$1" "$FOLDER/$1" \
        "$FOLDER/Zoo.xcdatamodeld" "${2:-}" >>hopd.toml
    }
    commit() {
      git init -q; git add Zoo.xcdatamodeld hop.lock; git -c user.name=a -c user.email=a@example.org commit -qm one
    }
    frozen() { hopctl check Zoo.xcdatamodeld --freeze >words; }
    listed() { hopctl fleet scan . "${zoo[@]}" --output list >words; }
    # Persistent history as a store of framework version 851 has it.
    history() {
      sqlite3 "$1" "$(echo "CREATE TABLE ACHANGE ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER,
        ZCHANGETYPE INTEGER, ZENTITY INTEGER, ZENTITYPK INTEGER, ZTRANSACTIONID INTEGER, ZCOLUMNS BLOB );
        CREATE TABLE ATRANSACTION ( Z_PK INTEGER PRIMARY KEY, Z_ENT INTEGER, Z_OPT INTEGER, ZTIMESTAMP FLOAT,
        ZAUTHOR VARCHAR, ZBUNDLEID VARCHAR, ZCONTEXTNAME VARCHAR, ZPROCESSID VARCHAR, ZQUERYGEN BLOB );
        CREATE INDEX ACHANGE_ZTRANSACTIONID_INDEX ON ACHANGE (ZTRANSACTIONID);
        INSERT INTO ACHANGE (Z_PK, Z_ENT, ZCHANGETYPE, ZENTITY, ZENTITYPK, ZTRANSACTIONID) VALUES
        (1, 16001, 0, 1, 1, 1);
        INSERT INTO ATRANSACTION (Z_PK, Z_ENT, ZAUTHOR) VALUES (1, 16002, 'the author');
        INSERT INTO Z_PRIMARYKEY VALUES (16001, 'CHANGE', 0, 9), (16002, 'TRANSACTION', 0, 4)" | tr -s '\n ' ' ')"
    }

    """#

  /// The codes whose hint names a command and that the table does not provoke, with the reason.
  static let notProvoked = [
    "backups-in-watch": "of the daemon's configuration, tested in ConfigurationInspectionTests",
    "cannot-replace": "needs a file system without leases, or a store that another user owns",
    "claim-problem": "of a running daemon, tested in HopdServiceTests",
    "configuration-invalid": "names chmod and `hopctl check-config --drop-in`, which need the unit and its user",
    "control-protocol": "needs a daemon of another version",
    "control-unavailable": "needs a daemon that does not answer",
    "evidence-changed": "needs a program that writes to the store meanwhile",
    "interrupted": "needs a signal in the middle of a scan, tested in FleetCommandTests and SignalTests",
    "lock-changed": "its command is git's, tested in LockTests",
    "locked-by-other": "names the process of another daemon",
    "model-cache-stale": "needs a store whose copy of the model Core Data did not write",
    "mapping-invalid": "names the reasons of a compiled mapping model, tested in MappingShowTests",
    "mapping-stale": "needs a compiled mapping model of other versions, tested in MappingDecisionTests",
    "no-permission": "needs another user than root",
    "no-space": "needs a full file system, tested end to end",
    "not-running": "names systemctl; it is what is told after one hint of the table",
    "other-version": "needs a backup whose label is of another version, tested in StoreReplacementTests",
    "policy-unusable": "needs a policy that does not start, tested in PolicyCommandTests",
    "state-held": "needs a second daemon",
    "state-missing": "names systemctl",
    "state-unreadable": "names fuser",
    "store-quarantined": "needs a crash between two names, tested by tools/soak",
    "unsuitable-file": "of the daemon's files, tested in HopdServiceTests",
    "value-too-large": "needs a value of more than 256 MiB, tested in LargeValueTests",
    "verification-failed": "asks for a report: it is a mistake of hopd",
  ]

  @Test func noCodeIsInBothLists() {
    let both = Set(Self.all.map(\.code)).intersection(Self.notProvoked.keys)
    #expect(both.isEmpty, "\(both)")
    #expect(Set(Self.all.map(\.code)).count > 30)
  }

  @Test(arguments: all)
  func whatTheHintSaysHelps(_ remedy: Remedy) throws {
    let room = try Room()
    let made = try shell(room, remedy.setup)
    try #require(made.status == 0, "\(made.output)\(made.errors)")
    let told = try shell(room, remedy.command + " --json")
    let hints = Self.findings(told).filter { $0.code == remedy.code }.map(\.hint)
    #expect(hints.contains { $0.contains(remedy.says) }, "\(hints): \(told.output)\(told.errors)")
    let outcome = try shell(room, remedy.typed + (remedy.next == nil ? "" : " --json"))
    guard let next = remedy.next else {
      #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
      return
    }
    let left = Self.findings(outcome)
    #expect(outcome.status != 0 && left.contains { $0.code == next }, "\(outcome.output)\(outcome.errors)")
    #expect(!left.contains { $0.code == remedy.code && $0.hint.contains(remedy.says) }, "the same hint again: \(left)")
  }

  private func shell(_ room: Room, _ lines: String) throws -> Outcome {
    let root = CheckCase.root.removingLastComponent().removingLastComponent()
    return try room.shell(
      Self.words + lines,
      [
        "FOLDER=\(room.path.string)", "TMPDIR=\(room.path.string)", "EXAMPLES=\(root.appending("Examples").string)",
        "HOPCTL=\(try #require(Program.path).string)",
      ])
  }

  /// Every code with its hint in the answer of a command: one object, or one a line.
  private static func findings(_ outcome: Outcome) -> [(code: String, hint: String)] {
    if let json = try? outcome.json() { return findings(in: json) }
    return outcome.output.split(separator: "\n").flatMap { line in
      (try? JSONDecoder().decode(JSON.self, from: Data(line.utf8))).map(findings) ?? []
    }
  }

  private static func findings(in json: JSON) -> [(code: String, hint: String)] {
    switch json {
    case .object(let members):
      let own = members["code"]?.text.map { [(code: $0, hint: members["hint"]?.text ?? "")] } ?? []
      return own + members.values.flatMap(findings)
    case .array(let items): return items.flatMap(findings)
    default: return []
    }
  }
}
