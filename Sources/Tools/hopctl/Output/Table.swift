// Tables for people: a header, aligned columns, and on a terminal no row that is wider than it. Programs use --json.

import Diagnostics

/// A table of rows of one kind.
struct Table<Row> {
  /// A column that a command can print.
  struct Column: Sendable {
    /// Its name in `--columns`. Its title is the name in capitals.
    let name: String
    /// Whether it is aligned to the right.
    var isNumber = false
    /// Whether it may be shortened in front of its end: paths differ at their ends.
    var isPath = false
    /// Whether a narrow terminal leaves the column out: that with the highest number first, and those with 0 never.
    var rank = 0
    let cell: @Sendable (Row) -> TerminalText

    fileprivate var title: TerminalText { TerminalText(name.uppercased().replacing("-", with: " ")) }
  }

  /// The columns of the terminal that a path has before other columns are left out, and the fewest that it has.
  private static var enough: Int { 20 }
  private static var fewest: Int { 8 }
  private static var gap: Int { 2 }

  private let columns: [Column]
  /// Whether the user has chosen the columns: none is left out, and nothing but the rows is printed.
  let isChosen: Bool

  /// Creates a table of these columns.
  init(_ columns: [Column]) { (self.columns, isChosen) = (columns, false) }

  /// Creates a table of the columns in `--columns`, by default those in `shown`. Throws for an unknown name.
  init(_ all: [Column], shown: [String], _ options: ColumnsOption) throws(HopdError) {
    let names = options.names ?? shown
    var columns: [Column] = []
    for name in names {
      guard let column = all.first(where: { $0.name == name }) else {
        let known = all.map(\.name)
        throw HopdError(
          .usage, "unknown column '\(name.printableLine)'",
          hint: NearestName.hint(NearestName.among(known, to: name), of: known))
      }
      columns.append(column)
    }
    self.columns = columns
    isChosen = options.names != nil
  }

  /// Returns the header and a line for each row; `width` is that of the terminal, nil for none.
  func lines(of rows: [Row], width: Int?, indent: Int = 0) -> [TerminalText] {
    var columns = columns
    var cells = rows.map { row in columns.map { $0.cell(row).escaped } }
    cells.insert(columns.map(\.title), at: 0)
    var widths = columns.indices.map { column in cells.map { $0[column].columns }.max() ?? 0 }
    guard let width else { return Self.lines(cells, columns, widths, indent) }
    let room = width - indent
    // What the columns need at least, with the gaps between them.
    func need() -> Int {
      zip(columns, widths).reduce(-Self.gap) { $0 + Self.gap + ($1.0.isPath ? min($1.1, Self.enough) : $1.1) }
    }
    while !isChosen, need() > room, let most = columns.indices.max(by: { columns[$0].rank < columns[$1].rank }),
      columns[most].rank > 0
    {
      columns.remove(at: most)
      widths.remove(at: most)
      for row in cells.indices { cells[row].remove(at: most) }
    }
    for column in columns.indices where columns[column].isPath {
      let others = zip(widths.indices, widths).reduce(0) { $0 + ($1.0 == column ? 0 : $1.1 + Self.gap) }
      let left = max(min(widths[column], Self.fewest), room - others)
      guard left < widths[column] else { continue }
      let texts = cells.dropFirst().map { $0[column].description }
      let shared = Self.sharedFolders(of: texts)
      for row in cells.indices.dropFirst() {
        let text = cells[row][column]
        // The beginning that all have is cut first; paths that differ early are cut in their middle.
        let place = shared > text.columns - left ? String.Cut.start : .middle
        let isLong = text.description.fileName.columns >= left
        cells[row][column] = text.cut(to: left, at: isLong ? .name : place)
      }
      widths[column] = cells.map { $0[column].columns }.max() ?? 0
    }
    return Self.lines(cells, columns, widths, indent).map { $0.cut(to: width, at: .end) }
  }

  /// The columns of the terminal that the folders take which all paths have in common.
  private static func sharedFolders(of paths: [String]) -> Int {
    guard let first = paths.first else { return 0 }
    let shared = paths.dropFirst().reduce(first[...]) { shared, path in
      let count = zip(shared, path).prefix { $0 == $1 }.count
      return shared.prefix(count)
    }
    return (shared.lastIndex(of: "/").map { shared[...$0] } ?? "").columns
  }

  private static func lines(
    _ cells: [[TerminalText]], _ columns: [Column], _ widths: [Int], _ indent: Int
  ) -> [TerminalText] {
    cells.map { row in
      var line = TerminalText(String(repeating: " ", count: indent))
      for (index, cell) in row.enumerated() {
        let space = String(repeating: " ", count: max(0, widths[index] - cell.columns))
        if index > 0 { line = line + TerminalText(String(repeating: " ", count: gap)) }
        if columns[index].isNumber {
          line = line + TerminalText(space) + cell
        } else {
          line = line + cell
          // A line has no spaces at its end.
          if index < row.count - 1 { line = line + TerminalText(space) }
        }
      }
      return line
    }
  }
}

extension OutputOptions {
  /// Prints a table with its header; nothing if it has no rows. `details` are lines below a row; they are left out if
  /// the user has chosen the columns.
  func table<Row>(
    _ table: Table<Row>, _ rows: [Row], indent: Int = 0, details: (Row) throws -> [TerminalText] = { _ in [] }
  ) throws {
    guard !rows.isEmpty, !json, !quiet else { return }
    let lines = table.lines(of: rows, width: StandardStreams.Stream.output.size?.columns, indent: indent)
    try line(lines[0])
    for (text, row) in zip(lines.dropFirst(), rows) {
      try line(text)
      if !table.isChosen { try self.lines(details(row)) }
    }
  }
}
