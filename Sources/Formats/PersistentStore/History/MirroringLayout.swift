// CloudKit's mirroring tables (docs/formats/history-and-cloudkit.md, "CloudKit tables"): their list, and a check that a
// store has them in the known form. Two of them contain numbers of the app's entities; their other contents are names,
// and tokens that only Core Data reads.

import Diagnostics
import SQLite

extension HopdError.Code {
  /// The store is mirrored with CloudKit, and is not migrated.
  package static let cloudKitNotSupported = HopdError.Code("cloudkit-not-supported", exit: .dataError)
}

/// The mirroring tables of a store, without rows.
package struct MirroringLayout: Sendable, Hashable {
  /// The existing tables, in the store's order.
  package let tables: [HistoryStatement]
  /// Indexes on them, in the store's order.
  package let indexes: [HistoryStatement]
  /// Their rows of Z_PRIMARYKEY.
  package let numbers: [PrimaryKeyEntry]

  /// First number of CloudKit mirroring's entities (docs/formats/store-layout.md, "Reserved entity numbers").
  package static let firstNumber: Int64 = 17000
  /// The column with the number of an entity of the app.
  package static let entityColumn = "ZENTITYID"

  /// Whether an object of that name belongs to mirroring. Its tables are ANSCK…; their indexes and triggers are named
  /// after them or are on them (docs/formats/history-and-cloudkit.md, "CloudKit tables").
  package static func isMirroring(_ name: String) -> Bool {
    let name = name.uppercased()
    return name.hasPrefix("ANSCK") || name.hasPrefix("Z_NSCK") || name.hasPrefix("NSCK")
  }

  /// Whether the row of Z_PRIMARYKEY belongs to mirroring.
  package static func isMirroring(_ entry: PrimaryKeyEntry) -> Bool {
    entry.number >= firstNumber || entry.name.hasPrefix("NSCK")
  }

  /// The columns of the known tables other than Z_PK, Z_ENT and Z_OPT, by type.
  private static let known: [String: [String: String]] = [
    "ANSCKDATABASEMETADATA": [
      "INTEGER": "ZDATABASESCOPENUM ZHASSUBSCRIPTIONNUM", "TIMESTAMP": "ZLASTFETCHDATE", "VARCHAR": "ZDATABASENAME",
      "BLOB": "ZCURRENTCHANGETOKEN",
    ],
    "ANSCKEVENT": [
      "INTEGER": "ZCLOUDKITEVENTTYPE ZCOUNTAFFECTEDOBJECTS ZCOUNTFINISHEDOBJECTS ZERRORCODE ZSUCCEEDED",
      "TIMESTAMP": "ZENDEDAT ZSTARTEDAT", "VARCHAR": "ZERRORDOMAIN", "BLOB": "ZEVENTIDENTIFIER",
    ],
    "ANSCKEXPORTEDOBJECT": ["INTEGER": "ZCHANGETYPENUM ZTYPENUM ZOPERATION", "VARCHAR": "ZCKRECORDNAME ZZONENAME"],
    "ANSCKEXPORTMETADATA": ["TIMESTAMP": "ZEXPORTEDAT", "VARCHAR": "ZIDENTIFIER", "BLOB": "ZHISTORYTOKEN"],
    "ANSCKEXPORTOPERATION": ["INTEGER": "ZSTATUSNUM ZEXPORTMETADATA", "VARCHAR": "ZIDENTIFIER"],
    "ANSCKHISTORYANALYZERSTATE": [
      "INTEGER": "ZENTITYID ZENTITYPK ZFINALCHANGETYPENUM ZFINALTRANSACTIONNUMBER ZORIGINALCHANGETYPENUM "
        + "ZORIGINALTRANSACTIONNUMBER", "VARCHAR": "ZFINALCHANGEAUTHOR",
    ],
    "ANSCKIMPORTOPERATION": ["TIMESTAMP": "ZIMPORTDATE", "BLOB": "ZOPERATIONUUID ZCHANGETOKENBYTES"],
    "ANSCKIMPORTPENDINGRELATIONSHIP": [
      "INTEGER": "ZNEEDSDELETE ZOPERATION",
      "VARCHAR": "ZCDENTITYNAME ZRECORDNAME ZRECORDZONENAME ZRECORDZONEOWNERNAME ZRELATEDENTITYNAME "
        + "ZRELATEDRECORDNAME ZRELATEDRECORDZONENAME ZRELATEDRECORDZONEOWNERNAME ZRELATIONSHIPNAME",
    ],
    "ANSCKMETADATAENTRY": [
      "INTEGER": "ZBOOLVALUENUM ZINTEGERVALUE", "TIMESTAMP": "ZDATEVALUE", "VARCHAR": "ZKEY ZSTRINGVALUE",
      "BLOB": "ZTRANSFORMEDVALUE",
    ],
    "ANSCKMIRROREDRELATIONSHIP": [
      "INTEGER": "ZISPENDING ZISUPLOADED ZNEEDSDELETE ZRECORDZONE",
      "VARCHAR": "ZCDENTITYNAME ZCKRECORDID ZRECORDNAME ZRELATEDENTITYNAME ZRELATEDRECORDNAME ZRELATIONSHIPNAME",
      "BLOB": "ZCKRECORDSYSTEMFIELDS",
    ],
    "ANSCKRECORDMETADATA": [
      "INTEGER": "ZENTITYID ZENTITYPK ZLASTEXPORTEDTRANSACTIONNUMBER ZNEEDSCLOUDDELETE ZNEEDSLOCALDELETE ZNEEDSUPLOAD "
        + "ZPENDINGEXPORTCHANGETYPENUMBER ZPENDINGEXPORTTRANSACTIONNUMBER ZRECORDZONE", "VARCHAR": "ZCKRECORDNAME",
      "BLOB": "ZCKRECORDSYSTEMFIELDS ZCKSHARE ZENCODEDRECORD",
    ],
    "ANSCKRECORDZONEMETADATA": [
      "INTEGER": "ZHASRECORDZONENUM ZHASSUBSCRIPTIONNUM ZNEEDSIMPORT ZNEEDSNEWSHAREINVITATION "
        + "ZNEEDSRECOVERYFROMIDENTITYLOSS ZNEEDSRECOVERYFROMUSERPURGE ZNEEDSRECOVERYFROMZONEDELETE ZNEEDSSHAREDELETE "
        + "ZNEEDSSHAREUPDATE ZSUPPORTSATOMICCHANGES ZSUPPORTSFETCHCHANGES ZSUPPORTSRECORDSHARING ZSUPPORTSZONESHARING "
        + "ZDATABASE", "TIMESTAMP": "ZLASTFETCHDATE", "VARCHAR": "ZCKOWNERNAME ZCKRECORDZONENAME",
      "BLOB": "ZCURRENTCHANGETOKEN ZENCODEDSHAREDATA",
    ],
    "ANSCKRECORDZONEMOVERECEIPT": [
      "INTEGER": "ZNEEDSCLOUDDELETE ZRECORDMETADATA", "TIMESTAMP": "ZMOVEDAT",
      "VARCHAR": "ZOWNERNAME ZRECORDNAME ZZONENAME",
    ],
    "ANSCKRECORDZONEQUERY": [
      "INTEGER": "ZRECORDZONE", "TIMESTAMP": "ZLASTFETCHDATE ZMOSTRECENTRECORDMODIFICATIONDATE",
      "VARCHAR": "ZRECORDTYPE", "BLOB": "ZPREDICATE ZQUERYCURSOR",
    ],
  ]

  /// Reads the mirroring of a store, or the reasons why it cannot be kept; neither for a store that is not mirrored.
  package static func read(from reader: StoreReader) throws(SQLiteError) -> (
    layout: MirroringLayout?, errors: [HopdError]
  ) {
    let objects = try reader.schemaObjects().filter { isMirroring($0.name) || isMirroring($0.table) }
    let numbers = try reader.primaryKeys().filter(isMirroring)
    var (tables, indexes): ([HistoryStatement], [HistoryStatement]) = ([], [])
    var errors: [HopdError] = []
    for object in objects {
      guard let text = object.sql else { continue }
      if object.type == "table", let table = HistoryStatement(plainTable: object.name, text: text), isKnown(table) {
        tables.append(table)
      } else if object.type == "index", isMirroring(object.table),
        let index = HistoryStatement(index: object.name, on: object.table, text: text)
      {
        indexes.append(index)
      } else {
        errors.append(
          notKnown("the \(object.type) \(object.name) of CloudKit's mirroring is not in a form that is known"))
      }
    }
    for table in tables {
      let number = numbers.filter { "A" + $0.name.uppercased() == table.name && $0.parent == 0 }
      if number.count != 1 { errors.append(notKnown("Z_PRIMARYKEY has \(number.count) rows for \(table.name)")) }
    }
    for entry in numbers where !tables.contains(where: { $0.name == "A" + entry.name.uppercased() }) {
      errors.append(notKnown("the entity \(entry.name) (\(entry.number)) of the mirroring has no table that is known"))
    }
    guard !objects.isEmpty || !numbers.isEmpty else { return (nil, []) }
    return (MirroringLayout(tables: tables, indexes: indexes, numbers: numbers), errors)
  }

  private static func isKnown(_ table: HistoryStatement) -> Bool {
    guard let columns = known[table.name] else { return false }
    var wanted: Set<String> = ["Z_PK INTEGER PRIMARY KEY", "Z_ENT INTEGER", "Z_OPT INTEGER"]
    for (type, names) in columns { wanted.formUnion(names.split(separator: " ").map { "\($0) \(type)" }) }
    return table.columnDefinitions.count == wanted.count && Set(table.columnDefinitions) == wanted
  }

  private static func notKnown(_ message: String) -> HopdError {
    HopdError(.cloudKitNotSupported, message, hint: "migrate the store with its app, on a device that is signed in")
  }

  /// The statements: tables, then indexes.
  package var statements: [HistoryStatement] { tables + indexes }
}
