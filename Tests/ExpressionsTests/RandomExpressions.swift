// Random trees of expressions and predicates in the form that the readers produce: those that NSExpression's text can
// express.

import Expressions
import SeededRandom

/// A random generator that makes trees.
struct ExpressionDice: RandomNumberGenerator {
  private var dice: Dice

  init(seed: UInt64) { dice = Dice(seed: seed) }

  mutating func next() -> UInt64 { dice.next() }

  mutating func pick<Element>(_ list: [Element]) -> Element { list[Int.random(in: 0..<list.count, using: &self)] }

  mutating func chance(_ one: Int, in all: Int) -> Bool { Int.random(in: 0..<all, using: &self) < one }

  // MARK: Leaves

  /// Without "path": after "objectID.URIRepresentation" it is not a key of its own but part of `objectPath`.
  private static let names = [
    "name", "Größe", "日付", "_x1", "size", "FIRST", "in", "And", "true", "nil", "self", "count", "any", "CAST", "union",
    "objectID", "e5", "paths", "URIRepresentation",
  ]
  private static let texts = [
    "", "a", "it's", "say \"x\"", "back\\slash", "tab\tline\nreturn\r", "nul\u{0}", "bell\u{7}", "é", "e\u{301}", "😀",
    "\u{2028}", "a.b@count", "\\u0041", "%@", "'", "\u{7f}",
  ]

  mutating func constant() -> ConstantValue {
    switch Int.random(in: 0..<9, using: &self) {
    case 0: return .null
    case 1: return .boolean(chance(1, in: 2))
    case 2: return .integer(pick([0, 1, -1, 42, .max, .min, Int64(bitPattern: next())]))
    case 3: return .double(double())
    case 4: return .decimal(pick(["0", "1.50", "-0.001", "123456789012345678901234567890.5"]))
    case 5: return .date(double())
    case 6: return .data((0..<Int.random(in: 0..<5, using: &self)).map { _ in UInt8(truncatingIfNeeded: next()) })
    case 7: return .uuid((0..<16).map { _ in UInt8(truncatingIfNeeded: next()) })
    default: return .string(pick(Self.texts))
    }
  }

  private mutating func double() -> Double {
    let number = pick([
      0, -0.0, 1, 1.5, -2.25, 1e300, -Double.leastNonzeroMagnitude, 0.1, Double.greatestFiniteMagnitude,
      Double(bitPattern: next()),
    ])
    return number.isFinite ? number : 7
  }

  private mutating func steps() -> [KeyPathStep] {
    var steps: [KeyPathStep] = (0..<Int.random(in: 1...3, using: &self)).map { _ in .key(pick(Self.names)) }
    switch Int.random(in: 0..<6, using: &self) {
    case 0: steps.append(.collection(.count))
    case 1:
      steps.append(.collection(pick(CollectionOperator.allCases.filter(\.takesPath))))
      steps.append(.key(pick(Self.names)))
    case 2: steps.append(.objectPath)
    default: break
    }
    return steps
  }

  // MARK: Trees

  mutating func expression(_ depth: Int) -> ExpressionNode {
    guard depth > 0 else {
      switch Int.random(in: 0..<4, using: &self) {
      case 0: return .variable(pick(["source", "x", "each"]))
      case 1: return chance(1, in: 3) ? .selfObject : .path(.selfObject, steps())
      case 2: return .path(.variable("source"), steps())
      default: return .constant(constant())
      }
    }
    let below = depth - 1
    switch Int.random(in: 0..<13, using: &self) {
    case 0: return .path(expression(below), steps())
    case 1:
      let function = pick(ExpressionFunction.allCases)
      let counts = function.argumentCounts
      let count = Int.random(in: counts.lowerBound...min(counts.upperBound, 4), using: &self)
      return .function(function, (0..<count).map { _ in expression(below) })
    case 2: return .cast(expression(below), pick(CastTarget.allCases))
    case 3: return .ternary(predicate(below), expression(below), expression(below))
    case 4: return .subquery(expression(below), variable: pick(["x", "y"]), predicate(below))
    case 5: return .aggregate((0..<Int.random(in: 0..<4, using: &self)).map { _ in expression(below) })
    case 6: return .element(expression(below), pick([.position(0), .position(.max), .first, .last, .size]))
    case 7, 8, 9: return .arithmetic(pick(ArithmeticOperator.allCases), expression(below), expression(below))
    case 10: return .negated(expression(below))
    case 11:
      let name = pick(Self.texts)
      return .destinationInstances(
        chance(1, in: 2) ? .entityMapping(name) : .sourceRelationship(name), expression(below))
    default:
      let count = Int.random(in: 0..<3, using: &self)
      let selector = count == 0 ? "make" : "make:" + String(repeating: "with:", count: count - 1)
      return .policyMethod(selector: selector, (0..<count).map { _ in expression(below) })
    }
  }

  mutating func predicate(_ depth: Int) -> PredicateNode {
    let below = depth - 1
    switch depth > 0 ? Int.random(in: 0..<8, using: &self) : 0 {
    case 0 where depth <= 0 && chance(1, in: 3): return .constant(chance(1, in: 2))
    case 1: return .and((0..<Int.random(in: 2...3, using: &self)).map { _ in predicate(below) })
    case 2: return .or((0..<Int.random(in: 2...3, using: &self)).map { _ in predicate(below) })
    case 3: return .not(predicate(below))
    default:
      let operation = pick(Comparison.Operator.allCases)
      return .comparison(
        Comparison(
          expression(max(0, below)), operation, expression(max(0, below)), modifier: pick(Comparison.Modifier.allCases),
          ignoresCase: chance(1, in: 3),
          ignoresDiacritics: chance(1, in: 3),
          isNormalized: chance(1, in: 5)))
    }
  }
}
