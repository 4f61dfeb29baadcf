// Lists of models: `[Item.self, Tag.self]`, sums of such lists, and references to them. Nothing is run, so a list that
// is computed in any other way is refused.

import Diagnostics
import SystemPackage

extension SourceTarget {
  /// Returns the classes of a list, each once.
  func models(
    _ expression: SourceExpression, in scope: SourceScope, at place: Place, depth: Int = 0
  ) throws(HopdError) -> [SourceSymbol] {
    var result: [SourceSymbol] = []
    for symbol in try allModels(expression, in: scope, at: place, depth: depth)
    where !result.contains(where: { $0.index == symbol.index }) {
      result.append(symbol)
    }
    return result
  }

  private func allModels(
    _ expression: SourceExpression, in scope: SourceScope, at place: Place, depth: Int
  ) throws(HopdError) -> [SourceSymbol] {
    guard depth < 32 else { throw computed(expression, place) }
    try requireParsed(scope.file)
    switch expression {
    case .array(let parts), .sum(let parts):
      var result: [SourceSymbol] = []
      for part in parts { result += try allModels(part, in: scope, at: place, depth: depth + 1) }
      return result
    case .cast(let value, _): return try allModels(value, in: scope, at: place, depth: depth + 1)
    case .path(let path) where path.last == "self" && path.count > 1:
      return [try model(Array(path.dropLast()), in: scope, at: place)]
    case .path(let path):
      guard let (property, inner) = reference(path, in: scope), let value = property.value else {
        throw computed(expression, place)
      }
      return try allModels(value, in: inner, at: self.place(of: property, in: inner), depth: depth + 1)
    default: throw computed(expression, place)
    }
  }

  private func model(_ path: [String], in scope: SourceScope, at place: Place) throws(HopdError) -> SourceSymbol {
    let written = path.joined(separator: ".")
    switch resolve(SourceType.name(path.map { SourceTypeName(name: $0) }), in: scope) {
    case .model(let index): return types[index]
    case .other(_, let reason):
      throw HopdError(.sourceUnclear, "\(written) cannot be a model: \(reason)", at: place)
    default: throw HopdError(.sourceUnclear, "\(written) is not a class with @Model", at: place)
    }
  }

  private func computed(_ expression: SourceExpression, _ place: Place) -> HopdError {
    HopdError(
      .sourceUnclear, "the list of models is not written as a list: \(expression.text)", at: place,
      hint: "write it as [A.self, B.self], or pass the classes: --schema A,B")
  }

  /// The variable or static property that a path names.
  func reference(
    _ path: [String], in scope: SourceScope
  ) -> (property: SourceProperty, scope: SourceScope)? {
    guard let name = path.last else { return nil }
    let names = path.first == "Self" ? Array(path.dropFirst()) : path
    if names.count == 1 {
      for outer in scope.types.reversed() {
        if let found = staticProperty(name, of: types[outer]) { return found }
      }
      return variable(name, from: scope)
    }
    return symbol(Array(names.dropLast()), in: scope).flatMap { staticProperty(name, of: $0) }
  }

  /// Where a variable or static property is.
  func place(of property: SourceProperty, in scope: SourceScope) -> Place {
    Place(file: FilePath(files[scope.file]), line: property.position.line, column: property.position.column)
  }

  /// The identifier of a version, "1.2.0": three numbers in a call.
  func identifier(
    _ expression: SourceExpression, in scope: SourceScope, depth: Int = 0
  ) -> String? {
    guard depth < 16 else { return nil }
    switch expression {
    case .call(.path(let path), let arguments):
      guard arguments.count == 3, ["Version", "init"].contains(path.last) else { return nil }
      let numbers = arguments.compactMap { argument -> String? in
        guard case .integer(let digits) = argument.value else { return nil }
        return digits
      }
      return numbers.count == 3 ? numbers.joined(separator: ".") : nil
    case .cast(let value, _): return identifier(value, in: scope, depth: depth + 1)
    case .path(let path):
      guard let (property, inner) = reference(path, in: scope), let value = property.value else { return nil }
      return identifier(value, in: inner, depth: depth + 1)
    default: return nil
    }
  }
}
