// The types of one target, and what a name means at a place. Swift looks a name up in the types around the place, from
// the inside out, then among the types of the target; names of other modules are not in the source.

/// All files of one target: names resolve inside of it.
package struct SourceTarget: Sendable {
  /// The files, in the order they were given.
  package let files: [String]
  let facts: [SourceFile]
  /// Name of the target, by which its own code may call its types, `App.Item`.
  let module: String?
  private(set) var types: [SourceSymbol] = []
  /// Places of types by the key of the type around them and their name.
  private var members: [String: [String: [Int]]] = [:]

  /// Takes the files of a target, with their paths.
  package init(module: String? = nil, files: [(path: String, facts: SourceFile)]) {
    self.module = module
    self.files = files.map(\.path)
    facts = files.map(\.facts)
    var extensions: [(declaration: SourceDeclaration, file: Int)] = []
    for (index, file) in files.enumerated() {
      for declaration in file.facts.declarations {
        if declaration.kind == .extension {
          extensions.append((declaration, index))
        } else {
          add(declaration, in: SourceScope(file: index))
        }
      }
    }
    // An extension may extend a type that another one declares, whatever their order is; no source nests them deeply.
    for _ in 0..<64 where !extensions.isEmpty {
      let count = extensions.count
      extensions.removeAll { extended in
        let scope = SourceScope(file: extended.file)
        guard case .type(let index) = followed(resolve(extended.declaration.name, in: scope)) else { return false }
        add(extended.declaration, to: index, file: extended.file)
        return true
      }
      if extensions.count == count { break }
    }
  }

  private mutating func add(_ declaration: SourceDeclaration, in scope: SourceScope) {
    guard let name = declaration.name.last else { return }
    let index = types.count
    let path = (scope.types.last.map { types[$0].path } ?? []) + [name]
    types.append(SourceSymbol(declaration: declaration, path: path, scope: scope, index: index))
    let around = scope.types.last.map { types[$0].key } ?? ""
    members[around, default: [:]][name, default: []].append(index)
    let inner = SourceScope(file: scope.file, types: scope.types + [index])
    for member in declaration.members ?? [] { add(member, in: inner) }
  }

  /// Adds what an extension declares. Its scope is the extended type alone, not the types around that.
  private mutating func add(_ declaration: SourceDeclaration, to index: Int, file: Int) {
    types[index].extensions.append((declaration, file))
    for member in declaration.members ?? [] { add(member, in: SourceScope(file: file, types: [index])) }
  }

  // MARK: Names

  /// What a path of names means.
  enum Meaning {
    case type(Int)
    /// Several declarations fit.
    case ambiguous([Int])
    /// A name that is not in the source.
    case unknown
  }

  /// Returns the meaning of a path of names at a place; typealiases lead to what they name, if that is a type of the
  /// target.
  func resolve(_ path: [String], in scope: SourceScope, depth: Int = 0) -> Meaning {
    guard let first = path.first, depth < 32 else { return .unknown }
    var found = first == module && path.count > 1 ? .unknown : lookUp(first, in: scope)
    var rest = path.dropFirst()
    if case .unknown = found, first == module, let second = rest.first {
      found = meaning(of: members[""]?[second] ?? [], from: scope)
      rest = rest.dropFirst()
    }
    for name in rest {
      guard case .type(let outer) = followed(found, depth: depth) else { return found }
      found = meaning(of: members[types[outer].key]?[name] ?? [], from: scope)
    }
    return found
  }

  private func followed(_ meaning: Meaning, depth: Int = 0) -> Meaning {
    guard case .type(let index) = meaning, types[index].declaration.kind == .typealias else { return meaning }
    guard case .name(let path)? = types[index].declaration.aliased else { return .unknown }
    return followed(resolve(path.map(\.name), in: types[index].scope, depth: depth + 1), depth: depth + 1)
  }

  private func lookUp(_ name: String, in scope: SourceScope) -> Meaning {
    for outer in scope.types.reversed() {
      if let found = members[types[outer].key]?[name] { return meaning(of: found, from: scope) }
      if types[outer].path.last == name { return .type(outer) }
    }
    return meaning(of: members[""]?[name] ?? [], from: scope)
  }

  private func meaning(of candidates: [Int], from scope: SourceScope) -> Meaning {
    let own = candidates.filter { types[$0].declaration.isPrivate == true && types[$0].scope.file == scope.file }
    let visible =
      own.isEmpty
      ? candidates.filter { types[$0].declaration.isPrivate != true || !types[$0].scope.types.isEmpty } : own
    guard let first = visible.first else { return .unknown }
    guard visible.count > 1 else { return .type(first) }
    guard visible.count <= 64 else { return .ambiguous(visible) }
    // The same declaration twice, in two folders, means the same.
    let declarations = Set(visible.map { types[$0].declaration.withoutPositions })
    return declarations.count == 1 && visible.allSatisfy { types[$0].extensions.isEmpty }
      ? .type(first) : .ambiguous(visible)
  }

  /// Returns the type that a path names, through typealiases; nil for anything else.
  func symbol(_ path: [String], in scope: SourceScope) -> SourceSymbol? {
    guard case .type(let index) = followed(resolve(path, in: scope)) else { return nil }
    return types[index]
  }

  // MARK: Types by trait

  /// Types that say that they conform to a protocol, in the order of the files.
  func types(conformingTo name: String) -> [SourceSymbol] {
    types.filter { $0.declaration.kind != .protocol && conforms($0, to: [name]) }
  }

  /// Whether a type or one of its extensions names one of the protocols, or one that inherits from it.
  func conforms(_ type: SourceSymbol, to names: Set<String>) -> Bool {
    var seen: Set<Int> = [type.index]
    var queue = [type]
    while let type = queue.popLast() {
      let declarations = [(type.declaration, type.scope.file)] + type.extensions
      for (declaration, file) in declarations {
        for inherited in declaration.inherited ?? [] {
          guard case .name(let path) = inherited, let last = path.last?.name else { continue }
          if names.contains(last) { return true }
          let scope = SourceScope(file: file, types: type.scope.types)
          guard case .type(let index) = resolve(path.map(\.name), in: scope),
            types[index].declaration.kind == .protocol,
            seen.insert(index).inserted
          else { continue }
          queue.append(types[index])
        }
      }
    }
    return false
  }

  /// A static property of a type, or of its extensions, with the scope of its expressions; nil if it is compiled only
  /// under a condition.
  func staticProperty(_ name: String, of type: SourceSymbol) -> (property: SourceProperty, scope: SourceScope)? {
    let inner = SourceScope(file: type.scope.file, types: type.scope.types + [type.index])
    let places = [(type.declaration, inner)] + type.extensions.map { ($0, SourceScope(file: $1, types: [type.index])) }
    for (declaration, scope) in places {
      if let found = declaration.properties?.first(where: { $0.isStatic == true && $0.name == name }) {
        return found.condition == nil && declaration.condition == nil ? (found, scope) : nil
      }
    }
    return nil
  }

  /// A variable at the top of a file, the own file first.
  func variable(_ name: String, from scope: SourceScope) -> (property: SourceProperty, scope: SourceScope)? {
    for file in [scope.file] + facts.indices.filter({ $0 != scope.file }) {
      if let found = facts[file].variables.first(where: { $0.name == name }) {
        return found.condition == nil ? (found, SourceScope(file: file)) : nil
      }
    }
    return nil
  }
}

/// Where a name stands: its file and the types around it, outermost first.
struct SourceScope: Sendable, Hashable {
  var file: Int
  var types: [Int] = []
}

/// A type or a typealias of the target.
package struct SourceSymbol: Sendable {
  let declaration: SourceDeclaration
  /// Its name with the types around it.
  package let path: [String]
  /// Where it is declared.
  let scope: SourceScope
  let index: Int
  /// Its extensions with their files.
  var extensions: [(declaration: SourceDeclaration, file: Int)] = []

  /// The name of its own.
  package var name: String { path.last ?? "" }
  /// The path as one text.
  package var qualifiedName: String { path.joined(separator: ".") }
  /// The key of the scope that it makes.
  var key: String { "\(qualifiedName)#\(index)" }

  /// Whether it is a `@Model` class.
  package var isModel: Bool {
    declaration.kind == .class && declaration.attributes?.contains { $0.isNamed("Model") } == true
  }
  /// The scope inside of it.
  var inside: SourceScope { SourceScope(file: scope.file, types: scope.types + [index]) }
}

extension SourceAttribute {
  /// Whether it has that name, with or without its module.
  func isNamed(_ name: String) -> Bool { self.name == name || self.name == "SwiftData.\(name)" }
}

extension SourceDeclaration {
  /// The declaration as a value that does not depend on its place.
  fileprivate var withoutPositions: SourceDeclaration {
    let origin = SwiftPosition(line: 0, column: 0)
    var copy = self
    copy.position = origin
    func moved(_ attribute: SourceAttribute) -> SourceAttribute {
      var attribute = attribute
      attribute.position = origin
      return attribute
    }
    copy.attributes = attributes?.map(moved)
    copy.macros = macros?.map(moved)
    copy.members = members?.map(\.withoutPositions)
    copy.properties = properties?.map { property in
      var property = property
      property.position = origin
      property.attributes = property.attributes?.map(moved)
      return property
    }
    copy.cases = cases?.map { one in
      var one = one
      one.position = origin
      return one
    }
    return copy
  }
}
