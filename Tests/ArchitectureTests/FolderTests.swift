// The folders within targets, and their order.

import FoundationEssentials
import Testing

@Suite struct FolderTests {
  private typealias Source = ArchitectureTests.Source

  /// The folders of each target, lowest first: a file uses types of its own folder and of earlier ones. The empty name
  /// is the target's top.
  private static let order: [String: [String]] = [
    "DurableFiles": ["", "Copies"],
    "SQLite": ["Values", "Functions", ""],
    "MigrationEngine": [
      "Hop", "Compilation", "Compilation/Proofs", "Compilation/Inferred", "Compilation/Mapped",
      "Compilation/Altered", "Execution",
    ],
    "PolicyMigration": ["Values", "Conversation", "Objects", "Steps"],
    "PersistentStore": [
      "Values", "Locations", "Metadata", "Reading", "KeyOrder", "Schema", "History", "Census", "Models", "Writing",
      "XMLStores",
    ],
    "Expressions": ["Syntax", "Patterns", "Types", "Evaluation", "SQL"],
    "MigrationPlanning": [
      "Rules", "Identification", "Planning", "Rows", "Inspection/History", "Inspection", "",
    ],
    "MappingModel": ["Explicit", "Inferred", "Files", "Text", ""],
    "ManagedObjectModel": ["Model", "Sources", "Compiled", "Hashing"],
    "SwiftDataSource": ["Facts", "Names", "Derivation", "Versions"],
    "StoreReplacement": ["Records", "Backups", "Swap", "Recovery", "Restore"],
    "HopdService": ["Stores", "Claims", "Work", "Control", "Loop", "Coordination"],
    "MigrationPipeline": ["Requests", "Chain", "Run"],
    "MigrationChecking": ["Differences", "Locks", "Stores", "Reports", "Run"],
    "StoreFleet": ["Sharding", "Lines", "Scanning", "Working", "Reports"],
    "StoreExchange": ["Values", "Clean", "Exporting", "Records", "Importing"],
    "MigrationPolicy": ["Wire", "Program"],
    "hopctl": [
      "Terminal", "Output", "Options", "Migrating", "Inspecting", "Models", "Checking", "Fleet", "Daemon", "",
    ],
  ]

  @Test func everyFolderHasItsPlace() {
    for source in ArchitectureTests.sources {
      let known = Self.order[source.target] ?? [""]
      #expect(known.contains(source.folder), "\(source.target)/\(source.folder) is not in the order of folders")
    }
    for (target, folders) in Self.order {
      for folder in folders {
        #expect(
          ArchitectureTests.sources.contains { $0.target == target && $0.folder == folder },
          "\(target)/\(folder) has no file")
      }
    }
  }

  @Test func typesAreUsedDownwards() {
    var found = 0
    for (target, folders) in Self.order {
      let sources = ArchitectureTests.sources.filter { $0.target == target }
      var place: [String: Int] = [:]
      for source in sources {
        for name in Self.declared(in: source) { place[name] = folders.firstIndex(of: source.folder) ?? .max }
      }
      found += place.count
      for source in sources {
        let own = folders.firstIndex(of: source.folder) ?? .max
        for word in Self.words(of: source) {
          guard let other = place[word], other > own else { continue }
          Issue.record("\(target)/\(source.folder)/\(source.name) uses \(word) of \(folders[other])")
        }
      }
    }
    #expect(found > 500)
  }

  /// Returns the names of the types that a file declares for other files.
  private static func declared(in source: Source) -> [String] {
    source.text.split(separator: "\n").compactMap { line -> String? in
      guard line.first?.isLetter == true || line.first == "@" else { return nil }
      let words = line.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" })
      guard !words.contains("private"), !words.contains("fileprivate"), words.first != "extension",
        let keyword = words.firstIndex(where: {
          ["struct", "class", "enum", "actor", "protocol", "typealias"].contains($0)
        }), keyword + 1 < words.count
      else { return nil }
      return String(words[keyword + 1])
    }
  }

  /// Returns the words of a file's code, without comments.
  private static func words(of source: Source) -> Set<String> {
    var found: Set<String> = []
    for line in source.text.split(separator: "\n") {
      let code = line.ranges(of: "//").first.map { line[..<$0.lowerBound] } ?? line[...]
      found.formUnion(
        code.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" }).map { String($0) })
    }
    return found
  }
}
