// Tables during the reading of their document, with the rules for extending them. TOML defines a table at most once,
// but lets several headers and dotted keys add to some tables, so a finished `TOMLNode` cannot be used for this.

/// A table during reading. A class, so that adding an entry never copies the table.
final class TableDraft {
  /// The construct that defined the table, which decides what may extend it.
  enum Definition {
    /// A header below it (`[a.b]` for `a`): a header of its own may follow.
    case implied
    /// Its own header, or the braces of an inline table: only headers below it may follow.
    case header
    /// A dotted key: more dotted keys and headers below it may follow.
    case dottedKey
  }

  /// An entry of a table.
  enum Entry {
    case table(TableDraft)
    case list(TableListDraft)
    /// A finished value; inline tables and arrays with brackets are finished at once.
    case value(TOMLNode)

    /// The name of the kind, as messages use it.
    var kind: String {
      switch self {
      case .table: "table"
      case .list: "array"
      case .value(let node): node.value.kind
      }
    }
  }

  var entries: [String: Entry] = [:]
  var definition: Definition
  var position: SourcePosition?
  /// Number of keys and indexes from the root to this table.
  let depth: Int

  init(_ definition: Definition, at position: SourcePosition?, depth: Int) {
    self.definition = definition
    self.position = position
    self.depth = depth
  }
}

/// The tables of one array of tables (`[[name]]`), in order; never empty.
final class TableListDraft {
  private(set) var tables: [TableDraft]
  let position: SourcePosition
  /// The newest table, which headers below the array extend.
  private(set) var last: TableDraft

  init(_ first: TableDraft, at position: SourcePosition) {
    tables = [first]
    last = first
    self.position = position
  }

  func append(_ table: TableDraft) {
    tables.append(table)
    last = table
  }
}
