// Tests of keys by a function of hopd. SQLite calls them for every row of a table, so their arguments are not
// converted: no value, no array, no text is made.

import CSQLite

extension Connection {
  /// Registers a function of a key, or of a key and a number, that returns 0 if `isKnown` is true or the key is NULL,
  /// and 1 otherwise, also for a value that is not an integer. With one argument the number is 0.
  ///
  /// It exists until `removeKeyTest`. The schema of a store cannot call it.
  package func registerKeyTest(
    _ name: String, argumentCount: Int32, _ isKnown: @escaping (_ key: Int64, _ number: Int64) -> Bool
  ) throws(SQLiteError) {
    let box = Unmanaged.passRetained(KeyTestBox(isKnown))
    // SQLite releases the box: when the function is removed, and also if it cannot be created.
    let code = sqlite3_create_function_v2(
      handle, name, argumentCount, SQLITE_UTF8 | SQLITE_DIRECTONLY, box.toOpaque(), KeyTestBox.call, nil, nil,
      KeyTestBox.release)
    guard code == SQLITE_OK else { throw error(code, sql: nil) }
  }

  /// Removes a function of `registerKeyTest` and releases its closure.
  package func removeKeyTest(_ name: String, argumentCount: Int32) {
    _ = sqlite3_create_function_v2(handle, name, argumentCount, SQLITE_UTF8, nil, nil, nil, nil, nil)
  }
}

private final class KeyTestBox {
  let isKnown: (Int64, Int64) -> Bool

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
    let box = Unmanaged<KeyTestBox>.fromOpaque(data).takeUnretainedValue()
    sqlite3_result_int(context, box.isKnown(sqlite3_value_int64(key), number) ? 0 : 1)
  }

  static let release: @convention(c) (UnsafeMutableRawPointer?) -> Void = { data in
    if let data { Unmanaged<KeyTestBox>.fromOpaque(data).release() }
  }
}
