import ArgumentParser

/// `--columns` of commands that print a table.
struct ColumnsOption: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "Print a table of these columns, in this order",
      discussion: """
        Names are the titles in lower case, with - for a space; an unknown name lists all of them. --json has all \
        columns.
        """,
      valueName: "a,b,c"))
  var columns: String?

  /// The names that were given.
  var names: [String]? { columns.map { $0.split(separator: ",").map { String($0) } } }

  func validate() throws {
    if let names, names.isEmpty { throw ValidationError("--columns expects names, e.g. state,store.") }
  }
}
