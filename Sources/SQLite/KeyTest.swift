// Tests of keys by a function of hopd. SQLite calls them for every row of a table, so their arguments are not
// converted: no value, no array, no text is made.

import CSQLite

extension Connection {
  /// Registers a function of a key, or of a key and a number, that returns 0 if `isKnown` is true or the key is NULL,
  /// and 1 otherwise, also for a value that is not an integer. With one argument the number is 0.
  ///
  /// Calls fail after `removeKeyTest`. The schema of a store cannot call it.
  package func registerKeyTest(
    _ name: String, argumentCount: Int32, _ isKnown: @escaping (_ key: Int64, _ number: Int64) -> Bool
  ) throws(SQLiteError) {
    let key = keyTest(name, argumentCount)
    if let known = functions[key] as? KeyTestBox {
      known.isKnown = isKnown
    } else {
      try create(key, by: KeyTestBox(isKnown), call: KeyTestBox.call)
    }
  }

  /// Releases the closure of `registerKeyTest`. The function stays: without it SQLite would compile every statement of
  /// the connection again.
  package func removeKeyTest(_ name: String, argumentCount: Int32) {
    (functions[keyTest(name, argumentCount)] as? KeyTestBox)?.isKnown = nil
  }

  private func keyTest(_ name: String, _ argumentCount: Int32) -> FunctionName {
    FunctionName(text: name, argumentCount: argumentCount, flags: SQLITE_DIRECTONLY)
  }
}

private final class KeyTestBox {
  var isKnown: ((Int64, Int64) -> Bool)?

  init(_ isKnown: @escaping (Int64, Int64) -> Bool) { self.isKnown = isKnown }

  static let call: FunctionBox.Call = { context, count, arguments in
    guard let context, let data = sqlite3_user_data(context), count > 0, let key = arguments?[0] else { return }
    switch sqlite3_value_type(key) {
    case SQLITE_INTEGER: break
    case SQLITE_NULL: return sqlite3_result_int(context, 0)
    default: return sqlite3_result_int(context, 1)
    }
    var number: Int64 = 0
    if count > 1 {
      guard let second = arguments?[1], sqlite3_value_type(second) == SQLITE_INTEGER else {
        return sqlite3_result_int(context, 1)
      }
      number = sqlite3_value_int64(second)
    }
    guard let isKnown = Unmanaged<KeyTestBox>.fromOpaque(data).takeUnretainedValue().isKnown else {
      return sqlite3_result_error(context, "a test of keys was called after its end", -1)
    }
    sqlite3_result_int(context, isKnown(sqlite3_value_int64(key), number) ? 0 : 1)
  }
}
