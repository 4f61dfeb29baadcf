// Interruption, progress, and registered SQL functions.

import CLinux
import CSQLite
import Glibc
import SystemPackage

extension Connection {
  /// Calls `body` about every `interval` steps of SQLite's virtual machine; if it returns false, the statement is
  /// interrupted.
  package func setProgressHandler(every interval: Int32 = 20_000, _ body: (() -> Bool)?) {
    guard let body else {
      sqlite3_progress_handler(handle, 0, nil, nil)
      progress = nil
      return
    }
    let box = ProgressBox(body)
    progress = box
    sqlite3_progress_handler(
      handle, interval,
      { context in
        guard let context else { return 0 }
        return Unmanaged<ProgressBox>.fromOpaque(context).takeUnretainedValue().body() ? 0 : 1
      }, Unmanaged.passUnretained(box).toOpaque())
  }

  /// Registers a function of `argumentCount` arguments that always returns NULL.
  ///
  /// Core Data's triggers for derived attributes call functions that exist only in processes with Core Data
  /// (docs/formats/store-layout.md, "Derived attributes").
  package func registerNullFunction(_ name: String, argumentCount: Int32) throws(SQLiteError) {
    try create(name, argumentCount, SQLITE_INNOCUOUS, call: { context, _, _ in sqlite3_result_null(context) })
  }

  /// Registers a deterministic function from values to a value.
  package func registerFunction(
    _ name: String, argumentCount: Int32, _ body: @escaping ([SQLiteValue]) -> SQLiteValue
  ) throws(SQLiteError) {
    try create(
      name, argumentCount, SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS, by: FunctionBox(body), call: FunctionBox.call)
  }

  /// Registers a function from values to a value that may fail. Then the statement fails, and `takeFunctionFailure`
  /// returns the error. The schema of a store cannot call the function.
  ///
  /// An `argumentCount` of -1 allows any number. A deterministic function depends on its arguments alone; SQLite calls
  /// it once if they are constant. `mapping` is its effect on ASCII text as its only argument.
  package func registerFailingFunction(
    _ name: String, argumentCount: Int32, isDeterministic: Bool = false, mapping: CaseMapping? = nil,
    _ body: @escaping ([SQLiteValue]) throws -> SQLiteValue
  ) throws(SQLiteError) {
    let box = FunctionBox(mapping: mapping) { [unowned self] values in caught { try body(values) } }
    try create(
      name, argumentCount, SQLITE_DIRECTONLY | (isDeterministic ? SQLITE_DETERMINISTIC : 0), by: box,
      call: FunctionBox.call)
  }

  /// Registers an aggregate function of `argumentCount` arguments. It may fail as in `registerFailingFunction`. `start`
  /// makes the state of one group, also of a group without rows.
  package func registerAggregate<State>(
    _ name: String, argumentCount: Int32, start: @escaping () -> State,
    step: @escaping (inout State, [SQLiteValue]) throws -> Void, finish: @escaping (State) throws -> SQLiteValue
  ) throws(SQLiteError) {
    let box = AggregateBox { [unowned self] in
      var state = start()
      return AggregateGroup(
        step: { values in self.caught { try step(&state, values) } != nil },
        finish: { self.caught { try finish(state) } })
    }
    try create(name, argumentCount, SQLITE_DIRECTONLY, by: box, step: AggregateBox.step, finish: AggregateBox.finish)
  }

  /// Creates an SQL function; `box`, which SQLite passes to every call, lives as long as the connection.
  private func create(
    _ name: String, _ argumentCount: Int32, _ flags: Int32, by box: AnyObject? = nil, call: FunctionBox.Call? = nil,
    step: FunctionBox.Call? = nil, finish: AggregateBox.Finish? = nil
  ) throws(SQLiteError) {
    if let box { functions.append(box) }
    let code = sqlite3_create_function_v2(
      handle, name, argumentCount, SQLITE_UTF8 | flags, box.map { Unmanaged.passUnretained($0).toOpaque() }, call, step,
      finish, nil)
    guard code == SQLITE_OK else { throw error(code, sql: nil) }
  }

  /// Returns the result of `body`; if it throws, keeps the error and returns nil.
  private func caught<Result>(_ body: () throws -> Result) -> Result? {
    do { return try body() } catch {
      functionFailure = error
      return nil
    }
  }

  /// Returns, once, the error of the registered function that made the last statement fail.
  package func takeFunctionFailure() -> (any Error)? {
    defer { functionFailure = nil }
    return functionFailure
  }

  /// The error of the last call on this connection.
  func error(_ code: Int32, sql: String?) -> SQLiteError {
    let extended = sqlite3_extended_errcode(handle)
    let matches = extended & 0xff == code & 0xff
    return SQLiteError(
      extendedCode: matches ? extended : code,
      message: matches ? String(cString: sqlite3_errmsg(handle)) : String(cString: sqlite3_errstr(code)), sql: sql,
      refusal: VFSRefusal.taken())
  }

  /// Version of the SQLite library at run time, as "3.40.1".
  package static var libraryVersion: String { String(cString: sqlite3_libversion()) }
}
