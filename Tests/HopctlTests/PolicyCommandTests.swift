// A policy from a checkout, by its relative path: its library is found, what its methods change is in the store, and
// what it writes when it ends early is in the error.

import BlockingTests
import FoundationEssentials
import Glibc
import SystemPackage
import Testing

@Suite(
  .blocking, .enabled(if: Program.isBuilt, Program.absence),
  .enabled(if: access("/usr/bin/sqlite3", X_OK) == 0, "sqlite3 is not there"),
  .enabled(if: access("/usr/bin/python3", X_OK) == 0, "python3 is not there"))
struct PolicyCommandTests {
  /// The example of books, with a mapping whose title comes of a method, and a policy of that text.
  private func books(
    _ policy: String, relationships: String? = nil
  ) throws -> (room: Room, store: String, words: [String]) {
    let room = try Room()
    let root = FilePath(#filePath).removingLastComponent().removingLastComponent().removingLastComponent()
    try FileManager.default.copyItem(
      atPath: root.appending("Examples/Books").string, toPath: room.path("books"))
    let mapping = "books/Books to Books 2.hopmap.toml"
    let text = String(decoding: try Data(contentsOf: URL(filePath: room.path(mapping))), as: UTF8.self)
    try room.file(
      mapping,
      text + "attributes = { title = 'FUNCTION($entityPolicy, \"titleOf:\", $source.title)' }\n"
        + (relationships.map { "relationships = \($0)\n" } ?? ""))
    try room.file("books/policy.py", "#!/usr/bin/python3\n" + policy)
    try #require(chmod(room.path("books/policy.py"), 0o755) == 0)
    let store = room.path("books/a.sqlite")
    let made = try room.run(
      "create", store, "--models", room.path("books"), "--model-version", "Books", "--rows", "20")
    try #require(made.status == 0, "\(made.errors)")
    let program = "BookToBookPolicy=\(room.path("books/../books/policy.py"))"
    return (room, store, ["migrate", store, "--models", room.path("books"), "--policy", program])
  }

  @Test("What a method inserts is in the store, though nothing is asked after it")
  func methodsInsert() throws {
    let (room, store, words) = try books(
      """
      from hopd_policy import EntityMigrationPolicy, run
      class BookToBookPolicy(EntityMigrationPolicy):
          def titleOf(self, title): raise AssertionError("method() is overridden")
          def method(self, selector, arguments, manager):
              manager.insert_new_object("Author")["name"] = "by " + selector
              return arguments[0] or "untitled"
      run(BookToBookPolicy)
      """)
    let outcome = try room.run(words: words)
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(try room.sql(store, "SELECT count(*), min(ZNAME), max(ZNAME) FROM ZAUTHOR") == "20|by titleOf:|by titleOf:")
    #expect(try room.sql(store, "SELECT Z_MAX FROM Z_PRIMARYKEY WHERE Z_NAME = 'Author'") == "20")
    #expect(try room.sql(store, "SELECT count(*) FROM ZBOOK WHERE ZTITLE IS NULL") == "0")
  }

  @Test("A method takes $source and $manager, and gives the objects of a relationship, or none")
  func methodsGiveObjects() throws {
    let (room, store, words) = try books(
      """
      from hopd_policy import EntityMigrationPolicy, run
      class BookToBookPolicy(EntityMigrationPolicy):
          def titleOf(self, title): return title or "untitled"
          def authorOf_manager(self, source, manager):
              name = source["authorName"]
              if name is None: return []
              found = manager.fetch("Author", "%K == %@", "name", name, sort="name")
              if found: return found
              author = manager.insert_new_object("Author")
              author["name"] = name
              return author
      run(BookToBookPolicy)
      """,
      relationships: #"{ author = 'FUNCTION($entityPolicy, "authorOf:manager:", $source, $manager)' }"#)
    let names = try room.sql(store, "SELECT count(DISTINCT ZAUTHORNAME) || '|' || count(ZAUTHORNAME) FROM ZBOOK")
    let outcome = try room.run(words: words)
    try #require(outcome.status == 0, "\(outcome.errors)")
    #expect(
      try room.sql(store, "SELECT (SELECT count(*) FROM ZAUTHOR) || '|' || count(ZAUTHOR) FROM ZBOOK") == names)
  }

  @Test("A policy that ends early is quoted with its last lines")
  func earlyEnd() throws {
    let (room, store, words) = try books(
      "import sys\nprint('first', file=sys.stderr)\nraise SystemExit('no shelf today')\n")
    let before = try Data(contentsOf: URL(filePath: store))
    let outcome = try room.run(words: words)
    #expect(outcome.status == 65)
    // Each line once: as it came, or with --quiet in the error.
    for line in ["first", "no shelf today"] {
      #expect(outcome.errors.ranges(of: ": \(line)").count == 1, "\(outcome.errors)")
    }
    let quiet = try room.run(words: words + ["--quiet"])
    #expect(
      quiet.errors.contains("the program wrote: first") && quiet.errors.contains("the program wrote: no shelf today"),
      "\(quiet.errors)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
  }

  @Test("A program that does not exist is named with the option that names it")
  func missingProgram() throws {
    let (room, store, words) = try books("")
    let outcome = try room.run(words: Array(words.dropLast()) + ["BookToBookPolicy=./none.py"])
    #expect(
      outcome.status == 66 && outcome.errors.contains("the program of the policy BookToBookPolicy does not exist"))
    #expect(outcome.errors.contains("--policy BookToBookPolicy=COMMAND"), "\(outcome.errors)")
    #expect(try room.run("identify", store, "--models", room.path("books"), "--json").json().version?.text == "Books")
  }

  @Test("A change after the last hook costs the migration")
  func lateChange() throws {
    let (room, store, words) = try books(
      """
      from hopd_policy import EntityMigrationPolicy, run
      import atexit
      class BookToBookPolicy(EntityMigrationPolicy):
          def titleOf(self, title): return title or "untitled"
          def end(self, mapping, manager):
              author = manager.insert_new_object("Author")
              class Late:
                  def __del__(self): author["name"] = "late"
              self.late = Late()
              import threading
              threading.Timer(0.1, lambda: self.__dict__.pop("late")).start()
      run(BookToBookPolicy)
      """)
    let before = try Data(contentsOf: URL(filePath: store))
    let outcome = try room.run(words: words)
    #expect(outcome.status == 65, "\(outcome.output)")
    #expect(outcome.errors.contains("after its last hook"), "\(outcome.errors)")
    #expect(try Data(contentsOf: URL(filePath: store)) == before)
  }
}
