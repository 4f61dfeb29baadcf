// Value expressions and predicates as one tree, read from an archive in a mapping model or from text. The tree is plain
// data: the checker finds its types, the evaluator and the SQL compiler its values, and the printer writes its text.

/// A value expression (NSExpression).
package indirect enum ExpressionNode: Sendable, Hashable {
  /// A constant; `.null` is the constant nil, which sets nil (docs/formats/expressions.md, "Value expressions").
  case constant(ConstantValue)
  /// SELF: the object that a predicate is evaluated on.
  case selfObject
  /// A variable, by its name without `$`.
  case variable(String)
  /// A key path on another expression; a bare `name` has `selfObject` as its base. Never empty.
  case keyPath(ExpressionNode, [KeyPathStep])
  /// A built-in function with its arguments (docs/formats/expressions.md, "Functions").
  case function(ExpressionFunction, [ExpressionNode])
  /// `CAST(expression, 'type')`.
  case cast(ExpressionNode, CastTarget)
  /// `TERNARY(predicate, a, b)`.
  case ternary(PredicateNode, ExpressionNode, ExpressionNode)
  /// `SUBQUERY(collection, $variable, predicate)`.
  case subquery(ExpressionNode, variable: String, PredicateNode)
  /// `{a, b, c}`.
  case aggregate([ExpressionNode])
  /// `collection[0]`, `[FIRST]`, `[LAST]`, `[SIZE]`.
  case element(ExpressionNode, ElementIndex)
  /// `+ - * / **`.
  case arithmetic(ArithmeticOperator, ExpressionNode, ExpressionNode)
  /// Unary minus.
  case negated(ExpressionNode)
  /// `FUNCTION($manager, "destinationInstances…", …)`: the objects that the hop made for source objects.
  case destinationInstances(InstanceLookup, ExpressionNode)
  /// `FUNCTION($entityPolicy, "selector", arguments…)`: a method that only the policy can supply.
  case policyMethod(selector: String, [ExpressionNode])
}

extension ExpressionNode {
  /// Returns the node with `part` applied to its parts; the parts of its predicates are their expressions.
  func mapping(_ part: (ExpressionNode) -> ExpressionNode) -> ExpressionNode {
    switch self {
    case .constant, .selfObject, .variable: self
    case .keyPath(let base, let steps): .keyPath(part(base), steps)
    case .function(let function, let arguments): .function(function, arguments.map(part))
    case .cast(let operand, let target): .cast(part(operand), target)
    case .ternary(let condition, let first, let second): .ternary(condition.mapping(part), part(first), part(second))
    case .subquery(let collection, let variable, let condition):
      .subquery(part(collection), variable: variable, condition.mapping(part))
    case .aggregate(let members): .aggregate(members.map(part))
    case .element(let base, let index): .element(part(base), index)
    case .arithmetic(let operation, let left, let right): .arithmetic(operation, part(left), part(right))
    case .negated(let operand): .negated(part(operand))
    case .destinationInstances(let lookup, let objects): .destinationInstances(lookup, part(objects))
    case .policyMethod(let selector, let arguments): .policyMethod(selector: selector, arguments.map(part))
    }
  }
}

/// A constant.
package enum ConstantValue: Sendable, Hashable {
  case null
  case boolean(Bool)
  case integer(Int64)
  case double(Double)
  /// Digits with `.`; computed in decimal.
  case decimal(String)
  case string(String)
  /// Seconds since 2001-01-01 UTC.
  case date(Double)
  case data([UInt8])
  /// 16 bytes.
  case uuid([UInt8])
}

/// One step of a key path.
package enum KeyPathStep: Sendable, Hashable {
  /// A property's name.
  case key(String)
  /// `@count`, `@sum` …; the operator's path follows as keys.
  case collection(CollectionOperator)
  /// `objectID.URIRepresentation.path` as a whole: "/Entity/pN" of the source store (docs/formats/expressions.md,
  /// "Value expressions").
  case objectPath
}

/// A collection operator of a key path, by its KVC name.
package enum CollectionOperator: String, Sendable, Hashable, CaseIterable {
  case count = "@count"
  case sum = "@sum"
  case min = "@min"
  case max = "@max"
  case average = "@avg"
  case unionOfObjects = "@unionOfObjects"
  case distinctUnionOfObjects = "@distinctUnionOfObjects"
  case distinctUnionOfSets = "@distinctUnionOfSets"
}

/// A function, by its name in text.
package enum ExpressionFunction: String, Sendable, Hashable, CaseIterable {
  case count = "count:"
  case sum = "sum:"
  case min = "min:"
  case max = "max:"
  case average = "average:"
  case absolute = "abs:"
  case ceiling = "ceiling:"
  case floor = "floor:"
  case truncate = "trunc:"
  case modulus = "modulus:by:"
  case squareRoot = "sqrt:"
  /// The logarithm to base 10.
  case logarithm = "log:"
  /// The logarithm to base e.
  case naturalLogarithm = "ln:"
  case exponential = "exp:"
  case median = "median:"
  /// The most frequent values, as a list.
  case mode = "mode:"
  /// The standard deviation of the values as a whole population.
  case standardDeviation = "stddev:"
  case bitwiseAnd = "bitwiseAnd:with:"
  case bitwiseOr = "bitwiseOr:with:"
  case bitwiseXor = "bitwiseXor:with:"
  case leftShift = "leftshift:by:"
  case rightShift = "rightshift:by:"
  case onesComplement = "onesComplement:"
  /// The value itself; in Core Data a hint to use no index.
  case noIndex = "noindex:"
  /// Text without case and diacritics, as derived attributes store it.
  case canonical = "canonical:"
  case uppercase = "uppercase:"
  case lowercase = "lowercase:"
  case length = "length:"
  /// hopd's own name for `stringByAppendingString:`, with two texts or more.
  case concatenate = "concat:"
  /// The moment of the hop, one value for all its rows.
  case now = "now"
}

/// The target type of `CAST`.
package enum CastTarget: String, Sendable, Hashable, CaseIterable {
  case string = "NSString"
  case number = "NSNumber"
  case decimal = "NSDecimalNumber"
  case date = "NSDate"
  /// Core Data's own type names, which hopd accepts too.
  case integer16 = "Integer 16"
  case integer32 = "Integer 32"
  case integer64 = "Integer 64"
  case double = "Double"
  case float = "Float"
  case boolean = "Boolean"
}

/// An index into a collection.
package enum ElementIndex: Sendable, Hashable {
  case position(Int64)
  case first
  case last
  case size
}

/// An arithmetic operator, by its sign.
package enum ArithmeticOperator: String, Sendable, Hashable, CaseIterable {
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case power = "**"
}

/// The mappings whose objects a lookup finds.
package enum InstanceLookup: Sendable, Hashable {
  /// `destinationInstancesForEntityMappingNamed:sourceInstances:` with that mapping's name.
  case entityMapping(String)
  /// `destinationInstancesForSourceRelationshipNamed:sourceInstances:` with that relationship's name: every mapping
  /// whose source entity is the object's own (docs/formats/expressions.md, "Relationship functions").
  case sourceRelationship(String)
}

/// A predicate (NSPredicate). Two-valued: true or false, never unknown (docs/formats/expressions.md, "One meaning").
package indirect enum PredicateNode: Sendable, Hashable {
  /// TRUEPREDICATE and FALSEPREDICATE.
  case constant(Bool)
  case comparison(Comparison)
  case and([PredicateNode])
  case or([PredicateNode])
  case not(PredicateNode)
}

extension PredicateNode {
  /// Returns the predicate with `expression` applied to its expressions.
  func mapping(_ expression: (ExpressionNode) -> ExpressionNode) -> PredicateNode {
    switch self {
    case .constant: return self
    case .comparison(var comparison):
      comparison.left = expression(comparison.left)
      comparison.right = expression(comparison.right)
      return .comparison(comparison)
    case .and(let parts): return .and(parts.map { $0.mapping(expression) })
    case .or(let parts): return .or(parts.map { $0.mapping(expression) })
    case .not(let part): return .not(part.mapping(expression))
    }
  }
}

/// A comparison of two expressions.
package struct Comparison: Sendable, Hashable {
  /// ANY (SOME), ALL, NONE, or none of them.
  package enum Modifier: String, Sendable, Hashable, CaseIterable {
    case direct = ""
    case any = "ANY"
    case all = "ALL"
    case none = "NONE"
  }

  /// The operators, as they are printed.
  package enum Operator: String, Sendable, Hashable, CaseIterable {
    case equal = "=="
    case notEqual = "!="
    case less = "<"
    case lessOrEqual = "<="
    case greater = ">"
    case greaterOrEqual = ">="
    case beginsWith = "BEGINSWITH"
    case contains = "CONTAINS"
    case endsWith = "ENDSWITH"
    case like = "LIKE"
    case matches = "MATCHES"
    case `in` = "IN"
    case between = "BETWEEN"
  }

  package var modifier: Modifier
  package var left: ExpressionNode
  package var operation: Operator
  package var right: ExpressionNode
  /// `[c]`: the comparison ignores case.
  package var ignoresCase: Bool
  /// `[d]`: the comparison ignores diacritics.
  package var ignoresDiacritics: Bool
  /// `[n]`: both sides are normalized already.
  package var isNormalized: Bool

  /// Creates a comparison.
  package init(
    _ left: ExpressionNode, _ operation: Operator, _ right: ExpressionNode, modifier: Modifier = .direct,
    ignoresCase: Bool = false, ignoresDiacritics: Bool = false, isNormalized: Bool = false
  ) {
    self.modifier = modifier
    self.left = left
    self.operation = operation
    self.right = right
    self.ignoresCase = ignoresCase
    self.ignoresDiacritics = ignoresDiacritics
    self.isNormalized = isNormalized
  }

  /// Returns the comparison with its sides swapped: `a IN b` and `b CONTAINS a` are the same.
  func swapped(_ operation: Operator) -> Comparison {
    var copy = self
    (copy.left, copy.operation, copy.right) = (right, operation, left)
    return copy
  }
}
