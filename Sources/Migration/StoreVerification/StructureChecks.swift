import Diagnostics
import ManagedObjectModel
import PersistentStore
import PropertyLists
import SQLite

/// Checks the structure of a store: its schema, its metadata, its entity numbers.
struct StructureChecks {
  let reader: StoreReader
  let schema: StoreSchema
  let isExact: Bool
  /// The texts that tables must have instead of those of the layout.
  var tableTexts: [String: String] = [:]

  /// Checks tables, columns and indexes against the model.
  func schemaText() throws(SQLiteError) -> VerificationCheck {
    let objects = try reader.schemaObjects()
    var problems: [String] = []
    let byName = Dictionary(objects.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    let bookkeeping = [("Z_PRIMARYKEY", true), ("Z_METADATA", true), ("Z_MODELCACHE", isExact && schema.hasModelCache)]
    for (name, isRequired) in bookkeeping where isRequired && byName[name]?.type != "table" {
      problems.append("the table \(name) is missing")
    }
    var expected = Set(bookkeeping.map(\.0))
    for table in schema.tables {
      expected.insert(table.name)
      problems += try problemsOf(
        table: table.name, columns: table.columns.map { ($0.name, $0.declaredType) },
        text: tableTexts[table.name] ?? table.createStatement, found: byName[table.name])
    }
    for join in schema.joinTables {
      expected.insert(join.name)
      problems += try problemsOf(
        table: join.name, columns: join.columns.map { ($0, "INTEGER") },
        text: tableTexts[join.name] ?? join.createStatement, found: byName[join.name])
    }
    for trigger in schema.knownTriggers where byName[trigger.name]?.type != "trigger" {
      problems.append("the trigger \(trigger.name) is missing")
    }
    if isExact { problems += textProblems(objects, byName, tables: expected) }
    return VerificationCheck(name: "schema", problems: problems, fine: isExact ? exactDetail : looseDetail)
  }

  /// Returns the differences from the texts of the model's layout, and the objects that the layout does not have.
  private func textProblems(
    _ objects: [SchemaObject], _ byName: [String: SchemaObject], tables: Set<String>
  ) -> [String] {
    var problems: [String] = []
    var known = ["table": tables, "index": [], "trigger": []]
    func expect(_ kind: String, _ name: String, _ text: String, _ words: String) {
      known[kind]?.insert(name)
      if byName[name]?.sql != text { problems.append("\(words) is missing or different") }
    }
    for statement in schema.history?.statements ?? [] {
      expect(
        statement.kind == .table ? "table" : "index", statement.name, statement.createStatement,
        "\(statement.name) of the persistent history")
    }
    for rTree in schema.rTrees {
      known["table"]?.formUnion(SchemaRTree.shadowTables(of: rTree.name))
      expect("table", rTree.name, rTree.createStatement, "the R-Tree table \(rTree.name)")
    }
    for trigger in schema.triggers { expect("trigger", trigger.name, trigger.text, "the trigger \(trigger.name)") }
    for index in schema.indexes { expect("index", index.name, index.createStatement, "the index \(index.name)") }
    for object in objects where object.sql != nil && known[object.type]?.contains(object.name) != true {
      problems.append("the \(object.type) \(object.name) is not in the model")
    }
    return problems
  }

  /// The detail with `isExact`: every text was compared.
  private var exactDetail: String {
    "\(schema.tables.count) tables, \(schema.joinTables.count) join tables and \(schema.indexes.count) indexes"
      + (schema.triggers.isEmpty ? "" : " with \(schema.triggers.count) triggers")
      + " are those of \(schema.model.name)" + schema.indexesNotInspected()
  }

  /// The detail without it: names and types of columns, and names of triggers were compared; indexes have a check of
  /// their own.
  private var looseDetail: String {
    let triggers = schema.knownTriggers.count
    return
      "\(schema.tables.count.counted("table")) and \(schema.joinTables.count.counted("join table")) have the columns of"
      + " \(schema.model.name) by name and type"
      + (triggers == 0 ? "" : ", and its \(triggers) triggers exist by name")
  }

  /// Names what the other checks pass over: parts of the model without a known layout, and tables and columns that the
  /// model does not explain; nil if there is nothing.
  func unchecked() throws(SQLiteError) -> VerificationCheck? {
    var parts = schema.unsupported.filter { [.layoutUnsupported, .derivationUnsupported].contains($0.code) }.map {
      [$0.place.entity, $0.place.property].compactMap(\.self).joined(separator: ".") + " (\($0.message))"
    }
    // The exact comparison finds these as differences.
    if !isExact { parts += try unexplained() }
    guard !parts.isEmpty else { return nil }
    let listed = parts.prefix(20).joined(separator: "; ")
    return VerificationCheck(
      name: "not-checked", passed: true,
      detail: listed + (parts.count > 20 ? "; and \(parts.count - 20) more" : ""), isNoted: true)
  }

  /// The tables, and the columns of the model's tables, that the model does not explain.
  private func unexplained() throws(SQLiteError) -> [String] {
    var predicted = Dictionary(
      schema.tables.map { ($0.name, Set($0.columns.map(\.name))) }, uniquingKeysWith: { first, _ in first })
    for join in schema.joinTables { predicted[join.name] = Set(join.columns) }
    var known = Set(predicted.keys).union(StoreSchema.bookkeeping)
    let tables = try reader.schemaObjects().filter { $0.type == "table" }
    let locations = schema.locations.filter { location in
      tables.contains { $0.name == location.name && $0.sql == location.createStatement }
    }
    for rTree in schema.rTreeIndexes + locations {
      known.formUnion([rTree.name] + SchemaRTree.shadowTables(of: rTree.name))
    }
    var found: [String] = []
    for table in tables {
      if HistoryLayout.isHistory(table: table.name) || MirroringLayout.isMirroring(table.name) { continue }
      guard let columns = predicted[table.name] else {
        if !known.contains(table.name) { found.append("the table \(table.name), which is not the model's") }
        continue
      }
      for column in try reader.shape(of: table.name).columns.map(\.name) where !columns.contains(column) {
        found.append("the column \(table.name).\(column), which is not the model's")
      }
    }
    return found
  }

  private func problemsOf(
    table: String, columns: [(String, String)], text: String, found: SchemaObject?
  ) throws(SQLiteError) -> [String] {
    guard let found, found.type == "table" else { return ["the table \(table) is missing"] }
    if found.sql == text { return [] }
    let real = Dictionary(try reader.columns(of: table).map { ($0.name, $0.type) }, uniquingKeysWith: { a, _ in a })
    var problems: [String] = []
    for (name, type) in columns {
      // "INTEGER PRIMARY KEY" is a column constraint after the type INTEGER.
      let declared = type.split(separator: " ").first.map(String.init) ?? type
      switch real[name] {
      case nil: problems.append("the column \(table).\(name) is missing")
      case declared?: break
      case let other?: problems.append("the column \(table).\(name) is \(other) instead of \(declared)")
      }
    }
    if isExact, problems.isEmpty { problems.append("the SQL of the table \(table) differs") }
    return problems
  }

  /// Checks that hashes, identifiers, digest and checksum are the model's, and that the app's own metadata are
  /// unchanged.
  func metadata(comparedWith source: StoreMetadata?) throws -> VerificationCheck {
    let metadata = try reader.metadata()
    var problems: [String] = []
    let wanted = schema.model.versionHashes
    if metadata.versionHashes != wanted {
      let names = Set(metadata.versionHashes.keys).union(wanted.keys).sorted()
      let different = names.filter { metadata.versionHashes[$0] != wanted[$0] }
      problems.append("the version hashes of \(different.joined(separator: ", ")) do not match the model")
    }
    for (what, key, own) in [
      ("hashes digest", StoreMetadata.Key.versionHashesDigest, schema.model.versionHashesDigest),
      ("version checksum", StoreMetadata.Key.versionChecksum, schema.model.versionChecksum),
    ] {
      guard let found = metadata.entries[key]?.string, found != own else { continue }
      problems.append("the \(what) does not match the model")
    }
    if let source {
      let expected = source.migrated(
        to: schema.model,
        autoVacuum: try reader.connection.integer("PRAGMA \(SQLiteIdentifier.quoted(reader.schema)).auto_vacuum"))
      if metadata.uuid != source.uuid { problems.append("the store UUID changed") }
      for key in Set(metadata.entries.keys).union(expected.entries.keys).sorted()
      where metadata.entries[key] != expected.entries[key] {
        problems.append("the metadata key \(key) was not preserved, or has an unexpected value")
      }
    }
    return VerificationCheck(
      name: "hashes", problems: problems,
      fine: "\(wanted.count) version hashes match \(schema.model.name)"
        + (source == nil ? "" : ", and the metadata has the expected values"))
  }

  /// Checks that the copy of the model, if the store has one, is of the store's version.
  ///
  /// `isOurs` requires exactly the copy that hopd writes, if it can write one.
  func modelCache(isOurs: Bool) throws -> VerificationCheck {
    do {
      if isOurs, let wanted = try? ModelCache.content(for: schema) {
        // The expected bytes were read back when they were made, and have the model's hashes.
        let isRight = try reader.modelCacheContent() == wanted
        return VerificationCheck(
          name: "model-cache", passed: isRight,
          detail: isRight
            ? "the copy of the model has the store's hashes"
            : "the copy of the model is missing or different")
      }
      let cached = try reader.cachedModel(name: schema.model.name)
      return VerificationCheck(
        name: "model-cache", passed: true,
        detail: cached == nil
          ? "the store contains no copy of its model" : "the copy of the model has the store's hashes")
    } catch let error as HopdError {
      // A copy that other software left does not make a store worse; hopd's own must be right.
      return VerificationCheck(name: "model-cache", passed: !isExact, detail: error.message, isNoted: true)
    }
  }

  /// Checks Z_PRIMARYKEY: numbers, names, parents. In hopd's own stores names are the model's; Apple leaves old ones,
  /// which are reported.
  func entityNumbers() throws(SQLiteError) -> VerificationCheck {
    // Reserved numbers are those of history and mirroring, not of the model (docs/formats/store-layout.md, "Reserved
    // entity numbers").
    let found = try reader.primaryKeys().filter { !$0.isReserved }
    var problems: [String] = []
    var renamed: [String] = []
    let expected = schema.primaryKeyEntries
    for entry in expected {
      guard let real = found.first(where: { $0.number == entry.number }) else {
        problems.append("entity number \(entry.number) (\(entry.name)) is missing")
        continue
      }
      if real.name != entry.name {
        let sentence = "entity number \(entry.number) is \(real.name) instead of \(entry.name)"
        if isExact { problems.append(sentence) } else { renamed.append(sentence) }
      }
      if real.parent != entry.parent {
        problems.append("the parent of entity number \(entry.number) is \(real.parent)")
      }
      if entry.parent != 0, real.highWaterMark != 0 {
        problems.append("the subentity \(entry.name) has its own Z_MAX")
      }
    }
    if found.count != expected.count {
      problems.append("Z_PRIMARYKEY has \(found.count) entities instead of \(expected.count)")
    }
    return VerificationCheck(
      name: "entity-numbers", problems: problems,
      fine: (["\(expected.count) entities have their numbers and parents"] + renamed.prefix(10))
        .joined(separator: "; "),
      isNoted: !renamed.isEmpty)
  }

  /// Checks that the history tables are together, with their numbers; nil for a store that has none.
  func historyTables() throws(SQLiteError) -> VerificationCheck? {
    let present = try reader.schemaObjects().filter { $0.type == "table" && HistoryLayout.isHistory(table: $0.name) }
    guard !present.isEmpty else { return nil }
    let problems = try reader.historyGaps().map { "\($0.text) is \($0.isWrong ? "too low" : "missing")" }
    return VerificationCheck(
      name: "history", problems: problems,
      fine: "the \(present.count) tables of persistent history are there, with their numbers")
  }
}
