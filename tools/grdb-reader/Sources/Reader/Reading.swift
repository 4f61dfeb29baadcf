// Reads a database by record types, follows its associations, and prints what was read as lines of JSON. The types and
// the calls are in files that tools/exchange-readers writes beside this one.

import Foundation
import GRDB

/// A record type that hopctl printed.
typealias Record = Encodable & FetchableRecord & TableRecord

/// Prints the records of a type, with their values as the type has them.
func show<R: Record>(_ type: R.Type, _ db: Database) throws {
  let encoder = JSONEncoder()
  encoder.outputFormatting = .sortedKeys
  encoder.dateEncodingStrategy = .custom { date, encoder in
    var container = encoder.singleValueContainer()
    try container.encode(date.timeIntervalSinceReferenceDate)
  }
  encoder.nonConformingFloatEncodingStrategy = .convertToString(
    positiveInfinity: "Infinity", negativeInfinity: "-Infinity", nan: "NaN")
  for record in try R.fetchAll(db) {
    let line = String(decoding: try encoder.encode(record), as: UTF8.self)
    print("record", try quoted(R.databaseTableName), line, separator: "\t")
  }
}

/// Prints the keys at both ends of a foreign key: of each record's target, and of each target's records.
func follow<C: Record & EncodableRecord, P: Record & EncodableRecord>(
  _ child: C.Type, _ column: String, _ parent: P.Type, _ db: Database
) throws {
  let using = ForeignKey([column])
  let label = try quoted("\(C.databaseTableName).\(column)")
  for record in try C.fetchAll(db) {
    guard let target = try record.request(for: C.belongsTo(P.self, using: using)).fetchOne(db) else { continue }
    print("one", label, try key(record, db), try key(target, db), separator: "\t")
  }
  for record in try P.fetchAll(db) {
    for member in try record.request(for: P.hasMany(C.self, using: using)).fetchAll(db) {
      print("many", label, try key(member, db), try key(record, db), separator: "\t")
    }
  }
}

/// Prints the keys of each record and of those that it has through the table of a many-to-many relationship.
func follow<O: Record & EncodableRecord, J: Record, T: Record & EncodableRecord>(
  _ owner: O.Type, _ first: String, through join: J.Type, _ second: String, to target: T.Type, _ db: Database
) throws {
  let pairs = O.hasMany(J.self, using: ForeignKey([first]))
  let members = O.hasMany(T.self, through: pairs, using: J.belongsTo(T.self, using: ForeignKey([second])))
  for record in try O.fetchAll(db) {
    for member in try record.request(for: members).fetchAll(db) {
      print("pair", try quoted(J.databaseTableName), try key(record, db), try key(member, db), separator: "\t")
    }
  }
}

/// Inserts the records of a type into an empty database of the same schema, as GRDB writes them.
func write<R: Record & MutablePersistableRecord>(_ type: R.Type, _ db: Database, to other: Database) throws {
  for var record in try R.fetchAll(db) { try record.insert(other) }
}

private func key<R: TableRecord & EncodableRecord>(_ record: R, _ db: Database) throws -> Int64 {
  let column = try db.primaryKey(R.databaseTableName).columns[0]
  return Int64.fromDatabaseValue(try record.databaseDictionary[column] ?? .null) ?? 0
}

private func quoted(_ text: String) throws -> String {
  String(decoding: try JSONEncoder().encode(text), as: UTF8.self)
}
