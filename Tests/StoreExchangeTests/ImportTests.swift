// Stores made of data by a mapping, and every way in which a row can be wrong.

import Diagnostics
import FoundationEssentials
import PersistentStore
import SQLite
import SystemPackage
import Testing

@testable import StoreExchange

struct ImportTests {
  private static let plants = """
    Name,Height (m),Year,Hardy,Seen,Family,Garden
    Oak,30.5,1999,yes,2020-05-01T10:00:00Z,Beech family,North;South
    Beech,,,no,,Beech family,South
    Rose,1.25,2001,1,,Rose family,
    """

  private static let mapping = """
    [[import]]
    entity = "Plant"
    from = "plants.csv"
    key = "Name"
    filter = "Name != 'Rose'"

    [import.columns]
    name = "uppercase:(Name)"
    height = "Height (m)"
    year = "Year"
    hardy = "Hardy"
    seen = "Seen"

    [import.relationships]
    family = "Family"
    gardens = { column = "Garden", separator = ";" }

    [[import]]
    entity = "Family"
    from = "plants.csv"
    distinct_by = "Family"
    [import.columns]
    name = "Family"

    [[import]]
    entity = "Garden"
    from = "gardens.jsonl"
    key = "id.text"
    [import.columns]
    name = "title"
    """

  private func garden() throws -> (room: Room, data: FilePath, mapping: FilePath) {
    let room = try Room(gardenModel)
    try room.file("data/plants.csv", Self.plants)
    try room.file(
      "data/gardens.jsonl",
      #"{"id":{"text":"South"},"title":"South garden"}"# + "\n" + #"{"id":{"text":"North"},"title":"North garden"}"#)
    return (room, room.path.appending("data"), try room.file("garden.hopimport.toml", Self.mapping))
  }

  @Test("Rows of several files become objects with relationships, in any order of files") func mappedFiles() throws {
    let (room, data, mapping) = try garden()
    let imported = try room.load(data, mapping: mapping)
    #expect(imported.objects == 6 && imported.problems.isEmpty)
    let lines = try room.lines()
    #expect(
      lines == [
        #"{"entity":"Family","id":"Family/p1","attributes":{"name":"Beech family"},"#
          + #""relationships":{"plants":["Plant/p1","Plant/p2"]}}"#,
        #"{"entity":"Family","id":"Family/p2","attributes":{"name":"Rose family"},"relationships":{"plants":[]}}"#,
        #"{"entity":"Garden","id":"Garden/p1","attributes":{"name":"South garden"},"#
          + #""relationships":{"plants":["Plant/p1","Plant/p2"]}}"#,
        #"{"entity":"Garden","id":"Garden/p2","attributes":{"name":"North garden"},"#
          + #""relationships":{"plants":["Plant/p1"]}}"#,
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"hardy":true,"height":30.5,"name":"OAK","#
          + #""notes":null,"picture":null,"seen":"2020-05-01T10:00:00.0Z","tag":null,"year":1999},"#
          + #""relationships":{"family":"Family/p1","gardens":["Garden/p1","Garden/p2"],"label":null}}"#,
        #"{"entity":"Plant","id":"Plant/p2","attributes":{"hardy":false,"height":null,"name":"BEECH","#
          + #""notes":null,"picture":null,"seen":null,"tag":null,"year":null},"#
          + #""relationships":{"family":"Family/p1","gardens":["Garden/p1"],"label":null}}"#,
      ])
  }

  @Test("Tables of a database are data, and their keys may become primary keys") func mappedDatabase() throws {
    let room = try Room(gardenModel)
    let data = try room.file("old.db", "")
    do {
      let connection = try Connection(path: data, access: .readWrite)
      try connection.execute(
        """
        CREATE TABLE "select" (id INTEGER PRIMARY KEY, "from" TEXT, h REAL, label INTEGER);
        INSERT INTO "select" VALUES (40, 'Fern', 0.5, 7), (20, 'Moss', NULL, NULL);
        CREATE TABLE labels (id INTEGER PRIMARY KEY, t TEXT);
        INSERT INTO labels VALUES (7, 'it''s'), (8, NULL)
        """)
    }
    let mapping = try room.file(
      "m.hopimport.toml",
      """
      [[import]]
      entity = "Plant"
      from = "select"
      key = "id"
      keeps_keys = true
      [import.columns]
      name = "from"
      height = "h"
      year = "CAST(id, 'NSNumber') + 1900"
      [import.relationships]
      label = "label"
      [[import]]
      entity = "Label"
      from = "labels"
      key = "id"
      [import.columns]
      text = "t"
      """)
    try room.load(data, mapping: mapping)
    let lines = try room.lines()
    #expect(lines.count == 4)
    // The other end of the one-to-one follows.
    #expect(lines[0].contains(#""id":"Label/p1","attributes":{"text":"it's"},"relationships":{"plant":"Plant/p40"}"#))
    #expect(lines[1].contains(#""text":null"#) && lines[1].contains(#""plant":null"#))
    #expect(lines[2].contains(#""id":"Plant/p20""#) && lines[2].contains(#""year":1920"#))
    #expect(lines[3].contains(#""label":"Label/p1""#))
  }

  @Test("A row that breaks a rule is named with its file and line") func brokenRows() throws {
    let room = try Room(gardenModel)
    let data = try room.file(
      "plants.csv",
      """
      name,height,year,family
      Oak,tall,1999,
      "two
      lines",1,70000,
      X,1,,
      ,1,,
      Elm,1,,Nobody
      """)
    let mapping = try room.file(
      "m.hopimport.toml",
      """
      [[import]]
      entity = "Plant"
      from = "plants.csv"
      [import.columns]
      name = "name"
      height = "height"
      year = "year"
      [import.relationships]
      family = "family"
      """)
    #expect(
      try room.failure(data, mapping: mapping) == [
        "plants.csv:2, Plant.height: height is not a value of type Double",
        "plants.csv:3, Plant.year: year does not fit Integer 16 (-32768 to 32767)",
        "plants.csv:7, Plant.family: family has a key that no Family in the data has",
      ])
    // The rules of objects are tested when all values fit.
    let skipped = try room.load(data, mapping: mapping, rows: .skip)
    #expect(skipped.objects == 1 && skipped.leftOut == 4 && skipped.clearedReferences == 1, "\(skipped)")
    #expect(
      skipped.problems.map { $0.headline.replacing(room.path.string + "/", with: "") }.contains(
        "plants.csv:6, Plant.name: the object has no value, and one is required"))
    let lines = try room.lines()
    #expect(lines.count == 1 && lines[0].contains(#""name":"Elm""#) && lines[0].contains(#""family":null"#))
  }

  @Test("Messages name what the model, the key and the form of dates require") func requirements() throws {
    let room = try Room(gardenModel)
    let data = try room.file("p.csv", "n,s,f\nX,,\nOak,1.2.2020,\nElm,,Nobody\nAsh\n")
    let mapping = """
      [[import]]
      entity = "Family"
      from = "p.csv"
      distinct_by = "n"
      [import.columns]
      name = "n"
      [[import]]
      entity = "Plant"
      from = "p.csv"
      [import.columns]
      name = "n"
      seen = "s"
      [import.relationships]
      family = "f"
      """
    let found = try room.failure(data, mapping: try room.file("m.hopimport.toml", mapping))
    #expect(
      found == [
        // Two parts of the mapping read the file, and the row is one.
        "p.csv:5: the row has 1 cells, and the header has 3",
        "p.csv:3, Plant.seen: seen is not a date of the form iso, as 2026-11-28T10:00:00Z",
        "p.csv:4, Plant.family: family has a key that no Family in the data has (its key is n)",
      ])
    let short = try room.file("p.csv", "n,s,f\nX,,\n")
    #expect(
      try room.failure(short, mapping: try room.file("m.hopimport.toml", mapping)) == [
        "p.csv:2, Plant.name: the object has a text under the minimum length: 2"
      ])
    let wrong = try room.file("p.csv", "n;s;f\nX;;\n")
    do {
      try room.load(wrong, as: "wrong.sqlite", mapping: try room.file("m.hopimport.toml", mapping))
      Issue.record("the import succeeded")
    } catch let error as HopdError {
      let hints = ([error] + error.reasons).compactMap(\.hint)
      #expect(hints.contains { $0.contains("set delimiter = \";\"") }, "\(error.description)")
    }
    let renamed = try room.file("p.csv", "name,s,f\nOak,,\n")
    do {
      try room.load(renamed, as: "renamed.sqlite", mapping: try room.file("m.hopimport.toml", mapping))
      Issue.record("the import succeeded")
    } catch let error as HopdError {
      // A name is meant as a column: what an expression would need is not said.
      let text = error.description + error.reasons.map(\.description).joined()
      #expect(text.contains("use one of: name, s, f") && !text.contains("$source"), "\(text)")
    }
  }

  @Test("Rows that break a rule are all counted, though the first are listed") func manyRows() throws {
    let room = try Room(gardenModel)
    let data = try room.file("p.csv", "n\nElm\n" + String(repeating: "X\n", count: 1500))
    let mapping = try room.file(
      "m.hopimport.toml", "[[import]]\nentity = \"Plant\"\nfrom = \"p.csv\"\n[import.columns]\nname = \"n\"\n")
    let skipped = try room.load(data, mapping: mapping, rows: .skip)
    #expect(skipped.objects == 1 && skipped.leftOut == 1500 && skipped.problems.count == 1000, "\(skipped.leftOut)")
    let error = #expect(throws: HopdError.self) { try room.load(data, as: "again.sqlite", mapping: mapping) }
    #expect(error?.message == "1000 or more rows break a rule; the first 20 are listed", "\(error?.message ?? "")")
  }

  @Test("Columns that nothing uses are reported, and names with blanks have a form in expressions")
  func columns() throws {
    let room = try Room(gardenModel)
    let data = try room.file("p.csv", "common name,2nd,spare,also unused\noak,9,,\n")
    let mapping = try room.file(
      "m.hopimport.toml",
      """
      [[import]]
      entity = "Plant"
      from = "p.csv"
      [import.columns]
      name = "uppercase:(common_name)"
      height = "CAST(_2nd, 'NSNumber') + 1"
      """)
    let imported = try room.load(data, mapping: mapping)
    #expect(imported.unusedColumns == ["p.csv": ["spare", "also unused"]], "\(imported.unusedColumns)")
    let lines = try room.lines()
    #expect(lines[0].contains(#""name":"OAK""#) && lines[0].contains(#""height":10"#), "\(lines)")
  }

  @Test("A relationship to objects without a key is a mistake of the mapping") func keyless() throws {
    let room = try Room(gardenModel)
    try room.file("f.csv", "n\nRosaceae\n")
    try room.file("p.csv", "n,f\nOak,Rosaceae\n")
    let mapping = try room.file(
      "m.hopimport.toml",
      """
      [[import]]
      entity = "Family"
      from = "f.csv"
      [import.columns]
      name = "n"
      [[import]]
      entity = "Plant"
      from = "p.csv"
      [import.columns]
      name = "n"
      [import.relationships]
      family = "f"
      """)
    let error = #expect(throws: HopdError.self) { try room.load(room.path, mapping: mapping) }
    #expect(error?.code == .importMappingInvalid && error?.place.line == 1, "\(String(describing: error))")
    #expect(error?.message == "family refers to objects of Family, which have no key")
  }

  @Test("No hint proposes the rule that is on, or one that cannot work", arguments: ImportRowsRule.allCases)
  func hints(rule: ImportRowsRule) throws {
    let problems = RowProblems(rule: rule)
    let error = problems.failure("rows break a rule")
    #expect(error.hint?.contains("--invalid-rows skip") == (rule != .skip))
    #expect(error.hint?.contains("--invalid-rows keep") == false)
  }

  @Test("A default replaces a value that breaks a rule, if the model has one") func defaults() throws {
    let room = try Room(gardenModel)
    let data = try room.file("p.csv", "n,y\nOak,1e9\nElm,12\n")
    let mapping = try room.file(
      "m.hopimport.toml",
      "[[import]]\nentity = \"Plant\"\nfrom = \"p.csv\"\n[import.columns]\nname = \"n\"\nyear = \"y\"\n")
    let imported = try room.load(data, mapping: mapping, rows: .default)
    #expect(imported.corrected == 1 && imported.objects == 2)
    #expect(try room.lines()[0].contains(#""year":1900"#))
    let short = try room.file("p.csv", "n,y\nX,1\n")
    #expect(try room.failure(short, mapping: mapping, rows: .default).count == 1)
  }

  @Test("Uniqueness and keys are kept") func repeatedValues() throws {
    let room = try Room(gardenModel)
    let data = try room.file("f.csv", "n\nRose\nRose\n")
    let start = "[[import]]\nentity = \"Family\"\nfrom = \"f.csv\"\n"
    let columns = "[import.columns]\nname = \"n\"\n"
    let plain = try room.file("plain.hopimport.toml", start + columns)
    #expect(
      try room.failure(data, mapping: plain) == [
        "f.csv:3, Family.name: the object repeats a value that must be unique"
      ])
    let keyed = try room.file("keyed.hopimport.toml", start + "key = \"n\"\n" + columns)
    #expect(try room.failure(data, mapping: keyed) == ["f.csv:3, Family: the row has the key of an earlier one"])
    let distinct = try room.file("distinct.hopimport.toml", start + "distinct_by = \"n\"\n" + columns)
    #expect(try room.load(data, mapping: distinct).objects == 1)
  }

  @Test(
    "Mistakes of a mapping are found before a row is read",
    arguments: [
      ("[[import]]\nentity = \"Plnt\"\nfrom = \"plants.csv\"\n", "the model has no entity Plnt with objects"),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"plants.csv\"\n",
        "Family.name needs a value, and no column has it"
      ),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"plants.csv\"\n[import.columns]\nname = \"Famly\"\n",
        "'Famly' is neither a column nor an expression over columns"
      ),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"plants.csv\"\n"
          + "[import.columns]\nname = \"Family\"\nsize = \"Year\"\n",
        "Family has no attribute size"
      ),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"plants.csv\"\nkeys = \"Name\"\n"
          + "[import.columns]\nname = \"Family\"\n",
        "`keys` is not a key here"
      ),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"../plants.csv\"\n[import.columns]\nname = \"Family\"\n",
        "`from` names no file in the directory of the data"
      ),
      (
        "[[import]]\nentity = \"Family\"\nfrom = \"plants.csv\"\ndates = \"%d\"\n[import.columns]\nname = \"Family\"\n",
        "`dates` is not a date format"
      ),
      ("", "no [[import]]"),
    ])
  func mappingMistakes(text: String, message: String) throws {
    let (room, data, _) = try garden()
    let mapping = try room.file("wrong.hopimport.toml", text)
    let found = try room.failure(data, mapping: mapping)
    #expect(found.contains { $0.contains(message) }, "\(found)")
  }

  @Test("hopctl's own lines may be edited: absent ends of relationships follow from the other end")
  func editedLines() throws {
    let room = try Room(gardenModel)
    let data = try room.file(
      "edited.ndjson",
      """
      {"entity":"Family","id":"Family/p3","attributes":{"name":"F"},"relationships":{"plants":["Tree/p9","Plant/p4"]}}
      {"entity":"Plant","id":"Plant/p4","attributes":{"name":"Oak"},"relationships":{"label":"Label/p2"}}

      {"entity":"Tree","id":"Tree/p9","attributes":{"name":"Elm","rings":7},"relationships":{}}
      {"entity":"Label","id":"Label/p2","attributes":{}}
      """)
    try room.load(data)
    let lines = try room.lines()
    #expect(lines.count == 4)
    #expect(lines[0].contains(#""plants":["Plant/p4","Tree/p9"]"#), "\(lines[0])")
    #expect(lines[1].contains(#""plant":"Plant/p4""#))
    #expect(lines[2].contains(#""family":"Family/p3""#) && lines[2].contains(#""year":1900"#))
    #expect(lines[3].contains(#""entity":"Tree","id":"Tree/p9""#) && lines[3].contains(#""family":"Family/p3""#))
  }

  @Test(
    "A wrong line of hopctl's own form is named",
    arguments: [
      (#"{"entity":"Plant","id":"Plant/4","attributes":{}}"#, "an id is not of the form \"Entity/p1\""),
      (#"{"entity":"Plant","id":"Tree/p4","attributes":{}}"#, "the entity of the id is not that of the line"),
      (#"{"entity":"Shrub","id":"Shrub/p4","attributes":{}}"#, "the model has no entity Shrub with objects"),
      (#"{"entity":"Plant","id":"Plant/p1","attributes":{"nme":"x"}}"#, "Plant has no attribute nme"),
      (
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak","year":9223372036854775808}}"#,
        "year is not a value of type Integer 16"
      ),
      (
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak","height":"NaN"}}"#,
        "height is not a value of type Double"
      ),
      (
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak","picture":{"bytes":65,"digest":"00"}}}"#,
        "the line has only the digest of picture"
      ),
      (
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak"},"relationships":{"family":"Family/p9"}}"#,
        "Plant.family refers to an object that is not in the data"
      ),
      (
        #"{"entity":"Plant","id":"Plant/p1","attributes":{"name":"Oak"},"relationships":{"family":"Plant/p1"}}"#,
        "Plant.family refers to an object that is not in the data"
      ),
    ])
  func wrongLines(line: String, message: String) throws {
    let room = try Room(gardenModel)
    let data = try room.file(
      "wrong.ndjson", #"{"entity":"Garden","id":"Garden/p1","attributes":{"name":"G"}}"# + "\n" + line)
    let found = try room.failure(data)
    #expect(found.count == 1 && found[0].hasPrefix("wrong.ndjson:2") && found[0].contains(message), "\(found)")
  }

  @Test("A row that is left out leaves no external file") func filesOfSkippedRows() throws {
    let room = try Room(gardenModel)
    let content = String(repeating: "QUJD", count: 50_000)
    func line(_ key: Int, _ attributes: String) -> String {
      #"{"entity":"Plant","id":"Plant/p\#(key)","attributes":{"picture":"\#(content)",\#(attributes)},"#
        + #""relationships":{}}"# + "\n"
    }
    // The second breaks a rule of the model, the third has a value that no column can have, the fourth a key twice.
    let data = try room.file(
      "data.ndjson",
      line(1, #""name":"Fern""#) + line(2, #""name":"F""#) + line(3, #""name":"Oak","height":"tall""#)
        + line(1, #""name":"Elm""#))
    let imported = try room.load(data, rows: .skip)
    #expect(imported.objects == 1 && imported.leftOut == 3, "\(imported)")
    let files = try FileManager.default.contentsOfDirectory(
      atPath: room.location("store.sqlite").externalDataDirectory.string)
    #expect(files.count == 1, "\(files)")
  }
}
