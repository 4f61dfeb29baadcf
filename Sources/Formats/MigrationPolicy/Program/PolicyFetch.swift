// Fetch requests: the predicate with arguments in NSPredicate's format, and the sort order.

extension MigrationManager {
  /// Fetches the objects of an entity and its subentities, in the order of `sort` and then by primary key.
  ///
  /// In the predicate `%@` stands for a value, `%K` for a key path, `%d` and `%f` for a number. Pass an object as
  /// `PolicyValue(object)`.
  ///
  /// ```swift
  /// try manager.fetch("Book", where: "%K > %d", "pages", 100, sort: [.ascending("title")])
  /// ```
  public func fetch(
    _ entityName: String, in side: PolicyObjectID.Side = .destination, where predicate: String? = nil,
    _ arguments: PolicyValue..., sort: [PolicySort] = [], limit: Int? = nil, offset: Int = 0
  ) throws -> [ManagedObject] {
    try fetch(entityName, side, predicate, arguments, sort, limit, PolicyPage(offset: offset))
  }

  /// Calls `body` with every object of an entity and its subentities, by primary key. It fetches a few hundred at a
  /// time and then releases them, so it serves any number of objects; `body` may change and delete them.
  public func forEach(
    _ entityName: String, in side: PolicyObjectID.Side = .destination, where predicate: String? = nil,
    _ arguments: PolicyValue..., body: (ManagedObject) throws -> Void
  ) throws {
    var last: Int64?
    while true {
      let page = try fetch(entityName, side, predicate, arguments, [], Self.pageSize, PolicyPage(after: last))
      for object in page { try body(object) }
      guard page.count == Self.pageSize, let end = page.last else { return }
      last = end.key
      try letGo()
    }
  }

  private static let pageSize = 500

  private func fetch(
    _ entityName: String, _ side: PolicyObjectID.Side, _ predicate: String?, _ arguments: [PolicyValue],
    _ sort: [PolicySort], _ limit: Int?, _ page: PolicyPage
  ) throws -> [ManagedObject] {
    _ = try entity(entityName, side)
    var format = PolicyPredicateFormat(arguments)
    let text = try predicate.map { try format.text($0) }
    return try found(
      .fetch(
        side: side, entity: entityName, predicate: text, limit: limit, objects: format.objects, sort: sort,
        page: page))
  }
}

extension PolicySort {
  /// Orders by ascending value; nil comes first.
  public static func ascending(_ keyPath: String) -> PolicySort { PolicySort(keyPath: keyPath) }
  /// Orders by descending value; nil comes last.
  public static func descending(_ keyPath: String) -> PolicySort { PolicySort(keyPath: keyPath, ascending: false) }
}

extension PolicyValue {
  /// An object, or `null`.
  public init(_ object: ManagedObject?) { self = object.map { .object($0.objectID) } ?? .null }

  /// Objects, in this order.
  public init(_ objects: [ManagedObject]) { self = .objects(objects.map(\.objectID)) }
}

/// Inserts arguments into the text of a predicate.
struct PolicyPredicateFormat {
  /// The objects among the arguments, by the variable names that represent them in the text.
  private(set) var objects: [String: PolicyObjectID] = [:]
  private var rest: ArraySlice<PolicyValue>
  private let isPlain: Bool

  init(_ arguments: [PolicyValue]) {
    rest = arguments[...]
    isPlain = arguments.isEmpty
  }

  /// Returns the text with every argument inserted and safely quoted. Quoted parts of the format stay unchanged.
  mutating func text(_ format: String) throws -> String {
    guard !isPlain else { return format }
    var result = ""
    var scalars = format.unicodeScalars[...]
    var quote: Unicode.Scalar?
    while let scalar = scalars.popFirst() {
      if let open = quote {
        result.unicodeScalars.append(scalar)
        if scalar == "\\", let escaped = scalars.popFirst() { result.unicodeScalars.append(escaped) }
        if scalar == open { quote = nil }
      } else if scalar == "%" {
        result += try argument(&scalars)
      } else {
        if scalar == "'" || scalar == "\"" { quote = scalar }
        result.unicodeScalars.append(scalar)
      }
    }
    guard rest.isEmpty else { throw PolicyError("more arguments than %@ in the predicate") }
    return result
  }

  /// Returns the text for a placeholder whose percent sign was read.
  private mutating func argument(_ scalars: inout Substring.UnicodeScalarView) throws -> String {
    var kind = scalars.popFirst()
    while kind == "l" { kind = scalars.popFirst() }
    guard let kind, ["@", "K", "d", "D", "i", "u", "U", "f", "F"].contains(kind) else {
      throw PolicyError(
        "%\(kind.map { String($0) } ?? "") has no meaning in a predicate: %@ stands for a value, %K for a key path")
    }
    guard let value = rest.popFirst() else { throw PolicyError("fewer arguments than %@ in the predicate") }
    switch (kind, value) {
    case ("K", .string(let path)): return try Self.keyPath(path)
    case ("K", _): throw PolicyError("%K takes a key path, as name or author.name")
    case ("@", _), (_, .integer), (_, .double), (_, .decimal), (_, .boolean): return try literal(value)
    default: throw PolicyError("%\(kind) in a predicate takes a number")
    }
  }

  /// A key path with every key marked as a name, so that none is read as a word of the language.
  private static func keyPath(_ path: String) throws -> String {
    let keys = path.split(separator: ".", omittingEmptySubsequences: false)
    let isPath = keys.enumerated().allSatisfy { index, key in
      let name = index > 0 && key.first == "@" ? key.dropFirst() : key
      guard let first = name.unicodeScalars.first, first == "_" || first.properties.isAlphabetic else { return false }
      return name.unicodeScalars.allSatisfy {
        $0 == "_" || $0.properties.isAlphabetic || $0.properties.numericType != nil
      }
    }
    guard isPath else { throw PolicyError("%K takes a key path, as name or author.name") }
    return keys.map { $0.first == "@" ? String($0) : "#" + $0 }.joined(separator: ".")
  }

  private mutating func literal(_ value: PolicyValue) throws -> String {
    switch value {
    case .null: return "NULL"
    case .boolean(let flag): return flag ? "TRUE" : "FALSE"
    case .integer(let value):
      // The lowest number cannot be written as a minus before a positive number.
      return value == .min ? "(-9223372036854775807 - 1)" : value < 0 ? "(\(value))" : "\(value)"
    case .double(let value) where value.isFinite: return "(\(value))"
    case .decimal(let digits): return "CAST('\(digits)', 'NSDecimalNumber')"
    case .date(let seconds) where seconds.isFinite: return "CAST(\(seconds), 'NSDate')"
    case .string(let text): return text.quotedForPredicate
    case .uuid(let bytes) where bytes.count == 16:
      return "CAST('\(String(decoding: Hexadecimal.uuid(bytes), as: UTF8.self))', 'NSUUID')"
    case .uuid: throw PolicyError("a UUID has 16 bytes")
    case .data(let bytes): return "CAST('\(Hexadecimal.text(bytes))', 'NSData')"
    case .list(let values): return "{" + (try values.map { try literal($0) }).joined(separator: ", ") + "}"
    case .object(let id): return "$" + name(of: id)
    case .objects(let ids): return "{" + ids.map { "$" + name(of: $0) }.joined(separator: ", ") + "}"
    case .double, .date: throw PolicyError("a number that is not finite has no form in a predicate's text")
    case .uri, .transformable, .variable:
      throw PolicyError("URIs and transformables have no form in a predicate's text: compare them in the policy")
    }
  }

  private mutating func name(of id: PolicyObjectID) -> String {
    if let known = objects.first(where: { $0.value == id }) { return known.key }
    let name = "object\(objects.count)"
    objects[name] = id
    return name
  }
}

extension String {
  /// The text in single quotes, with the escapes of the predicate language.
  fileprivate var quotedForPredicate: String {
    var text = "'"
    for scalar in unicodeScalars {
      switch scalar {
      case "'": text += "\\'"
      case "\\": text += "\\\\"
      case "\n": text += "\\n"
      case "\r": text += "\\r"
      case "\t": text += "\\t"
      default: text.unicodeScalars.append(scalar)
      }
    }
    return text + "'"
  }
}

/// A request before it is encoded: changes are still in their short form.
package enum PolicyWireRequest {
  case apply([PolicyWireOperation])
  case plain(PolicyRequest)
}

extension PolicyRequest {
  /// Whether changes that were not sent yet could alter the answer.
  var dependsOnChanges: Bool {
    switch self {
    case .values(let ids, _): ids.contains { $0.side == .destination }
    case .fetch(let side, _, _, _, _, _, _): side == .destination
    case .destinationInstances, .sourceInstances: true
    case .apply, .lookup, .remember, .log: false
    }
  }
}
