// The keywords of the text language, and the words of NSExpression's language that hopd refuses, so that a refusal can
// name them (docs/formats/expressions.md, "Refused words" and "Functions").

/// A keyword; case does not matter in text.
enum ExpressionKeyword: String {
  case and = "AND"
  case or = "OR"
  case not = "NOT"
  case `in` = "IN"
  case all = "ALL"
  case any = "ANY"
  case some = "SOME"
  case none = "NONE"
  case like = "LIKE"
  case matches = "MATCHES"
  case contains = "CONTAINS"
  case beginsWith = "BEGINSWITH"
  case endsWith = "ENDSWITH"
  case between = "BETWEEN"
  case null = "NULL"
  case `nil` = "NIL"
  case `self` = "SELF"
  case `true` = "TRUE"
  case yes = "YES"
  case `false` = "FALSE"
  case no = "NO"
  case first = "FIRST"
  case last = "LAST"
  case size = "SIZE"
  case anyKey = "ANYKEY"
  case subquery = "SUBQUERY"
  case fetch = "FETCH"
  case cast = "CAST"
  case ternary = "TERNARY"
  case function = "FUNCTION"
  case truePredicate = "TRUEPREDICATE"
  case falsePredicate = "FALSEPREDICATE"
  case caseInsensitive = "CASEINSENSITIVE"
  case ci = "CI"

  /// The keyword of a name in any case; nil for other names.
  init?(name: String) {
    // The longest has 15 letters; all are ASCII.
    guard name.utf8.count <= 15, name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
    self.init(rawValue: name.uppercased())
  }

  /// The reason why the keyword is refused; nil if it is supported.
  var refusal: String? {
    switch self {
    case .anyKey: "ANYKEY is not supported: use the name of the key"
    case .fetch: "FETCH is not supported: an expression sees the objects of its own entity mapping only"
    case .caseInsensitive, .ci: "\(rawValue) is not supported: write the modifier [c] behind the operator"
    default: nil
    }
  }
}

/// The words that are refused by name.
enum ExpressionRefusal {
  /// Returns why a word between two expressions is refused; nil if it is not a known comparison.
  static func infix(_ name: String) -> String? {
    switch name.uppercased() {
    case "UNION", "INTERSECT", "MINUS": "\(name.uppercased()) of sets is not supported"
    case "UTI": "UTI-CONFORMS-TO and UTI-EQUALS are not supported"
    default: nil
    }
  }

  /// Returns why a function is refused.
  static func function(_ name: String) -> String {
    switch name {
    case "distanceToLocation:fromLocation:": return "geographic functions (\(name)) are not supported"
    case "random", "random:", "randomn:":
      return "\(name) is not supported: a migration that is resumed must give the same values again"
    case "BLOCKPREDICATE": return "block predicates are not supported: they are code of the app"
    default: return "the function \(name) is unknown"
    }
  }

  /// Returns what to type instead of an unknown function.
  static func functionHint(_ name: String) -> String {
    let bare = name.filter { $0 != ":" }.lowercased()
    let near = ExpressionFunction.allCases.first { function in
      let own = function.rawValue.filter { $0 != ":" }
      return own.lowercased() == bare || own.hasPrefix(bare) && bare.count >= 3
    }
    if let near { return "write \(near.rawValue)(…)" }
    return "use one of: " + ExpressionFunction.allCases.map(\.rawValue).joined(separator: " ")
      + " and CAST, TERNARY, SUBQUERY, FUNCTION"
  }
}

extension ExpressionFunction {
  /// The number of arguments that the function accepts.
  package var argumentCounts: ClosedRange<Int> {
    switch self {
    case .now: 0...0
    case .modulus, .bitwiseAnd, .bitwiseOr, .bitwiseXor, .leftShift, .rightShift: 2...2
    case .concatenate: 2...ExpressionLimits.members
    default: 1...1
    }
  }

  /// Returns why it does not accept that many arguments; nil if it does.
  func problem(ofCount count: Int) -> String? {
    let counts = argumentCounts
    if counts.contains(count) { return nil }
    let wanted =
      counts.lowerBound == counts.upperBound
      ? "\(counts.lowerBound)" : "\(counts.lowerBound) to \(counts.upperBound)"
    return "\(rawValue) takes \(wanted) arguments, not \(count)"
  }
}

extension ArithmeticOperator {
  /// The operator of a function of NSExpression: `a + b` is archived as `add:to:` (D: Apple's list of built-in
  /// functions).
  init?(functionName name: String) {
    switch name {
    case "add:to:": self = .add
    case "from:subtract:": self = .subtract
    case "multiply:by:": self = .multiply
    case "divide:by:": self = .divide
    case "raise:toPower:": self = .power
    default: return nil
    }
  }
}

extension CastTarget {
  /// CAST's name among the functions (docs/formats/expressions.md, "Functions").
  static let selector = "castObject:toType:"

  /// The target of a type name: Foundation's class or Core Data's type.
  init?(typeName name: String) {
    switch name {
    case "String": self = .string
    case "Decimal": self = .decimal
    case "Date": self = .date
    default:
      guard let target = CastTarget(rawValue: name) else { return nil }
      self = target
    }
  }
}

extension InstanceLookup {
  static let entityMappingSelector = "destinationInstancesForEntityMappingNamed:sourceInstances:"
  static let sourceRelationshipSelector = "destinationInstancesForSourceRelationshipNamed:sourceInstances:"

  /// The lookup that a selector of the migration manager makes for that name; nil for other selectors.
  init?(selector: String, name: String) {
    switch selector {
    case Self.entityMappingSelector: self = .entityMapping(name)
    case Self.sourceRelationshipSelector: self = .sourceRelationship(name)
    default: return nil
    }
  }

  /// The lookup's selector and name.
  var parts: (selector: String, name: String) {
    switch self {
    case .entityMapping(let name): (Self.entityMappingSelector, name)
    case .sourceRelationship(let name): (Self.sourceRelationshipSelector, name)
    }
  }
}
