// A function of hopd that SQLite calls: values in, a value out. SQLite sees only a pointer.

import CSQLite

/// Holds one registered function for as long as its connection lives.
final class FunctionBox {
  /// The callback for a function, or for a row of an aggregate function.
  typealias Call = @convention(c) (OpaquePointer?, Int32, UnsafeMutablePointer<OpaquePointer?>?) -> Void

  /// With it SQLite copies bytes before the call that passes them returns (SQLITE_TRANSIENT is a macro that Swift does
  /// not import).
  static var transient: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

  /// Returns nil if it failed.
  let body: ([SQLiteValue]) -> SQLiteValue?
  /// The effect of the function on its only argument, if that needs no values.
  let mapping: CaseMapping?

  init(mapping: CaseMapping? = nil, _ body: @escaping ([SQLiteValue]) -> SQLiteValue?) {
    self.mapping = mapping
    self.body = body
  }

  static let call: Call = { context, count, arguments in
    guard let context, let data = sqlite3_user_data(context) else { return }
    let box = Unmanaged<FunctionBox>.fromOpaque(data).takeUnretainedValue()
    if let mapping = box.mapping, count == 1, let argument = arguments?[0], mapping.answer(argument, to: context) {
      return
    }
    FunctionBox.answer(box.body((0..<Int(count)).map { FunctionBox.value(of: arguments?[$0]) }), to: context)
  }

  static func value(of argument: OpaquePointer?) -> SQLiteValue {
    guard let argument else { return .null }
    let count = Int(sqlite3_value_bytes(argument))
    switch sqlite3_value_type(argument) {
    case SQLITE_INTEGER: return .integer(sqlite3_value_int64(argument))
    case SQLITE_FLOAT: return .real(sqlite3_value_double(argument))
    case SQLITE_TEXT:
      guard let pointer = sqlite3_value_text(argument) else { return .null }
      return .text(String(decoding: UnsafeBufferPointer(start: pointer, count: count), as: UTF8.self))
    case SQLITE_BLOB:
      guard let pointer = sqlite3_value_blob(argument) else { return .blob([]) }
      return .blob(Array(UnsafeRawBufferPointer(start: pointer, count: count)))
    default: return .null
    }
  }

  /// Sets the result of a function; nil is a failure.
  static func answer(_ value: SQLiteValue?, to context: OpaquePointer) {
    guard let value else { return sqlite3_result_error(context, "a function of hopd failed", -1) }
    switch value {
    case .null: sqlite3_result_null(context)
    case .integer(let value): sqlite3_result_int64(context, value)
    case .real(let value): sqlite3_result_double(context, value)
    case .text(let value):
      sqlite3_result_text64(context, value, UInt64(value.utf8.count), transient, UInt8(SQLITE_UTF8))
    // A nil pointer would set NULL.
    case .blob(let bytes) where bytes.isEmpty: sqlite3_result_zeroblob(context, 0)
    case .blob(let bytes):
      bytes.withUnsafeBytes { sqlite3_result_blob64(context, $0.baseAddress, UInt64($0.count), transient) }
    }
  }
}
