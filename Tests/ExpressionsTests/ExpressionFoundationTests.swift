// The rows of Tests/ExpressionCases that are marked `foundation`: the results of Foundation on Linux for the same
// constants. It cannot parse expressions there (NSPredicate and NSExpression have no parser), so its classes are called
// one by one. Only this file imports Foundation, and no program does.

import BlockingTests
import Foundation
import Testing

@testable import Expressions

/// Foundation's own results; nil for operations that it does not have here.
private struct FoundationOracle {
  enum Answer {
    case number(NSNumber)
    case decimal(NSDecimalNumber)
    case text(NSString)
    case date(NSDate)
    case uuid(NSUUID)
  }

  func value(_ node: ExpressionNode) -> Answer? {
    switch node {
    case .constant(let constant): return value(constant)
    case .cast(.constant(let constant), .date): return value(.date(ExpressionValue(constant).asDouble ?? 0))
    case .keyPath(.variable("source"), [.key("price")]): return .decimal(NSDecimalNumber(string: "1.50"))
    case .keyPath(.variable("source"), [.key("note")]): return .text("Straße")
    case .keyPath(let base, let steps):
      guard let start = value(base), steps.count == 1, case .key(let name)? = steps.first else { return nil }
      return getter(name, start)
    case .negated(let operand):
      guard case .number(let number)? = value(operand) else { return nil }
      return .number(NSNumber(value: -number.doubleValue))
    case .arithmetic(.power, let left, let right):
      guard case .number(let one)? = value(left), case .number(let other)? = value(right) else { return nil }
      return .number(NSNumber(value: pow(one.doubleValue, other.doubleValue)))
    case .arithmetic(let operation, let left, let right):
      guard let one = decimal(left), let other = decimal(right) else { return nil }
      switch operation {
      case .add: return .decimal(one.adding(other))
      case .subtract: return .decimal(one.subtracting(other))
      case .multiply: return .decimal(one.multiplying(by: other))
      default: return .decimal(one.dividing(by: other))
      }
    case .function(let function, let arguments):
      return arguments.first.flatMap { value($0) }.flatMap { call(function, $0) }
    default: return nil
    }
  }

  private func value(_ constant: ConstantValue) -> Answer? {
    switch constant {
    case .boolean(let value): .number(NSNumber(value: value))
    case .integer(let value): .number(NSNumber(value: value))
    case .double(let value): .number(NSNumber(value: value))
    case .decimal(let digits): .decimal(NSDecimalNumber(string: digits))
    case .string(let text): .text(NSString(string: text))
    case .date(let seconds): .date(NSDate(timeIntervalSinceReferenceDate: seconds))
    case .uuid: ValueCast.text(of: ExpressionValue(constant)).flatMap { NSUUID(uuidString: $0) }.map { .uuid($0) }
    case .null, .data: nil
    }
  }

  private func decimal(_ node: ExpressionNode) -> NSDecimalNumber? {
    switch value(node) {
    case .decimal(let value): value
    case .number(let value): NSDecimalNumber(value: value.int64Value)
    default: nil
    }
  }

  private func call(_ function: ExpressionFunction, _ argument: Answer) -> Answer? {
    switch (function, argument) {
    case (.uppercase, .text(let text)): return .text(NSString(string: text.uppercased))
    case (.lowercase, .text(let text)): return .text(NSString(string: text.lowercased))
    case (.length, .text(let text)): return .number(NSNumber(value: text.length))
    case (.canonical, .text(let text)):
      return .text(
        NSString(string: text.folding(options: [.caseInsensitive, .diacriticInsensitive], locale: nil)))
    case (_, .number(let number)):
      let real = number.doubleValue
      let result: Double
      switch function {
      case .absolute: result = fabs(real)
      case .ceiling: result = ceil(real)
      case .floor: result = floor(real)
      case .truncate: result = trunc(real)
      case .squareRoot: result = sqrt(real)
      case .naturalLogarithm: result = log(real)
      case .logarithm: result = log10(real)
      case .exponential: result = exp(real)
      default: return nil
      }
      return .number(NSNumber(value: result))
    default: return nil
    }
  }

  private func getter(_ name: String, _ start: Answer) -> Answer? {
    switch start {
    case .text(let text): return getter(name, ofText: text)
    case .number(let number): return getter(name, ofNumber: number)
    case .date(let date):
      switch name {
      case "description": return .text(NSString(string: date.description))
      case "timeIntervalSince1970": return .number(NSNumber(value: date.timeIntervalSince1970))
      case "timeIntervalSinceReferenceDate": return .number(NSNumber(value: date.timeIntervalSinceReferenceDate))
      default: return nil
      }
    case .uuid(let uuid): return name == "UUIDString" ? .text(NSString(string: uuid.uuidString)) : nil
    case .decimal: return nil
    }
  }

  private func getter(_ name: String, ofText text: NSString) -> Answer? {
    switch name {
    case "length": .number(NSNumber(value: text.length))
    case "uppercaseString": .text(NSString(string: text.uppercased))
    case "lowercaseString": .text(NSString(string: text.lowercased))
    case "description": .text(NSString(string: text.description))
    case "intValue": .number(NSNumber(value: text.intValue))
    case "integerValue": .number(NSNumber(value: text.integerValue))
    case "longLongValue": .number(NSNumber(value: text.longLongValue))
    case "doubleValue": .number(NSNumber(value: text.doubleValue))
    case "floatValue": .number(NSNumber(value: Double(text.floatValue)))
    case "boolValue": .number(NSNumber(value: text.boolValue))
    default: nil
    }
  }

  private func getter(_ name: String, ofNumber number: NSNumber) -> Answer? {
    switch name {
    case "stringValue": .text(NSString(string: number.stringValue))
    case "description": .text(NSString(string: number.description))
    case "intValue": .number(NSNumber(value: number.int32Value))
    case "integerValue", "longLongValue": .number(NSNumber(value: number.int64Value))
    case "shortValue": .number(NSNumber(value: number.int16Value))
    case "charValue": .number(NSNumber(value: number.int8Value))
    case "unsignedIntValue": .number(NSNumber(value: number.uint32Value))
    case "unsignedShortValue": .number(NSNumber(value: number.uint16Value))
    case "unsignedCharValue": .number(NSNumber(value: number.uint8Value))
    case "doubleValue": .number(NSNumber(value: number.doubleValue))
    case "floatValue": .number(NSNumber(value: Double(number.floatValue)))
    case "boolValue": .number(NSNumber(value: number.boolValue))
    default: nil
    }
  }

  // MARK: Predicates

  func holds(_ comparison: Comparison) -> Bool? {
    guard case .text(let left)? = value(comparison.left) else { return nil }
    var options: NSString.CompareOptions = []
    if comparison.ignoresCase { options.insert(.caseInsensitive) }
    if comparison.ignoresDiacritics { options.insert(.diacriticInsensitive) }
    if !comparison.ignoresCase, !comparison.ignoresDiacritics { options.insert(.literal) }
    if comparison.operation == .in, case .aggregate(let members) = comparison.right {
      return members.contains { member in
        guard case .text(let text)? = value(member) else { return false }
        return order(left, text, options) == .orderedSame
      }
    }
    guard case .text(let right)? = value(comparison.right) else { return nil }
    func finds(_ more: NSString.CompareOptions) -> Bool {
      left.range(of: right as String, options: options.union(more)).location != NSNotFound
    }
    switch comparison.operation {
    case .equal: return order(left, right, options) == .orderedSame
    case .notEqual: return order(left, right, options) != .orderedSame
    case .less: return order(left, right, options) == .orderedAscending
    case .lessOrEqual: return order(left, right, options) != .orderedDescending
    case .greater: return order(left, right, options) == .orderedDescending
    case .greaterOrEqual: return order(left, right, options) != .orderedAscending
    case .beginsWith: return finds(.anchored)
    case .endsWith: return finds([.anchored, .backwards])
    case .contains: return finds([])
    case .matches:
      let expression = try? NSRegularExpression(
        pattern: "^(?:\(right as String))$", options: comparison.ignoresCase ? .caseInsensitive : [])
      return expression?.firstMatch(
        in: left as String, range: NSRange(location: 0, length: left.length)) != nil
    default: return nil
    }
  }

  private func order(
    _ left: NSString, _ right: NSString, _ options: NSString.CompareOptions
  ) -> ComparisonResult {
    left.compare(right as String, options: options, range: NSRange(location: 0, length: left.length), locale: nil)
  }
}

@Suite(.blocking) struct ExpressionFoundationTests {
  @Test func everyMarkedRowIsWhatFoundationGives() throws {
    let oracle = FoundationOracle()
    var count = 0
    for row in try ExpressionRow.all() where row.evidence == "foundation" {
      count += 1
      guard case .value(let expected) = row.result else {
        Issue.record("\(row): Foundation is asked for values only")
        continue
      }
      if row.isPredicate {
        guard case .comparison(let comparison) = try ExpressionParser.predicate(row.text),
          let holds = oracle.holds(comparison), case .boolean(let wanted) = expected
        else {
          if row.text.hasPrefix("note ") { continue }
          Issue.record("\(row): Foundation is not asked")
          continue
        }
        #expect(holds == wanted, "\(row)")
        continue
      }
      guard let answer = oracle.value(try ExpressionParser.expression(row.text)) else {
        Issue.record("\(row): Foundation is not asked")
        continue
      }
      switch (answer, expected) {
      case (.number(let number), .boolean(let wanted)): #expect(number.boolValue == wanted, "\(row)")
      case (.number(let number), .integer(let wanted)): #expect(number.int64Value == wanted, "\(row)")
      case (.number(let number), .double(let wanted)): #expect(number.doubleValue == wanted, "\(row)")
      case (.decimal(let decimal), .decimal(let wanted)): #expect(decimal.stringValue == wanted.description, "\(row)")
      case (.text(let text), .string(let wanted)):
        #expect(Array((text as String).unicodeScalars) == Array(wanted.unicodeScalars), "\(row)")
      default: Issue.record("\(row): Foundation gives \(answer)")
      }
    }
    #expect(count >= 200, "\(count) rows are checked against Foundation")
  }

  /// Classes and boundaries of MATCHES for each character of the Basic Multilingual Plane up to Unicode 15, but for the
  /// long blocks of letters of one kind.
  @Test(arguments: [
    "x\\wy", "x\\Wy", "x\\dy", "x\\Dy", "x\\sy", "x[^\\S.]y", "x[\\w.-]y", "x[\\W\\d]y", "x.\\by", "x\\b.y",
  ])
  func classesAreFoundations(_ pattern: String) throws {
    let expression = try NSRegularExpression(pattern: "\\A(?:\(pattern))\\z", options: [])
    let own = try RegularPattern(pattern)
    var differences: [String] = []
    for code in UInt32(1)...0xffff where !(0x3400...0x9fff).contains(code) && !(0xac00...0xd7a3).contains(code) {
      guard let scalar = Unicode.Scalar(code), (scalar.properties.age?.major ?? 99) < 16 else { continue }
      let text = "x" + String(scalar) + "y"
      let wanted =
        expression.firstMatch(in: text, options: [], range: NSRange(location: 0, length: text.utf16.count)) != nil
      if try own.matches(text) != wanted { differences.append(String(code, radix: 16)) }
    }
    #expect(differences.isEmpty, "\(differences.count): \(differences.prefix(10))")
  }

  /// Which texts are equal under `[c]`, `[d]` and `[cd]`: every character of the Basic Multilingual Plane in Unicode 9,
  /// compared with its other cases, its decomposition and its base letter. The rest is in docs/formats/expressions.md.
  @Test func foldingIsFoundations() throws {
    var differences: [String] = []
    var count = 0
    for code in UInt32(0x80)...0xffff {
      guard let scalar = Unicode.Scalar(code), (scalar.properties.age?.major ?? 99) < 9,
        !scalar.properties.isGraphemeExtend
      else { continue }
      let text = String(scalar)
      let decomposed = text.decomposedStringWithCanonicalMapping
      let base = decomposed.unicodeScalars.first.map { String($0) } ?? text
      // No normalised text contains the character.
      guard Array(text.precomposedStringWithCanonicalMapping.unicodeScalars) == [scalar] else { continue }
      for other in Set(
        [
          scalar.properties.lowercaseMapping, scalar.properties.uppercaseMapping, decomposed, base, base.uppercased(),
        ].map { Array($0.unicodeScalars) }) where other != [scalar]
      {
        var view = String.UnicodeScalarView()
        view.append(contentsOf: other)
        let second = String(view)
        for (isCase, isMarks) in [(true, false), (false, true), (true, true)] {
          var options: NSString.CompareOptions = isCase ? [.caseInsensitive] : []
          if isMarks { options.insert(.diacriticInsensitive) }
          let left = NSString(string: text)
          let wanted =
            left.compare(second, options: options, range: NSRange(location: 0, length: left.length), locale: nil)
            == .orderedSame
          func fold(_ text: String) -> [Unicode.Scalar] {
            Array(TextFolding.fold(text, ignoringCase: isCase, ignoringDiacritics: isMarks).unicodeScalars)
          }
          count += 1
          if (fold(text) == fold(second)) != wanted {
            differences.append(
              "U+\(String(code, radix: 16)) \(other.map { String($0.value, radix: 16) }) \(isCase) \(isMarks) \(wanted)"
            )
          }
        }
      }
    }
    #expect(count > 5000)
    #expect(differences.count == 0, "\(differences.count) of \(count): \(differences.prefix(200))")
  }
}
