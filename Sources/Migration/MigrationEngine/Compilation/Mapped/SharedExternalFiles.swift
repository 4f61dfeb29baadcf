// Gives each object a file of external storage of its own. Core Data removes an object's file with the object, so two
// objects must never refer to one file; yet a mapping may copy one value to several objects. The first one keeps the
// file, the others get its content in their column, which Core Data reads as well (docs/formats/store-layout.md,
// "External binary data").

import Diagnostics
import Expressions
import ManagedObjectModel
import MappingModel
import MigrationPlanning
import PersistentStore
import SQLite

extension MappedHopCompiler {
  /// The table of the references: value, the first column that has it, and the row's key there.
  private static let externalTable = "HOPD_EXTERNAL"

  /// Returns the steps that give each object its own value; none if no value can be copied to two objects.
  func sharedFileSteps() -> [HopProgram.Step] {
    guard mayShareFiles else { return [] }
    let columns = ExternalDataColumn.all(in: hop.destinationSchema)
    let known = qualified(Self.externalTable)
    var steps = [
      HopProgram.StatementStep(
        subject: "external data", .schema,
        "CREATE TABLE \(known) (\"value\" BLOB PRIMARY KEY, \"place\" INTEGER, \"key\" INTEGER) WITHOUT ROWID")
    ]
    for (place, column) in columns.enumerated() {
      let name = SQLiteIdentifier.quoted(column.column)
      steps.append(
        HopProgram.StatementStep(
          subject: "\(column.entity).\(column.property)", .scratch,
          "INSERT OR IGNORE INTO \(known) SELECT \(name), \(place), \"Z_PK\" FROM \(qualified(column.table))"
            + " WHERE substr(\(name), 1, 1) = X'02' ORDER BY \"Z_PK\""))
    }
    for (place, column) in columns.enumerated() {
      let name = SQLiteIdentifier.quoted(column.column)
      steps.append(
        HopProgram.StatementStep(
          subject: "\(column.entity).\(column.property)", .rows(of: column.table),
          "UPDATE \(qualified(column.table)) AS t SET \(name) ="
            + " CAST(X'01' || \(ExternalDataForm.contentFunction)(t.\(name)) AS BLOB)"
            + " WHERE substr(t.\(name), 1, 1) = X'02' AND NOT EXISTS (SELECT 1 FROM \(known) AS e"
            + " WHERE e.\"value\" = t.\(name) AND e.\"place\" = \(place) AND e.\"key\" = t.\"Z_PK\")"))
    }
    return steps.map(HopProgram.Step.update)
  }

  /// Whether a value with external storage may be copied to more than one object.
  private var mayShareFiles: Bool {
    let hasFiles = hop.source.entities.contains { $0.attributes.contains(where: \.hasExternalForm) }
    guard hasFiles, !ExternalDataColumn.all(in: hop.destinationSchema).isEmpty else { return false }
    if hop.mapped?.policies.isEmpty == false { return true }
    var carried: Set<[String]> = []
    for range in layout.ranges {
      let row = range.row
      for property in range.mapping.attributes {
        guard case .expression(let node)? = property.value else { continue }
        guard let (reached, attribute, _) = expressions.plainAttribute(node, row: row, prefix: "x") else {
          // The expression does not determine whose value it is.
          if expressions.reachesExternalStorage(node, row: row, range: range) { return true }
          continue
        }
        guard attribute.hasExternalForm else { continue }
        // Over a relationship or with a member, several rows may have the same value.
        guard reached.tables.isEmpty, row.variables.isEmpty else { return true }
        guard carried.insert([range.sourceEntity, attribute.name]).inserted else { return true }
      }
    }
    return false
  }
}
