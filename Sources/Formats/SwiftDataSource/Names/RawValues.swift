// The raw values of an enum: those that are written, and those that Swift gives to the other cases.

import ManagedObjectModel

extension SourceTarget {
  /// Returns the raw values of the cases; empty if the enum has none, or others than texts and numbers.
  func rawValues(ofEnum index: Int) -> [AttributeDefault] {
    let symbol = types[index]
    guard let first = symbol.declaration.inherited?.first, case .plain(_, let type) = resolve(first, in: symbol.scope)
    else { return [] }
    var values: [AttributeDefault] = []
    var next: Int64? = 0
    for one in symbol.declaration.cases ?? [] where one.condition == nil {
      switch (type.form, one.rawValue) {
      case (.string, nil): values.append(.string(one.name))
      case (.string, .string(let text)?): values.append(.string(text))
      case (.integer, nil):
        guard let number = next else { continue }
        values.append(.integer(number))
        next = Self.after(number)
      case (.integer, .integer(let text)?):
        guard let number = Int64(text) else { continue }
        values.append(.integer(number))
        next = Self.after(number)
      case (.real, .real(let text)?), (.real, .integer(let text)?):
        if let number = Double(text) { values.append(.double(number)) }
      default: next = nil
      }
    }
    return values
  }

  private static func after(_ number: Int64) -> Int64? {
    let (next, overflow) = number.addingReportingOverflow(1)
    return overflow ? nil : next
  }
}
