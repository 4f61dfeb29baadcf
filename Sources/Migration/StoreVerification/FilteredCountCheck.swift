// The values of filtered counts are the numbers of objects for which their conditions hold.

import Diagnostics
import PersistentStore
import SQLite

extension ContentChecks {
  /// Checks that every filtered count is the number of objects for which its condition holds.
  func filteredCounts() throws(SQLiteError) -> VerificationCheck {
    var problems: [String] = []
    var compared: Int64 = 0
    for count in census.schema.filteredCounts {
      let answers = try census.reader.connection.rows(count.comparison(qualified: census.reader.qualified)) {
        ($0.integer(at: 0), $0.integer(at: 1))
      }
      let (all, wrong) = answers.first ?? (0, 0)
      compared &+= all
      if wrong > 0 {
        problems.append(
          "\(wrong.grouped) of \(all.grouped) values of \(count.entity).\(count.attribute) are not the count")
      }
    }
    return VerificationCheck(
      name: "filtered-counts", problems: problems,
      fine: "\(compared) filtered counts are the numbers of objects that they count")
  }
}
