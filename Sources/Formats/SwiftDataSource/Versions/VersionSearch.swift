// Finds the versions: the VersionedSchema types in the order of the SchemaMigrationPlan; without them the one schema
// that the app passes to its container. Apps name models in several places, previews and tests too, so the choice is
// told, and `--schema` makes it.

import Diagnostics
import ManagedObjectModel
import SystemPackage

extension HopdError.Code {
  /// What was taken of several schemas, or what was left out.
  package static let schemaChosen = HopdError.Code("schema-chosen", severity: .note)
}

/// The search in one target.
package struct VersionSearch {
  private let target: SourceTarget
  private let calibrated: CalibratedForms
  /// The most versions, and calls that name models, that an app has.
  private static let most = 400

  package init(_ target: SourceTarget, calibrated: CalibratedForms = CalibratedForms()) {
    self.target = target
    self.calibrated = calibrated
  }

  /// Returns the versions; `schema` is a VersionedSchema, a list of classes, or the file and line of a call.
  package func versions(schema: String? = nil) throws(HopdError) -> SourceVersions {
    try target.requireParsed()
    var result = try found(schema)
    if let remark = target.unparsedFiles { result.remarks.append(remark) }
    return result
  }

  private func found(_ schema: String?) throws(HopdError) -> SourceVersions {
    let schemas = target.types(conformingTo: "VersionedSchema")
    guard schemas.count <= Self.most else {
      throw HopdError(.sourceUnclear, "there are more than \(Self.most) VersionedSchema types")
    }
    let names = schemas.reduce(into: [:]) { $0[$1.name, default: 0] += 1 }
    let declared = schemas.map { version(of: $0, isShared: names[$0.name] ?? 0 > 1) }
    if let schema { return try named(schema, declared) }
    guard !declared.isEmpty else { return try used() }
    var result = SourceVersions()
    guard let plan = try plan(declared) else {
      result.versions = byIdentifier(declared)
      return result
    }
    result.isPlanned = true
    result.versions = plan.schemas.compactMap { index in declared.first { $0.schema?.index == index } }
    result.stages = plan.stages
    result.areStagesKnown = plan.unread == nil
    if let unread = plan.unread { result.remarks.append(unread) }
    for version in declared where !result.versions.contains(where: { $0.schema?.index == version.schema?.index }) {
      result.remarks.append(
        HopdError(.schemaChosen, "\(version.name) is not in the migration plan, and is ignored", at: version.place))
    }
    return result
  }

  // MARK: VersionedSchema

  private func place(of symbol: SourceSymbol) -> Place {
    Place(
      file: FilePath(target.files[symbol.scope.file]), line: symbol.declaration.position.line,
      column: symbol.declaration.position.column)
  }

  private func version(of symbol: SourceSymbol, isShared: Bool) -> SourceVersion {
    let place = place(of: symbol)
    var identifier: String?
    if let (property, scope) = target.staticProperty("versionIdentifier", of: symbol), let value = property.value {
      identifier = target.identifier(value, in: scope)
    }
    let models: Result<[SourceSymbol], HopdError>
    if identifier == nil {
      models = .failure(
        HopdError(
          .sourceUnclear, "the versionIdentifier of \(symbol.name) is not written as three numbers", at: place,
          hint: "write it as Schema.Version(1, 0, 0)"))
    } else if let (property, scope) = target.staticProperty("models", of: symbol), let value = property.value {
      models = Result { () throws(HopdError) in
        try target.models(value, in: scope, at: target.place(of: property, in: scope))
      }
    } else {
      models = .failure(HopdError(.sourceUnclear, "\(symbol.name) has no list `models` that can be read", at: place))
    }
    return SourceVersion(
      name: isShared ? symbol.qualifiedName : symbol.name, identifier: identifier ?? "", place: place, models: models,
      schema: symbol)
  }

  private func byIdentifier(_ versions: [SourceVersion]) -> [SourceVersion] {
    func numbers(_ version: SourceVersion) -> [Int] { version.identifier.split(separator: ".").compactMap { Int($0) } }
    return versions.sorted { left, right in
      let (first, second) = (numbers(left), numbers(right))
      return first == second ? NaturalOrder.precedes(left.name, right.name) : first.lexicographicallyPrecedes(second)
    }
  }

  // MARK: SchemaMigrationPlan

  private struct Plan {
    let schemas: [Int]
    let stages: [SourceStage]
    /// The remark on a stage that could not be read.
    let unread: HopdError?
  }

  /// The plan of the target; of several, the one that a container is given.
  private func plan(_ declared: [SourceVersion]) throws(HopdError) -> Plan? {
    var plans = target.types(conformingTo: "SchemaMigrationPlan")
    if plans.count > 1 {
      let used = Set(uses().flatMap { use in use.arguments.filter { $0.label == "migrationPlan" }.map(\.value.text) })
      let named = plans.filter { used.contains("\($0.name).self") || used.contains("\($0.qualifiedName).self") }
      if !named.isEmpty { plans = named }
    }
    guard let plan = plans.first else { return nil }
    guard plans.count == 1 else {
      throw HopdError(
        .sourceUnclear,
        "there are \(plans.count) migration plans: \(plans.map(\.qualifiedName).joined(separator: ", "))",
        at: Place(file: FilePath(target.files[plan.scope.file]), line: plan.declaration.position.line),
        hint: "pass one version: --schema \(declared.first?.name ?? "SCHEMA")")
    }
    guard let (property, scope) = target.staticProperty("schemas", of: plan), let value = property.value else {
      throw unread(plan)
    }
    let (stages, unread) = stages(of: plan, declared)
    return Plan(schemas: try schemas(value, in: scope, plan), stages: stages, unread: unread)
  }

  private func schemas(
    _ value: SourceExpression, in scope: SourceScope, _ plan: SourceSymbol, depth: Int = 0
  ) throws(HopdError) -> [Int] {
    guard depth < 16 else { throw unread(plan) }
    switch value {
    case .array(let elements):
      return try elements.map { element throws(HopdError) in
        guard let index = schema(element, in: scope) else { throw unread(plan) }
        return index
      }
    case .cast(let value, _): return try schemas(value, in: scope, plan, depth: depth + 1)
    case .sum(let parts):
      var result: [Int] = []
      for part in parts { result += try schemas(part, in: scope, plan, depth: depth + 1) }
      return result
    case .path(let path):
      guard let (property, inner) = target.reference(path, in: scope), let value = property.value else {
        throw unread(plan)
      }
      return try schemas(value, in: inner, plan, depth: depth + 1)
    default: throw unread(plan)
    }
  }

  private func unread(_ plan: SourceSymbol) -> HopdError {
    HopdError(
      .sourceUnclear, "the schemas of \(plan.name) are not written as a list",
      at: Place(file: FilePath(target.files[plan.scope.file]), line: plan.declaration.position.line),
      hint: "write them as [SchemaV1.self, SchemaV2.self]")
  }

  /// The type that `Name.self` names.
  private func schema(_ expression: SourceExpression, in scope: SourceScope) -> Int? {
    guard case .path(let path) = expression, path.last == "self", path.count > 1 else { return nil }
    return target.symbol(Array(path.dropLast()), in: scope)?.index
  }

  /// The stages: the models show what they do, and only their kind is used. One that cannot be read may run code of the
  /// app, so it is a remark.
  private func stages(of plan: SourceSymbol, _ declared: [SourceVersion]) -> ([SourceStage], unread: HopdError?) {
    func unread(_ text: String, _ place: Place) -> HopdError {
      HopdError(
        .schemaChosen,
        "the stages of \(plan.name) cannot be read, so whether they run code of the app is unknown: "
          + text, at: place, hint: "write them as .lightweight(fromVersion: A.self, toVersion: B.self) or .custom(…)")
    }
    guard let (property, scope) = target.staticProperty("stages", of: plan) else {
      return ([], unread("no list `stages`", place(of: plan)))
    }
    let place = target.place(of: property, in: scope)
    guard let elements = elements(property.value, in: scope) else {
      return ([], unread(property.value?.text ?? "it has no value", place))
    }
    var (found, first): ([SourceStage], HopdError?) = ([], nil)
    for (element, scope) in elements {
      if let stage = stage(element, in: scope, at: place, declared) {
        found.append(stage)
      } else {
        first = first ?? unread(element.text, place)
      }
    }
    return (found, first)
  }

  /// The elements of a list, a sum of lists, or a reference to one; nil for anything computed.
  private func elements(
    _ value: SourceExpression?, in scope: SourceScope, depth: Int = 0
  ) -> [(SourceExpression, SourceScope)]? {
    guard depth < 16 else { return nil }
    switch value {
    case .array(let elements)?: return elements.map { ($0, scope) }
    case .cast(let value, _)?: return elements(value, in: scope, depth: depth + 1)
    case .sum(let parts)?:
      let lists = parts.compactMap { elements($0, in: scope, depth: depth + 1) }
      return lists.count == parts.count ? lists.flatMap(\.self) : nil
    case .path(let path)?:
      guard let (property, inner) = target.reference(path, in: scope) else { return nil }
      return elements(property.value, in: inner, depth: depth + 1)
    default: return nil
    }
  }

  private func stage(
    _ element: SourceExpression, in scope: SourceScope, at place: Place, _ declared: [SourceVersion]
  ) -> SourceStage? {
    var (value, inner, place) = (element, scope, place)
    if case .path(let path) = element, let (stage, around) = target.reference(path, in: scope), let own = stage.value {
      (value, inner, place) = (own, around, target.place(of: stage, in: around))
    }
    guard case .call(.path(let path), let arguments) = value, let kind = path.last,
      ["custom", "lightweight"].contains(kind)
    else { return nil }
    func name(_ label: String) -> String? {
      arguments.first { $0.label == label }.flatMap { schema($0.value, in: inner) }
        .flatMap { index in declared.first { $0.schema?.index == index }?.name }
    }
    guard let from = name("fromVersion"), let to = name("toVersion") else { return nil }
    func has(_ hook: String) -> Bool { arguments.first { $0.label == hook }?.value != SourceExpression.none }
    return SourceStage(
      from: from, to: to, isCustom: kind == "custom", hasWillMigrate: has("willMigrate"),
      hasDidMigrate: has("didMigrate"), place: place)
  }

  // MARK: Schemas of containers

  /// A call that names models.
  private struct Candidate {
    let version: SourceVersion
    let entities: Set<String>
  }

  private func uses() -> [SchemaUse] { target.facts.flatMap(\.uses) }

  private func version(of use: SchemaUse, in file: Int) -> SourceVersion? {
    let place = Place(
      file: FilePath(target.files[file]), line: use.position.line, column: use.position.column)
    let scope = SourceScope(file: file, types: scope(of: use, in: file))
    let arguments = use.arguments
    guard let first = arguments.first else { return nil }
    let values: [SourceExpression]
    switch (use.name, first.label) {
    case ("Schema", nil): values = [first.value]
    case ("ModelContainer", "for"), ("modelContainer", "for"):
      // More classes follow without labels.
      values = [first.value] + arguments.dropFirst().prefix { $0.label == nil }.map(\.value)
    default: return nil
    }
    var list = values.count == 1 ? values[0] : .array(values)
    if case .cast(let value, _) = list { list = value }
    switch list {
    case .array, .sum: break
    case .path(let path) where path.last == "self" && path.count > 1: break
    case .path(let path) where target.reference(path, in: scope).map { Self.isList($0.property) } == true: break
    // The schema itself was made in another call, or is passed in.
    default: return nil
    }
    let version = arguments.first { $0.label == "version" }
    let identifier = version.map { target.identifier($0.value, in: scope) ?? "" } ?? "1.0.0"
    return SourceVersion(
      name: identifier, identifier: identifier, place: place,
      models: Result { () throws(HopdError) in try target.models(list, in: scope, at: place) }, schema: nil)
  }

  private static func isList(_ property: SourceProperty) -> Bool {
    switch property.value {
    case .array, .sum, .cast: true
    default: if case .array? = property.type { true } else { false }
    }
  }

  /// The types around a call, as far as their names are known.
  private func scope(of use: SchemaUse, in file: Int) -> [Int] {
    var scope = SourceScope(file: file)
    for name in use.scope {
      guard case .type(let index) = target.resolve(name.split(separator: ".").map(String.init), in: scope) else {
        continue
      }
      scope.types.append(index)
    }
    return scope.types
  }

  private func candidates() -> [SourceVersion] {
    target.facts.indices.flatMap { file in
      target.facts[file].uses.filter { $0.isPreview != true }.compactMap { version(of: $0, in: file) }
    }
  }

  /// The one schema of an app without VersionedSchema: the call whose models include those of all others.
  private func used() throws(HopdError) -> SourceVersions {
    let all = candidates()
    guard all.count <= Self.most else {
      throw HopdError(
        .sourceUnclear, "more than \(Self.most) calls name models", hint: "pass the classes: --schema A,B")
    }
    var failures: [HopdError] = []
    var found: [Candidate] = []
    for version in all {
      switch version.models {
      case .success(let roots) where !roots.isEmpty:
        let model = ModelDerivation.derive(
          roots, of: target, name: version.name, identifiers: [version.identifier], calibrated: calibrated)
        found.append(Candidate(version: version, entities: Set(model.entityPlaces.keys)))
      case .success: break
      case .failure(let error): failures.append(error)
      }
    }
    guard let largest = found.max(by: { $0.entities.count < $1.entities.count }) else {
      if let first = failures.first { throw first.hinted("pass the classes: --schema A,B") }
      throw noSchema()
    }
    guard found.allSatisfy({ $0.entities.isSubset(of: largest.entities) }) else {
      throw HopdError(
        .sourceUnclear, "the app has several schemas, and none has the models of all others",
        at: largest.version.place,
        hint: "pass one: --schema \(Self.word(for: largest.version.place))",
        reasons: found.map { candidate in
          HopdError(
            .sourceUnclear, "models: \(candidate.entities.sorted().prefix(12).joined(separator: ", "))",
            at: candidate.version.place)
        })
    }
    var result = SourceVersions(versions: [largest.version])
    if Set(found.map(\.entities)).count > 1 || !failures.isEmpty {
      result.remarks.append(
        HopdError(
          .schemaChosen, "of \(found.count + failures.count) schemas, the one with the most models is taken",
          at: largest.version.place, hint: "pass another with --schema"))
    }
    return result
  }

  private func noSchema() -> HopdError {
    let models = target.types.filter(\.isModel).map(\.name)
    return HopdError(
      models.isEmpty ? .noSourceModels : .sourceUnclear,
      models.isEmpty
        ? "no class with @Model in this source"
        : "nothing in this source says which models the app's store has",
      at: Place(file: target.files.first.map { FilePath($0) }),
      hint: models.isEmpty
        ? "pass the directory of the target that declares the models"
        : "pass the classes: --schema \(models.prefix(20).joined(separator: ","))")
  }

  /// A place as `--schema` takes it.
  private static func word(for place: Place) -> String {
    "\(place.file?.lastComponent?.string ?? ""):\(place.line ?? 1)".quotedForShell
  }

  // MARK: --schema

  private func named(_ schema: String, _ declared: [SourceVersion]) throws(HopdError) -> SourceVersions {
    if let version = declared.first(where: { $0.name == schema || $0.schema?.qualifiedName == schema }) {
      return SourceVersions(versions: [version])
    }
    if let colon = schema.lastIndex(of: ":"), let line = Int(schema[schema.index(after: colon)...]) {
      let file = schema[..<colon]
      let found = candidates().filter { version in
        let path = version.place.file?.string ?? ""
        return version.place.line == line && (path == file || path.hasSuffix("/\(file)"))
      }
      if let version = found.first { return SourceVersions(versions: [version]) }
      throw HopdError(.usage, "no call in \(schema) names models", hint: "pass the line of Schema( or ModelContainer(")
    }
    let names = schema.split(separator: ",").map { $0.split(separator: ".").map(String.init) }
    var roots: [SourceSymbol] = []
    for path in names {
      // A class that is nested in a VersionedSchema need not be named in full.
      let nested = target.types.filter { $0.isModel && path == [$0.name] }
      let found = target.symbol(path, in: SourceScope(file: 0)) ?? (nested.count == 1 ? nested[0] : nil)
      guard let found, found.isModel else {
        let known = target.types.filter(\.isModel).map(\.name) + declared.map(\.name)
        let text = path.joined(separator: ".")
        throw HopdError(
          .usage, "no VersionedSchema or class with @Model named \(text)",
          hint: NearestName.among(known, to: text).map { "use '\($0.printableLine)'" })
      }
      roots.append(found)
    }
    let place = roots.first.map { root in
      Place(file: FilePath(target.files[root.scope.file]), line: root.declaration.position.line)
    }
    return SourceVersions(versions: [
      SourceVersion(
        name: "1.0.0", identifier: "1.0.0", place: place ?? Place(), models: .success(roots), schema: nil)
    ])
  }
}
