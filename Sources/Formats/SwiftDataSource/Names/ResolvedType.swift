// What a written type is: one of the types that SwiftData stores by itself, a type of the target, or something that
// hopd does not know.

import Diagnostics
import ManagedObjectModel
import SystemPackage

/// A type after its names are resolved.
indirect enum ResolvedType: Sendable, Hashable {
  /// A type whose attribute type is proven.
  case plain(String, AttributeType)
  /// A type of Swift or Foundation whose attribute type was never compared with Apple's software.
  case unproven(String)
  case model(Int)
  case structure(Int)
  case enumeration(Int)
  /// SwiftUI's Color.Resolved.
  case resolvedColor
  case optional(ResolvedType)
  case array(ResolvedType)
  case set(ResolvedType)
  case dictionary(ResolvedType, ResolvedType)
  /// A type that SwiftData cannot store, or one whose source is not here: its text and the reason.
  case other(String, String)

  /// The type without optionality around it, and whether there was one.
  var unwrapped: (type: ResolvedType, isOptional: Bool) {
    if case .optional(let inner) = self { (inner, true) } else { (self, false) }
  }
}

extension ResolvedType {
  /// The attribute types of Swift's and Foundation's types; the numbers are the version hashes that Apple's software
  /// made of them, and their owners.
  static let plainTypes: [String: AttributeType] = [
    "String": .string,  // 90, of 9
    "Int": .integer64,  // 23, of 7
    "Int64": .integer64,  // 29, of 2
    "UInt64": .integer64,  // 7, of 1
    "Int32": .integer32,  // 54, of 2
    "UInt32": .integer32,  // 14, of 2
    "Int16": .integer16,  // 4, of 3
    "UInt8": .integer16,  // 5, of 1
    "Double": .double,  // 15, of 3
    "TimeInterval": .double,  // 1, of 1
    "Float": .float,  // 17, of 1
    "CGFloat": .float,  // 1, of 1; Double was tried and differs
    "Bool": .boolean,  // 69, of 4
    "Date": .date,  // 52, of 7
    "Data": .binary,  // 30, of 4
    "UUID": .uuid,  // 26, of 5
    "Decimal": .decimal,  // 6, of 2
  ]

  /// Types for which there is an expectation and no evidence, with the attribute types to try, the likeliest first.
  static let unprovenTypes: [String: [AttributeType]] = [
    "Int8": [.integer16, .integer32, .integer64],
    "UInt16": [.integer32, .integer16, .integer64],
    "UInt": [.integer64, .integer32, .decimal],
    "URL": [.uri, .string, .binary, .transformable],
    "Character": [.string, .binary, .transformable],
    "Float16": [.float, .binary, .transformable],
  ]

  /// Modules whose name may stand before their types.
  fileprivate static let modules: Set<String> = ["Swift", "Foundation", "CoreGraphics", "SwiftUI", "SwiftUICore"]
}

extension SourceTarget {
  /// Returns what a written type is at a place.
  func resolve(_ type: SourceType, in scope: SourceScope, depth: Int = 0) -> ResolvedType {
    guard depth < 32 else { return .other(type.text, "it is nested too deeply") }
    func inner(_ type: SourceType) -> ResolvedType { resolve(type, in: scope, depth: depth + 1) }
    switch type {
    case .optional(let wrapped): return .optional(inner(wrapped))
    case .array(let element): return .array(inner(element))
    case .dictionary(let key, let value): return .dictionary(inner(key), inner(value))
    case .other(let text): return .other(text, "SwiftData stores no type of this form")
    case .name(let path): return resolve(path, in: scope, depth: depth)
    }
  }

  private func resolve(_ path: [SourceTypeName], in scope: SourceScope, depth: Int) -> ResolvedType {
    let text = SourceType.name(path).text
    switch resolve(declared: path.map(\.name), in: scope) {
    case .type(let index):
      let symbol = types[index]
      if let fault = fault(in: symbol) { return .other(text, fault) }
      if symbol.declaration.kind == .typealias {
        guard symbol.declaration.isGeneric != true, let aliased = symbol.declaration.aliased else {
          return .other(text, "it is a generic typealias")
        }
        return resolve(aliased, in: symbol.scope, depth: depth + 1)
      }
      return kind(of: symbol, text: text)
    case .ambiguous(let indices):
      let places = indices.prefix(4).map { place(of: types[$0]) }.joined(separator: ", ")
      return .other(text, "several declarations have this name: \(places)")
    case .unknown: return external(path, in: scope, text: text, depth: depth)
    }
  }

  /// The meaning of a path whose last name may be a typealias, which is not followed: its type may not be one of
  /// the target.
  private func resolve(declared path: [String], in scope: SourceScope) -> Meaning { resolve(path, in: scope) }

  private func kind(of symbol: SourceSymbol, text: String) -> ResolvedType {
    if symbol.declaration.isGeneric == true { return .other(text, "it is generic") }
    switch symbol.declaration.kind {
    case .class where symbol.isModel: return .model(symbol.index)
    case .struct: return .structure(symbol.index)
    case .enum: return .enumeration(symbol.index)
    case .class: return .other(text, "it is a class without @Model")
    case .actor, .protocol, .extension, .typealias:
      return .other(text, "it is \(symbol.declaration.kind == .actor ? "an actor" : "a protocol")")
    }
  }

  private func external(
    _ path: [SourceTypeName], in scope: SourceScope, text: String, depth: Int
  ) -> ResolvedType {
    let names = path.count > 1 && ResolvedType.modules.contains(path[0].name) ? Array(path.dropFirst()) : path
    if names.map(\.name) == ["Color", "Resolved"] { return .resolvedColor }
    guard names.count == 1, let only = names.first else { return .other(text, "its source is not here") }
    if let arguments = only.arguments {
      func inner(_ type: SourceType) -> ResolvedType { resolve(type, in: scope, depth: depth + 1) }
      switch (only.name, arguments.count) {
      case ("Set", 1): return .set(inner(arguments[0]))
      case ("Optional", 1): return .optional(inner(arguments[0]))
      case ("Array", 1): return .array(inner(arguments[0]))
      case ("Dictionary", 2): return .dictionary(inner(arguments[0]), inner(arguments[1]))
      default: return .other(text, "its source is not here")
      }
    }
    if let type = ResolvedType.plainTypes[only.name] { return .plain(only.name, type) }
    if ResolvedType.unprovenTypes[only.name] != nil { return .unproven(only.name) }
    return .other(text, "its source is not here")
  }

  /// The syntax error in a file that declares a type or extends it; nil if there is none.
  private func fault(in symbol: SourceSymbol) -> String? {
    for file in [symbol.scope.file] + symbol.extensions.map(\.file) {
      guard let first = facts[file].faults?.first else { continue }
      return "its file has a syntax error: \(place(of: first, in: file)): \(first.message)"
    }
    return nil
  }

  /// The place of a syntax error.
  func place(of fault: SyntaxFault, in file: Int) -> Place {
    Place(file: FilePath(files[file]), line: fault.position.line, column: fault.position.column)
  }

  /// File and line of a declaration.
  func place(of symbol: SourceSymbol) -> String {
    "\(files[symbol.scope.file]):\(symbol.declaration.position.line)"
  }
}

extension SourceType {
  /// The type as written.
  var text: String {
    switch self {
    case .name(let path):
      path.map { name in
        name.name + (name.arguments.map { "<\($0.map(\.text).joined(separator: ", "))>" } ?? "")
      }
      .joined(separator: ".")
    case .optional(let wrapped): "\(wrapped.text)?"
    case .array(let element): "[\(element.text)]"
    case .dictionary(let key, let value): "[\(key.text): \(value.text)]"
    case .other(let text): text
    }
  }
}
